"""What keeps a desk going: `moot db`, `moot doctor`, and `moot keys`: who may use it over HTTP."""

import asyncio
import importlib.util
import platform
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich import filesize
from rich.console import Console
from rich.table import Table
from rich.text import Text

from moot.cli.command import at_desk, command, on_desk
from moot.cli.options import argument, confirm, group, option
from moot.cli.printing import field, line_field, minute, print_table, tell
from moot.cli.texts import environment_locale, say
from moot.modules.access.application import ApiKey
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings, split_names

if TYPE_CHECKING:
    from moot.desk import Moot
    from moot.modules.llm_platform.application.config_service import ConfigView

EXTRAS = ["akshare", "yfinance"]
COLOURS = {"ok": "green", "note": "yellow", "problem": "bold red"}

db = group("help.db")
keys = group("help.keys")


@db.command("upgrade", help=say("help.db_upgrade"))
def upgrade_database() -> None:
    async def upgrade(database: Database) -> str:
        await database.upgrade()
        return say("db.upgraded", revision=await database.current())

    _with_database(upgrade)


@db.command("downgrade", help=say("help.db_downgrade"))
def downgrade_database(
    revision: Annotated[str, argument("help.db_revision")],
    yes: Annotated[bool, option("help.db_yes", "--yes")] = False,
) -> None:
    async def downgrade(database: Database) -> str:
        database.require_revision(revision)
        if not yes:
            loss = say("db.loses_all" if revision == "base" else "db.loses_some")
            told = {"url": database.safe_url, "revision": revision, "loss": loss}
            confirm(say("db.sure", **told), "db.needs_yes", "db.kept")
        await database.downgrade(revision)
        return say("db.upgraded", revision=await database.current() or "base")

    _with_database(downgrade)


@db.command("current", help=say("help.db_current"))
def show_revision() -> None:
    async def revision(database: Database) -> str:
        current, head = await database.current(), database.head()
        text = say("db.current", current=current or say("db.none"), head=head)
        return text if current == head else f"{text} {say('db.behind')}"

    _with_database(revision)


def _with_database(work: Callable[[Database], Awaitable[str]]) -> None:
    async def check_database(settings: Settings) -> str:
        if not settings.persistence:
            return say("db.off")
        database = Database(settings.resolved_database_url)
        try:
            return await work(database)
        finally:
            await database.close()

    with command() as settings:
        typer.echo(asyncio.run(check_database(settings)))


class Finding(NamedTuple):
    level: str
    text: str


def doctor() -> None:
    with command() as settings:
        findings = [
            _find("ok", "python", version=platform.python_version()),
            _home(settings),
            asyncio.run(_database(settings)),
            _find_either(importlib.util.find_spec("asyncpg"), "postgres_ready", "postgres_extra"),
            *_desk(settings),
            _sources(settings),
            _find_either(name_search(settings), "search", "search_none"),
            _find("ok", "locale", locale=settings.locale or environment_locale()),
        ]
        table = Table(box=None, show_header=False, pad_edge=False)
        for level, text in findings:
            table.add_row(Text(say(f"doctor.{level}"), style=COLOURS[level]), Text(text))
        Console().print(table)
        well = all(finding.level != "problem" for finding in findings)
        tell("doctor.all_well" if well else "doctor.not_well")
        if not well:
            raise typer.Exit(1)


def _find(level: str, key: str, **values: object) -> Finding:
    return Finding(level, say(f"doctor.{key}", **values))


def _find_either(there: object, key: str, missing: str) -> Finding:
    return _find("ok", key, name=there) if there else _find("note", missing)


def _home(settings: Settings) -> Finding:
    home = settings.home.expanduser()
    try:
        home.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=home).close()
    except OSError as e:
        return _find("problem", "home_not_writable", path=home, reason=e.strerror)
    return _find("ok", "home", path=home)


async def _database(settings: Settings) -> Finding:
    if not settings.persistence:
        return _find("note", "persistence_off")
    where = "MOOT_DATABASE_URL"  # until it is understood: it may hold a password
    try:
        database = Database(settings.resolved_database_url)
        where = database.safe_url
        try:
            await database.prepare()
            size = filesize.decimal(await database.size())
        finally:
            await database.close()
    except AppError as e:
        return _find("problem", "database_bad", url=where, detail=e.in_locale(environment_locale()))
    ready = say("doctor.database", url=where, revision=database.head())
    return Finding("ok", say("session_files.size", database=ready, size=size))


