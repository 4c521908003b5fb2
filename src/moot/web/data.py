"""Data: what is kept of each kind, how complete and how old, where it comes from, and whether it can be trusted."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from fastapi import APIRouter, Response

from moot.modules.market_data.application.upkeep import Holding, Remark
from moot.shared.domain.errors import AppError, InvalidInput, NotFound
from moot.shared.domain.messages import Message
from moot.web.page import Form, Page, Reader

router = APIRouter()

MOST_SHOWN = 200


@dataclass(frozen=True)
class Kind:
    """All that is kept of one dataset, taken together."""

    name: str
    held: Sequence[Holding]

    @property
    def label(self) -> Message:
        return self.held[0].coverage.label

    @property
    def rows(self) -> int:
        return sum(one.coverage.rows for one in self.held)

    @property
    def span(self) -> tuple[date | None, date | None]:
        spans = [one.coverage.span for one in self.held]
        first = [start for start, _ in spans if start]
        last = [end for _, end in spans if end]
        return (min(first) if first else None, max(last) if last else None)

    @property
    def gaps(self) -> int:
        return sum(count_gaps(one) for one in self.held)

    @property
    def too_old(self) -> int:
        return sum(one.too_old for one in self.held)

    @property
    def damaged(self) -> int:
        return sum(one.coverage.damaged for one in self.held)

    @property
    def oldest(self) -> Holding | None:
        """Of whose newest row most time has passed."""
        known = [one for one in self.held if one.age is not None]
        return max(known, key=lambda one: one.age or 0, default=None)

    @property
    def sources(self) -> list[str]:
        return sorted({source for one in self.held for source in one.coverage.sources})


def count_gaps(held: Holding) -> int:
    return max(len(held.coverage.ranges) - 1, 0)


@router.get("/data")
async def show(page: Reader) -> Response:
    return await _show(page)


@router.post("/data/check")
async def check(page: Reader, form: Form) -> Response:
    """What is odd about the data of one company; its sources are asked whether they agree."""
    symbol = form.get("symbol", "")
    try:
        remarks = await page.desk.market_data.upkeep().examine(symbol)
    except (InvalidInput, NotFound) as e:
        return await _show(page, symbol=symbol, error=e)
    return await _show(page, symbol=symbol, remarks=remarks)


async def _show(
    page: Page, *, symbol: str = "", remarks: list[Remark] | None = None, error: AppError | None = None
) -> Response:
    upkeep, by_kind = page.desk.market_data.upkeep(), defaultdict[str, list[Holding]](list)
    for held in await upkeep.holdings():
        by_kind[held.coverage.dataset].append(held)
    chosen = page.request.query_params.get("dataset", "")
    return page.render(
        "data.html",
        error=error,
        kinds=[Kind(name, held) for name, held in by_kind.items()],
        held=by_kind.get(chosen, []),
        gaps=count_gaps,
        sources=upkeep.syncing.providers,
        symbol=symbol,
        remarks=remarks,
        chosen=chosen,
        most=MOST_SHOWN,
    )
