"""Asking for research: one form, the same body and the same check as everywhere."""

from datetime import date
from typing import Any

from fastapi import APIRouter, Response
from starlette.datastructures import ImmutableMultiDict

from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.shared.domain.errors import AppError, Conflict, InvalidInput, TooManyRequests, Unavailable
from moot.shared.domain.experts import ExpertType
from moot.web.page import NO_FLAWS, Flaws, Form, Page, Reader

router = APIRouter()

STARTED_BY = "console"
HORIZONS = (5, 20, 60)
ROUNDS = (1, 2, 3)
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
    try:
        found = (
            await page.desk.market_data.directory().find(symbol, limit=MOST_SUGGESTED)
            if symbol.strip()
            else []
        )
    except AppError:  # a hint that cannot be had is no reason to disturb whoever types
        found = []
    return page.render("suggestions.html", companies=[match.company for match in found])


def _show(page: Page, given: ImmutableMultiDict[str, str] | Any, error: AppError | None = None) -> Response:
    flaws = Flaws.of(error, page) if error else NO_FLAWS
    candidates = error.details.get("candidates", []) if error else []
    chosen = given.getlist("experts") or list(ExpertType)
    return page.render(
        "research.html",
        status=400 if error else 200,
        given=given,
        chosen=chosen,
        flaws=flaws,
        candidates=candidates,
        experts=list(ExpertType),
        horizons=HORIZONS,
        rounds=ROUNDS,
        today=date.max,
    )


def _read(form: ImmutableMultiDict[str, str], page: Page) -> dict[str, Any]:
    """A body as a program would send it; what is no number is left for the check to refuse."""
    body: dict[str, Any] = {"symbol": form.get("symbol", ""), "locale": form.get("locale", page.locale)}
    body["experts"] = form.getlist("experts") or list(ExpertType)
    body |= {name: form[name] for name in ("as_of",) if name in form}
    body |= {name: _figure(form[name]) for name in ("rounds", "horizon", "max_cost") if name in form}
    if "skip_debate" in form:
        body["skip_debate"] = True
    if "holding" in form:
        told = {name.removeprefix(HOLDER): form[name] for name in form if name.startswith(HOLDER)}
        body["holder"] = {"holding": True, **told} | (
            {"cost": _figure(told["cost"])} if "cost" in told else {}
        )
    return body


def _figure(text: str) -> float | int | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
