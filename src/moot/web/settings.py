"""Settings: models and whether they work, sources, keys, budgets, who is told. A new key is shown once."""

from contextlib import suppress
from datetime import UTC
from typing import Any

from fastapi import APIRouter, Response

from moot.modules.access.application import SCOPES, ApiKey
from moot.modules.llm_platform.application.trial import TRIALS, Trial, try_model
from moot.shared.domain.errors import AppError, InvalidInput, NotFound, Unavailable
from moot.shared.infrastructure.execution_context import ExecutionContext
from moot.web.page import Form, Page, Reader

router = APIRouter()

BUDGETS = ("session_tokens", "session_cost", "day_tokens", "day_cost")
CALLER = "console"


@router.get("/settings")
async def show(page: Reader) -> Response:
    return await _show(page)


@router.post("/settings/models/test")
async def try_out(page: Reader, form: Form) -> Response:
    """Asked the same as `moot llm test` asks; a model that does not even answer is not asked more."""
    alias, llm = form.get("alias", ""), page.desk.llm_platform.llm_service()
    await page.desk.llm_platform.config_service().get(alias, page.workspace)
    trials: dict[str, Trial] = {}
    with ExecutionContext(workspace=page.workspace, caller=page.caller or "").active():
        for what in TRIALS:
            trials[what] = await try_model(llm, alias, what, caller=CALLER)
            if trials["plain"].problem is not None:
                break
    if "hx-request" in page.request.headers:
        return page.render("trials.html", trials=trials, currency=page.desk.settings.currency)
    return await _show(page, tried=alias, trials=trials)


@router.post("/settings/keys")
async def make_key(page: Reader, form: Form) -> Response:
    """For the workspace of whoever makes it. Not sent on to another page: there it could not be shown."""
    try:
        issued = await page.desk.access.create(form.get("name", ""), form.getlist("scopes"), page.workspace)
    except InvalidInput as e:
        return await _show(page, given=form, error=e)
    return await _show(page, issued=issued)


@router.post("/settings/keys/revoke")
async def revoke_key(page: Reader, form: Form) -> Response:
    mine = {key.id for key in await _keys(page)}
    if form.get("id") not in mine:
        return await _show(page, error=NotFound(page.say("settings.no_such_key")))
    await page.desk.access.revoke(form["id"])
    return page.go("/settings")


async def _keys(page: Page) -> list[ApiKey]:
    """Those of the reader's workspace: nobody sees, makes or revokes keys of another one."""
    with suppress(Unavailable):
        return [key for key in await page.desk.access.list() if key.workspace_id == page.workspace]
    return []


async def _show(page: Page, *, given: Any = None, error: AppError | None = None, **told: Any) -> Response:
    desk, admin = page.desk, page.may("admin")
    usage, destinations = None, []
    with suppress(Unavailable):
        today = page.now.astimezone(UTC).date()
        usage = await desk.llm_platform.usage_service().usage("model", page.workspace, today)
    with suppress(Unavailable):
        destinations = await desk.jobs.destinations(page.workspace).list() if admin else []
    return page.render(
        "settings.html",
        error=error,
        models=await desk.llm_platform.config_service().list(page.workspace),
        keys=await _keys(page) if admin else [],
        usage=usage,
        destinations=destinations,
        budgets={name: getattr(desk.settings, f"budget_{name}") for name in BUDGETS},
        currency=desk.settings.currency,
        sources=desk.market_data.upkeep().syncing.providers,
        searches=desk.llm_platform.web_to_search() is not None,
        scopes=SCOPES,
        given=given,
        **({"issued": None, "tried": "", "trials": {}} | told),
    )
