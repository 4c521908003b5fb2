"""`moot llm`: the models of the desk, whether they work, and what they used."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from moot.cli.arguments import ask_secret, day, secret_from_stdin, secret_in
from moot.cli.model_trial import show_trial, try_plain, try_schema, try_tools
from moot.cli.money import amount
from moot.cli.on_desk import at_desk, on_desk
from moot.cli.outcome import command
from moot.cli.texts import SAY, environment_locale, say
from moot.desk import Moot
from moot.modules.llm_platform.application.config_service import PRESETS, ConfigBody, ConfigView
from moot.modules.llm_platform.application.spending import By, UsageReport
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.validation import checked
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE


class Entry(NamedTuple):
    """What was typed about a new model. The platform, not the command line, decides whether it makes sense."""

    alias: str
    preset: str | None = None
    base_url: str | None = None
    model_name: str | None = None
    priority: int | None = None
    tags: list[str] | None = None
    price_in: float | None = None
    price_out: float | None = None
    context_size: int | None = None
    knowledge_cutoff: str | None = None
    proxy: str | None = None

    @property
    def needs_key(self) -> bool:
        return self.preset in PRESETS and PRESETS[self.preset].needs_key

    def body(self, key: str) -> ConfigBody:
        suggested = PRESETS[self.preset].suggested_model if self.preset in PRESETS else None
        typed = {**self._asdict(), "model_name": self.model_name or suggested, "api_key": key or None}
        return checked(ConfigBody, {name: value for name, value in typed.items() if value is not None})


def list_models() -> None:
    async def work(desk: Moot) -> list[ConfigView]:
        return await desk.llm_platform.config_service().list()

    views = on_desk(work)
    if not views:
        typer.echo(say("llm.none", presets=list(PRESETS)))
        return
    Console().print(_models(views))


def _models(views: Sequence[ConfigView]) -> Table:
    """Two lines a model: there is more to say than fits side by side."""
    columns = [
        Column(say("llm.column.model"), overflow="fold"),
        Column(say("llm.column.endpoint"), overflow="fold"),
        Column(say("llm.column.preference")),
        Column(say("llm.column.price"), justify="right", no_wrap=True),
        Column(say("llm.column.key"), no_wrap=True),
        Column(say("llm.column.state"), no_wrap=True),
    ]
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for view in views:
        table.add_row(
            Text.assemble((view.alias, "bold"), "\n", view.model_name),
            Text(f"{view.vendor}\n{view.base_url.removeprefix('https://')}"),
            Text(f"{view.priority}\n{', '.join(view.tags) or '—'}"),
            f"{_price(view.price_in)}\n{_price(view.price_out)}",
            Text(f"{view.api_key or '—'}\n{say(f'llm.source.{view.source}')}"),
            say(f"llm.state.{_state(view)}"),
        )
    return table


def _state(view: ConfigView) -> str:
    return "locked" if view.unreadable else "on" if view.is_active else "off"


def _price(price: float | None) -> str:
    return "—" if price is None else f"{price:g}"


def add_model(entry: Entry, *, key_stdin: bool, key_env: str | None) -> None:
    with command() as settings:
        if (entry.price_in is None) != (entry.price_out is None):
            raise InvalidInput(SAY("llm.half_a_price"))
        body = entry.body(_key(entry, key_stdin, key_env))

        async def work(desk: Moot) -> ConfigView:
            return await desk.llm_platform.config_service().create(body)

        view = at_desk(settings, work)
        typer.echo(say("llm.added", alias=view.alias, model=view.model_name, url=view.base_url))
        if view.price_in is None:
            typer.echo(say("llm.without_price"))


def _key(entry: Entry, from_stdin: bool, variable: str | None) -> str:
    """Never an argument: those are seen by whoever lists the processes."""
    if from_stdin and variable:
        raise InvalidInput(SAY("llm.two_keys"))
    if from_stdin:
        return secret_from_stdin()
    if variable:
        return secret_in("--key-env", variable)
    asked = entry.needs_key or entry.preset is None
    key = ask_secret(say("llm.ask_key")) if asked and sys.stdin.isatty() else ""
    if entry.needs_key and not key:
        raise InvalidInput(SAY("llm.key_how", preset=entry.preset))
    return key


def try_models(alias: str | None) -> None:
    """Those that can be called, or the one named. Failed is who does not even answer."""
    reader = environment_locale()
    with command() as settings:

        async def work(desk: Moot) -> bool:
            llm = desk.llm_platform.llm_service()
            answered = []
            for config in llm.candidates(alias):
                typer.echo(say("llm.testing", alias=config.alias, model=config.model_name))
                plain = await try_plain(llm, config.alias)
                show_trial("plain", plain, settings.currency, reader)
                answered.append(plain.problem is None)
                if answered[-1]:
                    show_trial("schema", await try_schema(llm, config.alias), settings.currency, reader)
                    show_trial("tools", await try_tools(llm, config.alias), settings.currency, reader)
            return all(answered)

        if not at_desk(settings, work):
            raise typer.Exit(1)


def remove_model(alias: str, *, sure: bool) -> None:
    with command() as settings:

        async def look(desk: Moot) -> ConfigView:
            return await desk.llm_platform.config_service().get(alias)

        async def remove(desk: Moot) -> None:
            await desk.llm_platform.config_service().remove(alias)

        view = at_desk(settings, look)
        if not sure and not typer.confirm(say("llm.remove_sure", alias=alias, model=view.model_name)):
            typer.echo(say("llm.kept", alias=alias))
            return
        at_desk(settings, remove)
        typer.echo(say("llm.removed", alias=alias))


def show_usage(by: By, since: str | None) -> None:
    async def work(desk: Moot) -> UsageReport:
        return await desk.llm_platform.usage_service().usage(by, DEFAULT_WORKSPACE, day("--since", since))

    report = on_desk(work)
    if not report.lines:
        typer.echo(say("llm.unused"))
        return
    Console().print(_usage(report))
    if report.total.cost_unknown:
        typer.echo(say("llm.some_unknown", count=report.total.cost_unknown))


def _usage(report: UsageReport) -> Table:
    names = ("calls", "failed", "prompt", "completion", "total", "cost", "unknown", "latency")
    columns = [Column(say(f"llm.usage.{name}"), justify="right") for name in names]
    first = Column(say(f"llm.by.{report.by}"), overflow="fold")
    table = Table(first, *columns, box=None, pad_edge=False, header_style="bold")
    for line in report.lines:
        latency = "—" if line.mean_latency_ms is None else f"{line.mean_latency_ms:,.0f} ms"
        table.add_row(line.name, *_used(line.model_dump(), report.currency), latency)
    table.add_row(say("llm.usage.all"), *_used(report.total.model_dump(), report.currency), "", style="bold")
    return table


def _used(used: Mapping[str, Any], currency: str) -> list[str]:
    counted = ("calls", "failed", "prompt_tokens", "completion_tokens", "total_tokens")
    counts = [f"{used[name]:,}" for name in counted]
    return [*counts, f"{amount(used['cost'])} {currency}", f"{used['cost_unknown']:,}"]
