"""`moot llm`: the models of the desk, whether they work, and what they used."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from moot.cli.command import at_desk, command, on_desk
from moot.cli.options import (
    DAY,
    argument,
    ask_secret,
    check_typed,
    day,
    group,
    option,
    secret_from_stdin,
    secret_in,
)
from moot.cli.printing import amount, field, line_field, price, print_table, tell
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.llm_platform.application.call_logs import By, UsageLine, UsageReport
from moot.modules.llm_platform.application.config_service import PRESETS, ConfigBody, ConfigView
from moot.modules.llm_platform.application.trial import TRIALS, Trial, try_model
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Locale
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

if TYPE_CHECKING:
    from moot.desk import Moot

Alias = Annotated[str, argument("help.llm_alias")]
Preset = Annotated[str | None, option("help.llm_preset", told={"presets": list(PRESETS)})]
BaseUrl = Annotated[str | None, option("help.llm_base_url")]
ModelName = Annotated[str | None, option("help.llm_model", "--model")]
KeyEnv = Annotated[str | None, option("help.llm_key_env", metavar="VAR")]

llm = group("help.llm")


@llm.command("list", help=say("help.llm_list"))
def list_models() -> None:
    on_desk(lambda desk: desk.llm_platform.config_service().list(), _show_models)


@llm.command("add", help=say("help.llm_add"))
def add_model(
    alias: Alias,
    preset: Preset = None,
    base_url: BaseUrl = None,
    model_name: ModelName = None,
    key_stdin: Annotated[bool, option("help.llm_key_stdin", "--key-stdin")] = False,
    key_env: KeyEnv = None,
    priority: Annotated[int | None, option("help.llm_priority")] = None,
    tags: Annotated[list[str] | None, option("help.llm_tag", "--tag")] = None,
    price_in: Annotated[float | None, option("help.llm_price_in")] = None,
    price_out: Annotated[float | None, option("help.llm_price_out")] = None,
    context_size: Annotated[int | None, option("help.llm_context_size")] = None,
    timeout: Annotated[float | None, option("help.llm_timeout")] = None,
    concurrency: Annotated[int | None, option("help.llm_concurrency")] = None,
    requests_per_minute: Annotated[int | None, option("help.llm_requests_per_minute")] = None,
    tokens_per_minute: Annotated[int | None, option("help.llm_tokens_per_minute")] = None,
    knowledge_cutoff: Annotated[str | None, option("help.llm_cutoff", metavar=DAY)] = None,
    proxy: Annotated[str | None, option("help.llm_proxy")] = None,
) -> None:
    """The platform, not the command line, decides whether it makes sense."""
    typed = {name: value for name, value in locals().items() if name in ConfigBody.model_fields}
    known = PRESETS.get(preset or "")
    with command() as settings:
        if (price_in is None) != (price_out is None):
            raise InvalidInput(SAY("llm.half_a_price"))
        typed |= {
            "model_name": model_name or (known.suggested_model if known else None),
            "api_key": _key(preset, key_stdin, key_env) or None,
            "tags": tags or None,
        }
        body = check_typed(ConfigBody, **typed)
        view = at_desk(settings, lambda desk: desk.llm_platform.config_service().create(body))
        tell("llm.added", alias=view.alias, model=view.model_name, url=view.base_url)
        if view.price_in is None:
            tell("llm.without_price")


def _key(preset: str | None, from_stdin: bool, variable: str | None) -> str:
    """Never an argument: those are seen by whoever lists the processes."""
    if from_stdin and variable:
        raise InvalidInput(SAY("llm.two_keys"))
    if from_stdin:
        return secret_from_stdin()
    if variable:
        return secret_in("--key-env", variable)
    needed = preset in PRESETS and PRESETS[preset].needs_key
    key = ask_secret(say("llm.ask_key")) if (needed or preset is None) and sys.stdin.isatty() else ""
    if needed and not key:
        raise InvalidInput(SAY("llm.key_how", preset=preset))
    return key


@llm.command("test", help=say("help.llm_test"))
def try_models(alias: Annotated[str | None, argument("help.llm_test_alias")] = None) -> None:
    """Those that can be called, or the one named. Failed is who does not even answer."""

    async def work(desk: "Moot") -> bool:
        service, currency = desk.llm_platform.llm_service(), desk.settings.currency
        all_answered = True
        for config in service.candidates(alias):
            tell("llm.testing", alias=config.alias, model=config.model_name)
            for what in TRIALS:
                trial = await try_model(service, config.alias, what, caller="cli")
                show_trial(what, trial, currency)
                if what == "plain" and trial.problem is not None:
                    all_answered = False
                    break
        return all_answered

    if not on_desk(work):
        raise typer.Exit(1)


@llm.command("remove", help=say("help.llm_remove"))
def remove_model(alias: Alias, yes: Annotated[bool, option("help.llm_yes", "--yes")] = False) -> None:
    with command() as settings:
        view = at_desk(settings, lambda desk: desk.llm_platform.config_service().get(alias))
        if not yes and not typer.confirm(say("llm.remove_sure", alias=alias, model=view.model_name)):
            tell("llm.kept", alias=alias)
            return
        at_desk(settings, lambda desk: desk.llm_platform.config_service().remove(alias))
        tell("llm.removed", alias=alias)


@llm.command("usage", help=say("help.llm_usage"))
def show_usage(
    by: Annotated[By, option("help.llm_by")] = "model",
    since: Annotated[str | None, option("help.llm_since", metavar=DAY)] = None,
) -> None:
    on_desk(
        lambda desk: desk.llm_platform.usage_service().usage(by, DEFAULT_WORKSPACE, day("--since", since)),
        _show_usage,
    )


def _show_models(views: Sequence[ConfigView]) -> None:
    """Two lines a model: there is more to say than fits side by side."""
    if not views:
        tell("llm.none", presets=list(PRESETS))
        return
    print_table(
        views,
        field("llm.column.model", lambda v: Text.assemble((v.alias, "bold"), "\n", v.model_name)),
        field("llm.column.endpoint", lambda v: f"{v.vendor}\n{v.base_url.removeprefix('https://')}"),
        field("llm.column.preference", lambda v: f"{v.priority}\n{', '.join(v.tags) or '—'}"),
        line_field(
            "llm.column.price",
            lambda v: "\n".join("—" if cost is None else f"{cost:g}" for cost in (v.price_in, v.price_out)),
            justify="right",
        ),
        line_field("llm.column.key", lambda v: f"{v.api_key or '—'}\n{say(f'llm.source.{v.source}')}"),
        line_field("llm.column.state", _state),
    )


def _state(view: ConfigView) -> str:
    """And what holds for its requests: how long, how many at once, and how much a minute."""
    state = say(f"llm.state.{'locked' if view.unreadable else 'on' if view.is_active else 'off'}")
    limits = {name: getattr(view, f"{name}_per_minute") for name in ("requests", "tokens")}
    a_minute = [say(f"llm.a_minute.{name}", count=count) for name, count in limits.items() if count]
    one = f"{view.timeout:g} s{f' ×{view.concurrency}' if view.concurrency else ''}"
    return "\n".join([state, one, *a_minute])


def _show_usage(report: UsageReport) -> None:
    if not report.lines:
        tell("llm.unused")
        return
    total = UsageLine(name=say("llm.usage.all"), mean_latency_ms=None, **dict(report.total))
    cells: dict[str, Callable[[Any], str]] = {
        "calls": lambda used: f"{used.calls:,}",
        "failed": lambda used: f"{used.failed:,}",
        "prompt": lambda used: f"{used.prompt_tokens:,}",
        "completion": lambda used: f"{used.completion_tokens:,}",
        "total": lambda used: f"{used.total_tokens:,}",
        "cost": lambda used: f"{amount(used.cost)} {report.currency}",
        "unknown": lambda used: f"{used.cost_unknown:,}",
        "latency": lambda used: "—" if used.mean_latency_ms is None else f"{used.mean_latency_ms:,.0f} ms",
    }
    print_table(
        [*report.lines, total],
        field(f"llm.by.{report.by}", lambda line: line.name),
        *(field(f"llm.usage.{name}", cell, justify="right") for name, cell in cells.items()),
        summed=True,
    )
    if report.total.cost_unknown:
        tell("llm.some_unknown", count=report.total.cost_unknown)


def show_trial(what: str, trial: Trial, currency: str, locale: Locale | None = None) -> None:
    """In the language of the terminal, unless another is named. A cost is unknown for want of price or counts."""
    named, answer = SAY(f"llm.trial.{what}"), trial.answer
    said = SAY("llm.trial_failed", what=named, why=trial.problem)
    if answer is not None:
        counts = (answer.usage.prompt_tokens, answer.usage.completion_tokens)
        prompt, completion = ("?" if tokens is None else f"{tokens:,}" for tokens in counts)
        cost = SAY("llm.no_usage") if counts[0] is None else price(answer.cost, currency)
        took = {"ms": trial.latency_ms, "prompt": prompt, "completion": completion, "cost": cost}
        said = SAY("llm.trial_passed", what=named, **took)
    typer.echo(said.in_locale(locale or environment_locale()))
