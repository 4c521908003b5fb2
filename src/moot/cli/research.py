"""`moot research`: ask the desk about a share, or about several at once, and show what it found. `moot expert`: ask
one of its experts alone.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group, RenderableType

from moot.cli import options
from moot.cli.command import at_desk, command, error_body, log_file, name_share
from moot.cli.options import AsJson, argument, list_typed, number, option
from moot.cli.printing import Prose, amount, count_up, field, line_field, price, print_json, print_table, tell
from moot.cli.research_view import (
    describe_ruling,
    list_warnings,
    progress_console,
    progress_for,
    show_expert,
    show_result,
    tell_lines,
)
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.coordinator.application.dtos.research_dtos import EXPERTS
from moot.modules.coordinator.application.report_words import Wording
from moot.shared.domain.errors import AppError, InvalidInput, Unavailable
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Locale, Message, locale_of
from moot.shared.infrastructure.settings import Settings, split_names

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from moot.desk import Moot
    from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
    from moot.modules.coordinator.application.run import Watch
    from moot.modules.llm_platform.application.call_logs import Estimate

    Outcome = tuple[str, ResearchResult | AppError]
    """A symbol, and what came of it."""
    Run = Callable[[Moot, Watch | None], Awaitable[ResearchResult]]

AT_ONCE = 4
"""Sessions of one command that run side by side: more would only wait for one another's models."""
HOLDER = say("usage.holder")
Limit = Annotated[str | None, option("help.limit", metavar="N")]
MaxCost = Annotated[str | None, option("help.max_cost", metavar="X")]
AFTER_THE_EXPERTS = [["bull_advocate", "bear_advocate"], ["resolution"], ["verdict"]]
"""Who speaks next, and who at the same time, unless the debate is skipped."""


def research(
    symbols: Annotated[list[str], argument("help.symbols", metavar="SYMBOL")],
    experts: options.Experts = options.EVERYBODY,
    as_of: options.AsOf = None,
    skip_debate: options.SkipDebate = False,
    limit: Limit = None,
    locale: options.Language = None,
    rounds: options.Rounds = None,
    over: options.Over = None,
    max_cost: MaxCost = None,
    holding: Annotated[bool, option("help.holding", "--holding", rich_help_panel=HOLDER)] = False,
    cost: Annotated[str | None, option("help.cost", metavar="X", rich_help_panel=HOLDER)] = None,
    horizon: Annotated[str | None, option("help.horizon", rich_help_panel=HOLDER)] = None,
    risk: Annotated[str | None, option("help.risk", rich_help_panel=HOLDER)] = None,
    as_json: AsJson = False,
) -> None:
    """The desk, not the command line, decides whether what was typed makes sense."""
    with command(locale, as_json=as_json) as settings:
        asked = word_question(split_names(experts), as_of, limit, locale, max_cost) | {
            "skip_debate": skip_debate,
            "rounds": number(rounds),
            "horizon": number(over),
            "holder": describe_holder(holding, cost, horizon, risk),
        }
        if len(symbols) > 1 or symbols == ["-"]:
            research_many(settings, list_typed(symbols), asked, as_json=as_json)
            return

        ask_one = partial(research_one, text=symbols[0], asked=asked, as_json=as_json)
        run_and_show(settings, asked, ask_one, as_json=as_json)


def expert(
    name: Annotated[
        str,
        argument(
            "help.one_expert", metavar="NAME", told={"experts": ", ".join(e.prefix for e in ExpertType)}
        ),
    ],
    symbol: Annotated[str, argument("help.symbol", metavar="SYMBOL")],
    as_of: options.AsOf = None,
    limit: Limit = None,
    locale: options.Language = None,
    max_cost: MaxCost = None,
    as_json: AsJson = False,
) -> None:
    """A session like any other, of one expert and without a debate."""
    with command(locale, as_json=as_json) as settings:
        chosen = next((one.value for one in ExpertType if name in (one, one.prefix)), name)
        asked = word_question([chosen], as_of, limit, locale, max_cost) | {"skip_debate": True}
        with progress_for(progress_console(as_json=as_json), asked, quiet=as_json) as watch:
            ask_one = partial(research_one, watch=watch, text=symbol, asked=asked, as_json=as_json)
            result = at_desk(settings, ask_one)
        if as_json:
            print_json(result)
        else:
            show_expert(Console(), result)


def word_question(
    experts: list[str], as_of: str | None, limit: str | None, locale: str | None, max_cost: str | None
) -> dict[str, Any]:
    return {
        "experts": experts,
        "options": {"financial_auditor": {"limit": number(limit)}} if limit else {},
        "as_of": as_of,
        "locale": locale or environment_locale(),
        "max_cost": number(max_cost),
    }


async def research_one(
    desk: Moot, watch: Watch | None, *, text: str, asked: dict[str, Any], as_json: bool
) -> ResearchResult:
    symbol = await name_share(desk, text, as_json=as_json)  # before anything heavy is loaded
    await estimate_first(desk, asked, as_json=as_json)
    return await desk.research(symbol, **asked, watch=watch)


def describe_holder(
    holding: bool, cost: str | None, horizon: str | None, risk: str | None
) -> dict[str, Any] | None:
    """None where nothing is told. What somebody paid for they hold."""
    told = {"cost": number(cost), "horizon": horizon, "risk": risk}
    holder = {name: value for name, value in told.items() if value is not None}
    if holding or cost:
        holder["holding"] = True
    return holder or None