def _desk(settings: Settings) -> list[Finding]:
    """Sessions and rules only where there is something to do about them."""
    reader = environment_locale()

    async def look_around(desk: "Moot") -> list[Finding]:
        found = []
        with suppress(AppError):  # nothing is stored, or the line about it says what is wrong
            if left := await desk.find_interrupted():
                found.append(_find("note", "interrupted", count=len(left)))
        with suppress(AppError):  # likewise
            if given_up := sum(place.given_up for place in await desk.jobs.destinations().list()):
                found.append(_find("note", "given_up", count=given_up))
        with suppress(AppError):  # the line about the database says what is wrong
            if problem := (await desk.governance.agent.status(reader=reader)).rules_problem:
                found.append(Finding("problem", problem))
        return [*found, _models(settings, await desk.llm_platform.config_service().list())]

    try:
        return at_desk(settings, look_around)
    except AppError as e:  # whose fault that is stands on a line of its own
        return [_find("note", "model_unknown", reason=e.in_locale(reader))]


def _models(settings: Settings, views: "Sequence[ConfigView]") -> Finding:
    locked = [view.alias for view in views if view.unreadable]
    if locked:
        return _find("problem", "model_locked", alias=locked[0])
    models = [f"{view.alias} ({view.model_name})" for view in views if view.usable]
    if models:
        return _find("ok", "model_rubric" if settings.analyst == "rubric" else "models", models=models)
    return _find("problem", "model_missing") if settings.analyst == "llm" else _find("note", "model")


def _sources(settings: Settings) -> Finding:
    """Which sources are configured, and whether the extra that each of them needs is installed."""
    for name in split_names(settings.data_sources):
        if name not in EXTRAS:
            return _find("problem", "source_unknown", name=name, known=EXTRAS)
        if not importlib.util.find_spec(name):
            return _find("problem", "source_missing", name=name)
    sources = ", ".join(list_sources(settings))
    return _find("ok" if sources else "note", "market_data", sources=sources or say("doctor.no_sources"))


def list_sources(settings: Settings) -> list[str]:
    """All that are configured."""
    tushare = ["tushare"] if settings.tushare_token.get_secret_value() else []
    return [*tushare, *split_names(settings.data_sources), *(["files"] if settings.data_files else [])]


def name_search(settings: Settings) -> str:
    """The service that is asked, if any."""
    return "Bocha" if settings.bocha_api_key.get_secret_value() else "SearXNG" if settings.searxng_url else ""


@keys.command("create", help=say("help.keys_create"))
def create_key(
    name: Annotated[str, argument("help.keys_name")],
    scope: Annotated[list[str] | None, option("help.keys_scope")] = None,
    workspace: Annotated[str, option("help.keys_workspace")] = "default",
) -> None:
    """The key alone is on stdout, so that it can be piped to where it is kept."""
    key, secret = on_desk(lambda desk: desk.access.create(name, scope or ["read"], workspace))
    about = {"id": key.id, "name": key.name, "scopes": key.scopes, "workspace": key.workspace_id}
    tell("keys.created", err=True, **about)
    typer.echo(secret)


@keys.command("list", help=say("help.keys_list"))
def list_keys() -> None:
    on_desk(lambda desk: desk.access.list(), _show_keys)


@keys.command("revoke", help=say("help.keys_revoke"))
def revoke_key(key_id: Annotated[str, argument("help.keys_id", metavar="ID")]) -> None:
    key = on_desk(lambda desk: desk.access.revoke(key_id))
    tell("keys.revoked", id=key.id, name=key.name)


def _show_keys(keys: Sequence[ApiKey]) -> None:
    """Two lines a key: there is more to say than fits side by side."""
    print_table(
        keys,
        field("keys.column.key", lambda key: Text.assemble((key.id, "bold"), "\n", key.name)),
        field("keys.column.rights", lambda key: f"{', '.join(key.scopes)}\n{key.workspace_id}"),
        line_field("keys.column.times", lambda key: f"{minute(key.created_at)}\n{minute(key.last_used_at)}"),
        line_field("keys.column.state", _describe_state),
        none="keys.none",
    )


def _describe_state(key: ApiKey) -> str:
    revoked = f"{say('keys.state.revoked')}\n{minute(key.revoked_at)}"
    return revoked if key.revoked_at else say("keys.state.on")
