"""The report: what came of a session, why, and what it rests on; contesting it; taking it along as a file."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Response
from starlette.datastructures import ImmutableMultiDict

from moot.modules.coordinator.application.contest import ContestResult
from moot.modules.coordinator.application.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.application.report import render_page, render_report, spending, tell_ages
from moot.modules.coordinator.application.report_pdf import render_pdf
from moot.modules.coordinator.application.results import notices
from moot.modules.coordinator.application.session_history import SessionDetail
from moot.modules.coordinator.presentation.rest.research_routes import Found, OneSession
from moot.modules.coordinator.presentation.rest.session_routes import AS_TEXT_ONLY
from moot.modules.governance.application.decision_log import DecisionRecord, explain
from moot.shared.domain.errors import AppError, NotFound
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import number_or_text
from moot.web.drawings import Prices, price_chart
from moot.web.page import SAY, Form, Page, Reader
from moot.web.reading import DEGREES, LEVELS, RANGES, Reading, first_day
from moot.web.sessions import find_company

router = APIRouter()

FILES: dict[str, tuple[str, Callable[[ResearchResult], str | bytes]]] = {
    "md": ("text/markdown", render_report),
    "html": ("text/html", render_page),
    "pdf": ("application/pdf", render_pdf),
    "json": ("application/json", lambda result: result.model_dump_json()),
}


@router.get("/sessions/{session_id}/report")
async def show_report(page: Reader, one: OneSession) -> Response:
    """Of a session that has not ended, the session."""
    session = await one.history.session(*one.about)
    if not session.ended:
        return page.go(f"/sessions/{session.id}")
    reading = Reading(await one.history.result(*one.about), page.locale)
    decisions = await read_decisions(page, session.id)
    prices = reading.prices(await _bars(page, reading.result), _names(page, "report.level", LEVELS))
    return page.render(
        "report.html",
        session=session,
        reading=reading,
        company=await find_company(page, session.symbol),
        moved=await _moved(page, session),
        ruled=[tell_decision(record, page) for record in decisions if has_something_to_say(record)],
        warnings=_others(reading, decisions),
        told=notices(session.symbol, page.locale),
        ages=list(tell_ages(reading.result, reading.words)),
        spent=spending(reading.result, reading.words),
        prices=prices,
        price_svg=price_chart(prices, page.say("report.chart")),
        chart=_as_json(prices),
        value_names=_names(page, "report.range", RANGES),
        degrees=DEGREES,
        files=FILES,
    )


@router.post("/sessions/{session_id}/contest")
async def contest(page: Reader, one: OneSession, form: Form) -> Response:
    """On the record as a session of its own; with a script what moved is put into the page."""
    found = await page.desk.coordinator.contest_service().contest(
        one.about[0], read_moves(form), workspace=page.workspace, requested_by=page.caller
    )
    if "hx-request" in page.request.headers:
        return page.render("report_moved.html", moved=found)
    return page.go(f"/sessions/{found.after.session_id}/report")


@router.get("/sessions/{session_id}/files/report.{kind}")
async def give_file(page: Reader, one: OneSession, kind: str) -> Response:
    """In the session's language, as the command line writes it."""
    if kind not in FILES:
        raise NotFound(SAY("report.no_such_file", kind=kind, kinds=list(FILES)))
    result = await one.history.result(*one.about)
    media_type, render = FILES[kind]
    headers = {**AS_TEXT_ONLY, "Content-Language": result.locale, "Content-Disposition": _attach(one, kind)}
    return Response(render(result), media_type=media_type, headers=headers)


@router.post("/sessions/{session_id}/pack")
async def give_pack(page: Reader, one: OneSession) -> Response:
    """Everything on record, in one file that proves itself."""
    packed = await page.desk.coordinator.session_packs().pack(*one.about, page.locale)
    headers = {"Content-Disposition": _attach(one, "zip")}
    return Response(packed.data, media_type="application/zip", headers=headers)


def _attach(one: Found, kind: str) -> str:
    return f'attachment; filename="moot-{str(one.about[0])[:8]}.{kind}"'


def read_moves(form: ImmutableMultiDict[str, str]) -> list[dict[str, Any]]:
    """What was ticked, weighed otherwise or answered; what is no number is left for the check to refuse."""
    struck = form.getlist("strike")
    moves: list[dict[str, Any]] = [{"move": "strike", "claim": claim} for claim in struck]
    weighed = {
        name.removeprefix("weigh "): value for name, value in form.items() if name.startswith("weigh ")
    }
    moves += [
        {"move": "strength", "claim": claim, "strength": number_or_text(value, [float])}
        for claim, value in weighed.items()
        if claim not in struck
    ]
    if "says" in form:
        answer = {name: form[name] for name in ("claim", "says", "kind") if name in form}
        moves.insert(0, {"move": "add", **answer})
    return moves


async def read_decisions(page: Page, session_id: UUID) -> Sequence[DecisionRecord]:
    return await page.desk.governance.decisions.of_session(session_id, page.workspace)


def has_something_to_say(record: DecisionRecord) -> bool:
    return record.status != "approved" or bool(record.result.violations or record.result.notes)


def tell_decision(record: DecisionRecord, page: Page) -> str:
    """How it ended and why, and what the rules advise."""
    advice = (violation.suggestion for violation in record.result.violations if violation.corrected)
    return " ".join([explain(record).in_locale(page.locale), *dict.fromkeys(filter(None, advice))])


def _others(reading: Reading, decisions: Iterable[DecisionRecord]) -> list[str]:
    """What else is to be known of the verdict: what the rules changed is told by their decisions."""
    told = [explain(record).in_locale(reading.result.locale) for record in decisions]
    return [text for text in reading.verdict.get("warnings", []) if not any(said in text for said in told)]


async def _moved(page: Page, session: SessionDetail) -> ContestResult | None:
    """Of a what-if, what it moved."""
    if not session.contest:
        return None
    with suppress(AppError):
        return await page.desk.coordinator.contest_service().recall(session.id, page.workspace)
    return None


async def _bars(page: Page, result: ResearchResult) -> Sequence[DailyBar]:
    """As they were known then; none where they cannot be had."""
    symbol, as_of = Symbol.parse(result.symbol), result.as_of
    with suppress(AppError):
        if as_of is not None:
            until = symbol.local_date(as_of)
            market = page.desk.market_data.market_data()
            return await market.daily_bars(symbol, first_day(result), until, as_of=as_of, adjusted=True)
    return []


def _names(page: Page, table: str, names: Iterable[str]) -> dict[str, str]:
    return {name: page.say(f"{table}.{name}") for name in names}


def _as_json(prices: Prices) -> dict[str, Any]:
    """For the script that lets it be moved; of closes alone the drawing shows all there is."""
    return {
        "candles": [[str(day), *figures] for day, *figures in prices.candles if prices.candles[-1].volume],
        "averages": {name: [[str(day), at] for day, at in line] for name, line in prices.averages.items()},
        "levels": prices.levels,
        "events": [[str(event.day), event.number, event.side] for event in prices.events],
    }
