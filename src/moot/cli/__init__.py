"""`moot` on the command line. Heavy imports wait for the command that needs them, so `--help` is quick."""

from pathlib import Path
from typing import Annotated

import typer

from moot.cli.escalation_commands import escalations
from moot.cli.llm_commands import llm
from moot.cli.rule_commands import Profile, rules
from moot.cli.session_commands import sessions
from moot.cli.texts import say
from moot.shared.domain.messages import LOCALES

EXPERTS = "technical_analyst,financial_auditor,valuation_modeler,macro_intelligence,catalyst_detective"

STYLES = "brief, research, academic, news"

app = typer.Typer(
    help=say("about"), no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
db = typer.Typer(help=say("help.db"), no_args_is_help=True)
data = typer.Typer(help=say("help.data"), no_args_is_help=True)
keys = typer.Typer(help=say("help.keys"), no_args_is_help=True)
app.add_typer(llm, name="llm")
app.add_typer(data, name="data")
app.add_typer(sessions, name="sessions")
app.add_typer(rules, name="rules")
app.add_typer(escalations, name="escalations")
app.add_typer(keys, name="keys")
app.add_typer(db, name="db")


def main() -> None:
    app()


def _version(wanted: bool) -> None:
    if wanted:
        from moot import __version__

        typer.echo(f"moot {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help=say("help.version"))
    ] = False,
) -> None:
    """The options every command shares."""


@app.command(help=say("help.init"))
def init(
    locale: Annotated[str | None, typer.Option(help=say("help.init_locale", locales=LOCALES))] = None,
    preset: Annotated[str | None, typer.Option(help=say("help.llm_preset"))] = None,
    base_url: Annotated[str | None, typer.Option(help=say("help.llm_base_url"))] = None,
    model: Annotated[str | None, typer.Option(help=say("help.llm_model"))] = None,
    key_env: Annotated[str | None, typer.Option(metavar="VAR", help=say("help.llm_key_env"))] = None,
    tushare_token_env: Annotated[
        str | None, typer.Option(metavar="VAR", help=say("help.init_token_env"))
    ] = None,
    source: Annotated[str | None, typer.Option("--data", help=say("help.init_data"))] = None,
    search: Annotated[str | None, typer.Option(help=say("help.init_search"))] = None,
    search_key_env: Annotated[
        str | None, typer.Option(metavar="VAR", help=say("help.init_search_key"))
    ] = None,
    search_url: Annotated[str | None, typer.Option(help=say("help.init_search_url"))] = None,
    yes: Annotated[bool, typer.Option("--yes", help=say("help.init_yes"))] = False,
) -> None:
    from moot.cli.init import set_up

    options = {
        "locale": locale,
        "preset": preset,
        "base_url": base_url,
        "model": model,
        "key_env": key_env,
        "tushare_token_env": tushare_token_env,
        "data": source,
        "search": search,
        "search_key_env": search_key_env,
        "search_url": search_url,
    }
    set_up(options, silent=yes)


@app.command(help=say("help.research"))
def research(
    symbol: Annotated[str, typer.Argument(help=say("help.symbol"))],
    experts: Annotated[
        str, typer.Option(show_default=False, help=say("help.experts", experts=EXPERTS.replace(",", ", ")))
    ] = EXPERTS,
    as_of: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help=say("help.as_of"))] = None,
    skip_debate: Annotated[bool, typer.Option("--skip-debate", help=say("help.skip_debate"))] = False,
    limit: Annotated[str | None, typer.Option(metavar="N", help=say("help.limit"))] = None,
    locale: Annotated[str | None, typer.Option(help=say("help.locale", locales=LOCALES))] = None,
    max_cost: Annotated[str | None, typer.Option(metavar="X", help=say("help.max_cost"))] = None,
    as_json: Annotated[bool, typer.Option("--json", help=say("help.json"))] = False,
) -> None:
    from moot.cli.research import Question, run_research

    question = Question(symbol, experts, as_of, skip_debate, limit, locale, max_cost)
    run_research(question, as_json=as_json)


