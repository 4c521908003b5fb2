"""Sessions side by side: shares, days or engines, whatever they differ in."""

from collections.abc import Sequence
from typing import NamedTuple

from fastapi import APIRouter, Response

from moot.modules.coordinator.application.report import spending
from moot.modules.coordinator.application.session_history import (
    ResearchSession,
    SessionDetail,
    SessionFilter,
    SessionHistory,
)
from moot.shared.domain.errors import AppError, InvalidInput
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import Company
from moot.web.page import SAY, Flaws, Page, Reader
from moot.web.reading import Reading
from moot.web.sessions import find_company

router = APIRouter()

FEWEST, MOST = 2, 4
OFFERED = 12


class Column(NamedTuple):
    """A session in the comparison. Without a `reading` it has not ended."""

    session: SessionDetail
    company: Company | None
    reading: Reading | None
    engines: Sequence[str]
    spent: str

    @property
    def experts(self) -> list[ExpertType]:
        return list(self.reading.result.expert_results) if self.reading else self.session.experts

    @property
    def pulls(self) -> dict[str, float]:
        """By dimension, how far it leans."""
        argument = self.reading.case.argument if self.reading else None
        return dict(argument.dimensions) if argument else {}


@router.get("/compare")
async def compare(page: Reader) -> Response:
    """`s`: a session by its id or the beginning of it, or a share, which is its newest session."""
    asked = [text.strip() for text in page.request.query_params.getlist("s") if text.strip()]
    history, flaws, columns = page.desk.coordinator.session_history(), Flaws(), list[Column]()
    try:
        if len(asked) > MOST:
            raise InvalidInput(SAY("compare.too_many", most=MOST), field="s")
        columns = [await _column(page, history, await _mean(page, history, text)) for text in asked]
    except AppError as e:
        flaws = Flaws(e.in_locale(page.locale), frozenset({"s"}))
    recent = await history.sessions(SessionFilter(workspace_id=page.workspace, page_size=OFFERED))
    return page.render(
        "compare.html",
        status=400 if flaws.message else 200,
        flaws=flaws,
        asked=asked + [""] * (MOST - len(asked)),
        columns=columns,
        enough=len(columns) >= FEWEST,
        recent=recent.items,
        experts=[expert for expert in ExpertType if any(expert in column.experts for column in columns)],
        dimensions=_dimensions(columns),
    )


async def _mean(page: Page, history: SessionHistory, text: str) -> ResearchSession:
    """A session by its id first: a share has no such name."""
    try:
        return await history.session(await history.find(text, page.workspace), page.workspace)
    except AppError:
        wanted = SessionFilter(workspace_id=page.workspace, symbol=text, page_size=1)
        found = (await history.sessions(wanted)).items
    if not found:
        raise InvalidInput(SAY("compare.unknown", text=text), field="s")
    return found[0]


async def _column(page: Page, history: SessionHistory, one: ResearchSession) -> Column:
    session = await history.session(one.id, page.workspace)
    company = await find_company(page, session.symbol)
    if not session.ended:
        return Column(session, company, None, (), "")
    reading = Reading(await history.result(session.id, page.workspace), page.locale)
    engines = {part["engine"] for part in reading.case.parts.values() if part.get("engine")}
    return Column(session, company, reading, sorted(engines), spending(reading.result, reading.words))


def _dimensions(columns: Sequence[Column]) -> list[tuple[str, str]]:
    """By their ids, as claims about them are called in the reader's language."""
    names: dict[str, str] = {}
    for column in columns:
        for group in column.reading.ledger if column.reading else ():
            claim = group.lines[0].claim
            names.setdefault(f"{claim.expert.prefix}.{claim.dimension}", group.name)
    return list(names.items())
