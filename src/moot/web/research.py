"""Asking for research: one form, the same body and the same check as everywhere."""

from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Response
from starlette.datastructures import ImmutableMultiDict

from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.market_data.application.directory import Match
from moot.shared.domain.brief import MOST_ROUNDS
from moot.shared.domain.claims import HORIZONS
from moot.shared.domain.errors import AppError, Conflict, InvalidInput, TooManyRequests, Unavailable
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.validation import number_or_text
from moot.web.page import Form, Page, Reader

router = APIRouter()

STARTED_BY = "console"
MOST_SUGGESTED = 8
HOLDER = "holder."
"""How the names of fields begin that tell for whom it is, as they are called when one is refused."""
ANSWERED = (InvalidInput, Conflict, TooManyRequests, Unavailable)
"""What a person can do something about is told beside the form."""


def service_of(page: Page) -> ResearchOrchestrationService:
    return page.desk.coordinator.research_orchestration_service()


def sign(page: Page) -> dict[str, Any]:
    """In whose name something is begun."""
    page.desk.work()
    return {"trigger_source": STARTED_BY, "workspace": page.workspace, "requested_by": page.caller}


@router.get("/research")
async def ask(page: Reader) -> Response:
    return _show(page, page.request.query_params)


@router.post("/research")
async def begin(page: Reader, form: Form) -> Response:
    try:
        session = await service_of(page).start(_read(form, page), **sign(page))
    except ANSWERED as e:
        return _show(page, form, error=e)
    return page.go(f"/sessions/{session.id}")


@router.get("/research/symbols")
async def suggest(page: Reader, symbol: str = "") -> Response:
    """Companies that what was typed so far may mean."""
    found: list[Match] = []
    if symbol.strip():
        with suppress(AppError):  # a hint that cannot be had is no reason to disturb whoever types
            found = await page.desk.market_data.directory().find(symbol, limit=MOST_SUGGESTED)
    return page.render("suggestions.html", companies=[match.company for match in found])


def _show(page: Page, given: ImmutableMultiDict[str, str] | Any, error: AppError | None = None) -> Response:
    return page.render(
        "research.html",
        error=error,
        status=400 if error else 200,
        given=given,
        chosen=given.getlist("experts") or list(ExpertType),
        candidates=error.details.get("candidates", []) if error else [],
        experts=list(ExpertType),
        horizons=HORIZONS,
        rounds=range(1, MOST_ROUNDS + 1),
    )


def _read(form: ImmutableMultiDict[str, str], page: Page) -> dict[str, Any]:
    """A body as a program would send it."""
    body: dict[str, Any] = {"symbol": form.get("symbol", ""), "locale": form.get("locale", page.locale)}
    body["experts"] = form.getlist("experts") or list(ExpertType)
    if "as_of" in form:
        body["as_of"] = form["as_of"]
    body |= {name: number_or_text(form[name]) for name in ("rounds", "horizon", "max_cost") if name in form}
    if "skip_debate" in form:
        body["skip_debate"] = True
    if "holding" in form:
        told: dict[str, Any] = {
            name.removeprefix(HOLDER): form[name] for name in form if name.startswith(HOLDER)
        }
        if "cost" in told:
            told["cost"] = number_or_text(told["cost"])
        body["holder"] = {"holding": True, **told}
    return body
