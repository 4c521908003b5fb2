"""Batches: many shares at once, how far they are, and the ranked table that comes of them."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query, Response

from moot.modules.jobs.application.batch_report import (
    COLUMNS,
    FIGURES,
    name_column,
    tell_cells,
    tell_facts,
    tell_how,
)
from moot.modules.jobs.application.batches import Format
from moot.modules.jobs.presentation import Batches, OneBatch, results
from moot.shared.domain.errors import AppError, Conflict
from moot.shared.domain.validation import number_or_text
from moot.web.page import Form, Page, Reader
from moot.web.research import ANSWERED

router = APIRouter()

PER_PAGE = 20
MOST_SHOWN = 300
"""Rows of a page; files have all of them."""
TURNS = ("pause", "resume", "cancel")


@router.get("/batches")
async def list_batches(
    page: Reader, batches: Batches, number: Annotated[int, Query(alias="page", ge=1)] = 1
) -> Response:
    return await _show_all(page, batches, page.request.query_params, number=number)


@router.post("/batches")
async def begin(page: Reader, form: Form, batches: Batches) -> Response:
    page.desk.work()
    try:
        begun = await batches.start(read_request(form, page), requested_by=page.caller)
    except ANSWERED as e:
        return await _show_all(page, batches, form, error=e)
    return page.go(f"/batches/{begun.id}")


@router.get("/batches/{batch_id}")
async def show(page: Reader, batches: Batches, batch_id: OneBatch) -> Response:
    return await _show(page, batches, batch_id)


@router.get("/batches/{batch_id}/download")
async def download(
    page: Reader, batches: Batches, batch_id: OneBatch, to: Annotated[Format, Query(alias="format")] = "csv"
) -> Response:
    """Always to be kept: a file with a style of its own is no page of this desk."""
    file = await results(batches, batch_id, page.locale, to)
    file.headers["Content-Disposition"] = f'attachment; filename="batch-{batch_id}.{to}"'
    return file


@router.post("/batches/{batch_id}/{turn}")
async def turn_batch(page: Reader, batches: Batches, batch_id: OneBatch, turn: str) -> Response:
    """The path is one of three: the guard lets no other in."""
    try:
        await getattr(batches, turn if turn in TURNS else "find")(batch_id)
    except Conflict as e:
        return await _show(page, batches, batch_id, e)
    return page.go(f"/batches/{batch_id}")


def read_request(form: Mapping[str, str], page: Page) -> dict[str, Any]:
    """A body as a program would send it; what is no number is left for the check to refuse."""
    given = re.split(r"[\n,;，；、]", form.get("universe", ""))
    body: dict[str, Any] = {
        "universe": [text.strip() for text in given if text.strip()],
        "locale": page.locale,
    }
    body |= {name: form[name].strip() for name in ("name", "as_of") if name in form}
    numbers = {"top": int, "max_cost": float}
    body |= {name: number_or_text(form[name], [kind]) for name, kind in numbers.items() if name in form}
    return body | {name: True for name in ("skip_debate", "skip_unknown") if name in form}


async def _show_all(
    page: Page, batches: Batches, given: Mapping[str, str], *, number: int = 1, error: AppError | None = None
) -> Response:
    found = await batches.find_all(page=number, page_size=PER_PAGE)
    return page.render(
        "batches.html",
        error=error,
        status=400 if error else 200,
        found={"items": found.items, "total": found.total, "page": number, "page_size": PER_PAGE},
        given=given,
    )


async def _show(page: Page, batches: Batches, batch_id: OneBatch, error: AppError | None = None) -> Response:
    found = await batches.results(batch_id)
    shown = found.rows[:MOST_SHOWN]
    return page.render(
        "batch.html",
        error=error,
        found=found,
        batch=found.batch,
        facts=tell_facts(found, page.locale),
        how=tell_how(page.locale),
        columns={name: name_column(name, page.locale) for name in COLUMNS},
        figures=FIGURES,
        rows=[(row, tell_cells(found, row, page.locale)) for row in shown],
        more=len(found.rows) - len(shown),
        formats=get_args(Format),
    )