def run_and_show(settings: Settings, asked: dict[str, Any], run: Run, *, as_json: bool) -> None:
    """What is `asked`: the experts, whether they debate, and the locale."""

    async def work(desk: Moot) -> tuple[ResearchResult, Path | OSError]:
        result = await run(desk, watch)
        return result, write_report(desk, result)

    with progress_for(progress_console(as_json=as_json), asked, quiet=as_json) as watch:
        result, report = at_desk(settings, work)
    if as_json:
        print_json(result)
    else:
        show_result(Console(), result, report, log_file(settings))


def write_report(desk: Moot, result: ResearchResult) -> Path | OSError:
    """A report that cannot be written does not keep the result from being shown."""
    try:
        return desk.write_report(result)
    except OSError as e:
        return e


def research_many(settings: Settings, texts: Sequence[str], asked: dict[str, Any], *, as_json: bool) -> None:
    """Every symbol is understood before the first is researched; one that fails does not stop the others."""
    say = Wording(locale_of(asked["locale"]))
    console, turns, done = progress_console(as_json=as_json), asyncio.Semaphore(AT_ONCE), count(1)
    quiet = as_json or console.is_terminal

    async def work(desk: Moot) -> list[Outcome]:
        symbols = list(dict.fromkeys([await name_share(desk, text, as_json=as_json) for text in texts]))
        await estimate_first(desk, asked, as_json=as_json, count=len(symbols))

        async def ask(symbol: str) -> Outcome:
            async with turns:
                watch = None if quiet else tell_lines(console, say, symbol)
                try:
                    result = await desk.research(symbol, **asked, watch=watch)
                    write_report(desk, result)
                    return symbol, result
                except AppError as e:
                    return symbol, e
                finally:
                    count_to(next(done))

        with count_up("", len(symbols)) as count_to:
            return list(await asyncio.gather(*map(ask, symbols)))

    outcomes = at_desk(settings, work)
    errors = [found for _, found in outcomes if isinstance(found, AppError)]
    if len(errors) == len(outcomes) and all(isinstance(error, InvalidInput) for error in errors):
        raise errors[0]
    if as_json:
        print_json([_body(*outcome, say.locale) for outcome in outcomes])
    else:
        print_table(
            outcomes,
            line_field("sessions.column.symbol", lambda outcome: outcome[0]),
            field("sessions.column.verdict", lambda outcome: _summarise(outcome[1], say)),
            line_field("sessions.column.id", lambda outcome: _short_id(outcome[1])),
        )
        told = (found.notices for _, found in outcomes if not isinstance(found, AppError))
        for notice in dict.fromkeys(chain.from_iterable(told)):
            typer.echo(notice)
        tell("research.reports", path=settings.home.expanduser() / "reports")
    if errors:
        raise typer.Exit(1)


def _body(symbol: str, found: ResearchResult | AppError, locale: Locale) -> Any:
    if not isinstance(found, AppError):
        return found
    return {"symbol": symbol, **error_body(found, locale).model_dump(mode="json")}


def _summarise(found: ResearchResult | AppError, say: Wording) -> RenderableType:
    if isinstance(found, AppError):
        return Prose(found.in_locale(say.locale), style="red")
    return Group(describe_ruling(found, say), *list_warnings(found))


def _short_id(found: ResearchResult | AppError) -> str:
    """Enough to name it by: commands take the beginning of an id."""
    known = found.details.get("session_id") if isinstance(found, AppError) else found.session_id
    return str(known or "—")[:8]


async def estimate_first(desk: Moot, asked: dict[str, Any], *, as_json: bool, count: int = 1) -> None:
    """Tell what the models are likely to take for each of `count` sessions, and refuse what is too dear."""
    estimate = await estimate_of(desk, asked["experts"], skip_debate=asked["skip_debate"])
    if estimate is None:
        return
    locale = locale_of(asked["locale"])
    text = _describe(estimate).in_locale(locale)
    if count > 1:
        text = SAY("research.each", estimate=text, count=count).in_locale(locale)
    console = progress_console(as_json=as_json)
    console.print(text, soft_wrap=True, markup=False, highlight=False)
    _refuse_too_dear(estimate, asked["max_cost"])


async def estimate_of(desk: Moot, experts: Sequence[str], *, skip_debate: bool) -> Estimate | None:
    """What the models are likely to take; None when no model is asked, or nobody can tell."""
    if not desk.llm_platform.engine_choice().by_model:
        return None
    asked = [name for name in experts if name in EXPERTS]
    stages = [asked] if skip_debate else [asked, *AFTER_THE_EXPERTS]
    try:
        model = desk.llm_platform.llm_service().candidates()[0]
        agents = [agent for stage in stages for agent in stage]
        return await desk.llm_platform.usage_service().estimate(agents, model, stages)
    except Unavailable:  # the run itself will say what is missing, or do without
        return None


def _describe(estimate: Estimate) -> Message:
    return SAY(
        "research.estimate",
        calls=estimate.calls,
        tokens=estimate.tokens,
        cost=price(estimate.cost, estimate.currency),
        seconds=round(estimate.seconds),
        basis=SAY("research.measured" if estimate.measured else "research.typical"),
    )


def _refuse_too_dear(estimate: Estimate, limit: Any) -> None:
    """A limit that is no number is refused by the desk, a model without a price by the budget."""
    if estimate.cost is not None and isinstance(limit, int | float) and estimate.cost > limit > 0:
        told = {"cost": amount(estimate.cost), "limit": f"{limit:g}", "currency": estimate.currency}
        said = SAY("research.too_dear", **told)
        raise InvalidInput(said, code="ESTIMATE_EXCEEDS_MAX_COST", estimate=estimate.cost, max_cost=limit)
