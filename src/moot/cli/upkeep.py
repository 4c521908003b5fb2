"""What keeps a desk going: `moot serve`, `moot db` and `moot doctor`."""

import asyncio
import importlib.util
import platform
import socket
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import typer
import uvicorn
from rich.console import Console
from rich.table import Table
from rich.text import Text

from moot.cli.outcome import command
from moot.cli.texts import SAY, environment_locale, say
from moot.shared.domain.errors import AppError, InvalidInput
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings

COLOURS = {"ok": "green", "note": "yellow", "problem": "bold red"}


def run_server(host: str, port: int) -> None:
    from moot.modules.access.presentation.guard import is_loopback

    with command() as settings:
        private = is_loopback(host)
        if not private and not _has_keys(settings):
            raise InvalidInput(SAY("serve.not_loopback", host=host))
        _refuse_taken(host, port)
        typer.echo(say("serve.listening", host=host, port=port))
        factory = f"moot.main:{'create_app' if private else 'create_closed_app'}"
        uvicorn.run(factory, factory=True, host=host, port=port, log_level="warning")


def _has_keys(settings: Settings) -> bool:
    from moot.cli.on_desk import at_desk
    from moot.desk import Moot

    async def work(desk: Moot) -> bool:
        return await desk.access.access_service().has_keys()

    return at_desk(settings, work)


def _refuse_taken(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as e:
            raise InvalidInput(SAY("serve.port_taken", host=host, port=port, reason=e.strerror)) from e


def upgrade_database() -> None:
    _with_database(_upgrade)


def show_revision() -> None:
    _with_database(_revision)


def _with_database(work: Callable[[Database], Awaitable[str]]) -> None:
    async def opened(settings: Settings) -> str:
        if not settings.persistence:
            return say("db.off")
        database = Database(settings.resolved_database_url)
        try:
            return await work(database)
        finally:
            await database.close()

    with command() as settings:
        typer.echo(asyncio.run(opened(settings)))


async def _upgrade(database: Database) -> str:
    await database.upgrade()
    return say("db.upgraded", revision=await database.current())


async def _revision(database: Database) -> str:
    current, head = await database.current(), database.head()
    text = say("db.current", current=current or say("db.none"), head=head)
    return text if current == head else f"{text} {say('db.behind')}"


class Finding(NamedTuple):
    level: str
    text: str


def examine() -> None:
    with command() as settings:
        findings = [
            Finding("ok", say("doctor.python", version=platform.python_version())),
            _home(settings),
            asyncio.run(_database(settings)),
            _postgres_driver(),
            asyncio.run(_models(settings)),
            _sources(settings),
            _search(settings),
            Finding("ok", say("doctor.locale", locale=settings.locale or environment_locale())),
        ]
        table = Table(box=None, show_header=False, pad_edge=False)
        for finding in findings:
            table.add_row(Text(say(f"doctor.{finding.level}"), style=COLOURS[finding.level]), finding.text)
        Console().print(table)
        well = all(finding.level != "problem" for finding in findings)
        typer.echo(say("doctor.all_well" if well else "doctor.not_well"))
        if not well:
            raise typer.Exit(1)


def _home(settings: Settings) -> Finding:
    home = settings.home.expanduser()
    try:
        home.mkdir(parents=True, exist_ok=True)
        probe = home / ".write-test"
        probe.touch()
        probe.unlink()
    except OSError as e:
        return Finding("problem", say("doctor.home_not_writable", path=home, reason=e.strerror))
    return Finding("ok", say("doctor.home", path=home))


async def _database(settings: Settings) -> Finding:
    if not settings.persistence:
        return Finding("note", say("doctor.persistence_off"))
    where = "MOOT_DATABASE_URL"  # until it is understood: it may hold a password
    try:
        database = Database(settings.resolved_database_url)
        where = database.safe_url
        try:
            await database.prepare()
        finally:
            await database.close()
    except AppError as e:
        detail = e.in_locale(environment_locale())
        return Finding("problem", say("doctor.database_bad", url=where, detail=detail))
    return Finding("ok", say("doctor.database", url=where, revision=database.head()))


async def _models(settings: Settings) -> Finding:
    from moot.desk import Moot

    try:
        async with Moot(settings) as desk:
            views = await desk.llm_platform.config_service().list()
    except AppError as e:  # whose fault that is stands on a line of its own
        return Finding("note", say("doctor.model_unknown", reason=e.in_locale(environment_locale())))
    locked = [view.alias for view in views if view.unreadable]
    if locked:
        return Finding("problem", say("doctor.model_locked", alias=locked[0]))
    models = [f"{view.alias} ({view.model_name})" for view in views if view.usable]
    if settings.analyst == "llm" and not models:
        return Finding("problem", say("doctor.model_missing"))
    if models:
        name = "doctor.model_rubric" if settings.analyst == "rubric" else "doctor.models"
        return Finding("ok", say(name, models=models))
    return Finding("note", say("doctor.model"))


def _search(settings: Settings) -> Finding:
    if settings.bocha_api_key.get_secret_value():
        return Finding("ok", say("doctor.search", name="Bocha"))
    if settings.searxng_url:
        return Finding("ok", say("doctor.search", name="SearXNG"))
    return Finding("note", say("doctor.search_none"))


def _sources(settings: Settings) -> Finding:
    """Which sources are configured, and whether the extra that each of them needs is installed."""
    named = [name.strip() for name in settings.data_sources.split(",") if name.strip()]
    missing = [name for name in named if not importlib.util.find_spec(name)]
    if missing:
        return Finding("problem", say("doctor.source_missing", name=missing[0]))
    tushare = ["tushare"] if settings.tushare_token.get_secret_value() else []
    files = ["files"] if settings.data_files else []
    sources = ", ".join([*tushare, *named, *files])
    return Finding(
        "ok" if sources else "note", say("doctor.market_data", sources=sources or say("doctor.no_sources"))
    )


def _postgres_driver() -> Finding:
    if importlib.util.find_spec("asyncpg"):
        return Finding("ok", say("doctor.postgres_ready"))
    return Finding("note", say("doctor.postgres_extra"))