@app.command(help=say("ask.help"))
def ask(
    question: Annotated[str | None, typer.Argument(help=say("ask.question"))] = None,
    thread: Annotated[str | None, typer.Option(metavar="ID", help=say("ask.thread"))] = None,
    style: Annotated[str, typer.Option(help=say("ask.style", styles=STYLES))] = "research",
    yes: Annotated[bool, typer.Option("--yes", help=say("ask.yes"))] = False,
    accept: Annotated[bool, typer.Option("--accept", help=say("ask.accept_plan"))] = False,
    edit: Annotated[str | None, typer.Option(metavar="TEXT", help=say("ask.edit_plan"))] = None,
    reject: Annotated[bool, typer.Option("--reject", help=say("ask.reject_plan"))] = False,
    resume: Annotated[bool, typer.Option("--resume", help=say("ask.resume"))] = False,
    steps: Annotated[int | None, typer.Option(min=1, max=10, help=say("ask.steps"))] = None,
    locale: Annotated[str | None, typer.Option(help=say("ask.locale"))] = None,
    listed: Annotated[bool, typer.Option("--list", help=say("ask.list"))] = False,
    as_json: Annotated[bool, typer.Option("--json", help=say("ask.json"))] = False,
) -> None:
    from moot.cli.ask import Asked, list_conversations, run_ask

    if listed:
        list_conversations(as_json=as_json)
        return
    asked = Asked(question, thread, style, yes, accept, edit, reject, resume, steps, locale)
    run_ask(asked, as_json=as_json)


@app.command(help=say("decide.help"))
def decide(
    request: Annotated[Path | None, typer.Argument(metavar="FILE", help=say("decide.file"))] = None,
    rules: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=say("decide.rules"))] = None,
    profile: Annotated[Profile | None, typer.Option(help=say("decide.profile"))] = None,
) -> None:
    from moot.cli.decide import decide_requests

    decide_requests(request, rules or [], profile)


@app.command(help=say("help.serve"))
def serve(
    host: Annotated[str, typer.Option(help=say("help.host"))] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help=say("help.port"))] = 8000,
) -> None:
    from moot.cli.server import run_server

    run_server(host, port)


@db.command("upgrade", help=say("help.db_upgrade"))
def db_upgrade() -> None:
    from moot.cli.upkeep import upgrade_database

    upgrade_database()


@db.command("current", help=say("help.db_current"))
def db_current() -> None:
    from moot.cli.upkeep import show_revision

    show_revision()


@app.command(help=say("help.doctor"))
def doctor() -> None:
    from moot.cli.upkeep import examine

    examine()


@data.command("sync", help=say("help.data_sync"))
def data_sync(
    symbols: Annotated[list[str] | None, typer.Argument(help=say("help.data_symbols"))] = None,
    universe: Annotated[str | None, typer.Option(help=say("help.data_universe"))] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="YYYY-MM-DD", help=say("help.data_from"))
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="YYYY-MM-DD", help=say("help.data_to"))] = None,
) -> None:
    from moot.cli.data import sync

    sync(symbols or [], universe, start, end)


@data.command("status", help=say("help.data_status"))
def data_status() -> None:
    from moot.cli.data import status

    status()


@data.command("find", help=say("help.data_find"))
def data_find(text: Annotated[str, typer.Argument(help=say("help.data_text"))]) -> None:
    from moot.cli.data import find

    find(text)


@data.command("import", help=say("help.data_import"))
def data_import(
    file: Annotated[Path, typer.Argument(help=say("help.data_file"))],
    mapping: Annotated[Path | None, typer.Option(help=say("help.data_mapping"))] = None,
) -> None:
    from moot.cli.data import bring_in

    bring_in(file, mapping)


@data.command("check", help=say("help.data_check"))
def data_check(symbol: Annotated[str, typer.Argument(help=say("help.symbol"))]) -> None:
    from moot.cli.data import check

    check(symbol)


@data.command("sql", help=say("data_sql.help"))
def data_sql(
    sql: Annotated[str, typer.Argument(metavar="SELECT", help=say("data_sql.sql"))],
    as_of: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help=say("data_sql.as_of"))] = None,
    as_json: Annotated[bool, typer.Option("--json", help=say("data_sql.json"))] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help=say("data_sql.csv"))] = False,
) -> None:
    from moot.cli.data_sql import run_query

    run_query(sql, as_of, as_json=as_json, as_csv=as_csv)


@keys.command("create", help=say("help.keys_create"))
def keys_create(
    name: Annotated[str, typer.Argument(help=say("help.keys_name"))],
    scope: Annotated[list[str] | None, typer.Option(help=say("help.keys_scope"))] = None,
    workspace: Annotated[str, typer.Option(help=say("help.keys_workspace"))] = "default",
) -> None:
    from moot.cli.keys import create_key

    create_key(name, scope or ["read"], workspace)


@keys.command("list", help=say("help.keys_list"))
def keys_list() -> None:
    from moot.cli.keys import list_keys

    list_keys()


@keys.command("revoke", help=say("help.keys_revoke"))
def keys_revoke(key_id: Annotated[str, typer.Argument(metavar="ID", help=say("help.keys_id"))]) -> None:
    from moot.cli.keys import revoke_key

    revoke_key(key_id)
