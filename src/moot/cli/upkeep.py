"""What keeps a desk going: `moot db`, `moot doctor`, and `moot keys`: who may use it over HTTP."""

import asyncio
import importlib.util
import platform
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, NamedTuple

import typer
from rich import filesize
from rich.console import Console
from rich.table import Table
from rich.text import Text

from moot.cli.options import argument, confirm, group, option
from moot.cli.outcome import at_desk, command, on_desk
from moot.cli.printing import field, line_field, minute, print_table, tell
from moot.cli.texts import environment_locale, say
from moot.modules.access.application import ApiKey
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings

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
            Finding("ok", say("doctor.python", version=platform.python_version())),
            _home(settings),
            asyncio.run(_database(settings)),
            *_find_interrupted(settings),
            *_find_unusable_rules(settings),
            _postgres_driver(),
            _models(settings),
            _sources(settings),
            _search(settings),
            Finding("ok", say("doctor.locale", locale=settings.locale or environment_locale())),
        ]
        table = Table(box=None, show_header=False, pad_edge=False)
        for finding in findings:
            table.add_row(
                Text(say(f"doctor.{finding.level}"), style=COLOURS[finding.level]), Text(finding.text)
            )
        Console().print(table)
        well = all(finding.level != "problem" for finding in findings)
        tell("doctor.all_well" if well else "doctor.not_well")
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
            size = filesize.decimal(await database.size())
        finally:
            await database.close()
    except AppError as e:
        detail = e.in_locale(environment_locale())
        return Finding("problem", say("doctor.database_bad", url=where, detail=detail))
    ready = say("doctor.database", url=where, revision=database.head())
    return Finding("ok", say("session_files.size", database=ready, size=size))


def _find_interrupted(settings: Settings) -> list[Finding]:
    """Only where there is something to resume."""
    try:
        left = at_desk(settings, lambda desk: desk.find_interrupted())
    except AppError:  # nothing is stored, or the line above says what is wrong
        return []
    return [Finding("note", say("doctor.interrupted", count=len(left)))] if left else []


def _find_unusable_rules(settings: Settings) -> list[Finding]:
    """Only where they keep the desk from deciding anything."""
    try:
        status = at_desk(settings, lambda desk: desk.governance.agent.status(reader=environment_locale()))
    except AppError:  # the line about the database says what is wrong
        return []
    return [Finding("problem", status.rules_problem)] if status.rules_problem else []


def _models(settings: Settings) -> Finding:
    try:
        views = at_desk(settings, lambda desk: desk.llm_platform.config_service().list())
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
    name = "Bocha" if settings.bocha_api_key.get_secret_value() else "SearXNG" if settings.searxng_url else ""
    return (
        Finding("ok", say("doctor.search", name=name)) if name else Finding("note", say("doctor.search_none"))
    )


def _sources(settings: Settings) -> Finding:
    """Which sources are configured, and whether the extra that each of them needs is installed."""
    named = [name.strip() for name in settings.data_sources.split(",") if name.strip()]
    for name in named:
        if name not in EXTRAS:
            return Finding("problem", say("doctor.source_unknown", name=name, known=EXTRAS))
        if not importlib.util.find_spec(name):
            return Finding("problem", say("doctor.source_missing", name=name))
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
    return (
        f"{say('keys.state.revoked')}\n{minute(key.revoked_at)}" if key.revoked_at else say("keys.state.on")
    )
