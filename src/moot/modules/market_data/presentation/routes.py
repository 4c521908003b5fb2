"""Reading market data over HTTP: what was known at a moment, never more; and SQL, as far as the rules allow it."""

from datetime import date, datetime, timedelta
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import AwareDatetime

from moot.modules.market_data.application.directory import Match
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.application.sql import TABLES, QueryResult, SqlDoor, SqlQuestion
from moot.modules.market_data.container import MarketDataContainer
from moot.shared.domain.clock import Day
from moot.shared.domain.errors import Conflict
from moot.shared.domain.facts import Company, DailyBar, DailyValuation, FinancialReport, NewsItem
from moot.shared.domain.symbol import Symbol
from moot.shared.presentation.caller import Caller, Reader, Workspace
from moot.shared.presentation.errors import answer, refusals

router = APIRouter(prefix="/market-data", tags=["market data"])

A_YEAR = timedelta(days=365)
ANYBODY = "api"


def container(request: Request) -> MarketDataContainer:
    found: MarketDataContainer = request.app.state.market_data
    return found


Data = Annotated[MarketDataContainer, Depends(container)]
Share = Annotated[str, Path(description="a code in any spelling, or a name: 600519, 600519.SH, 贵州茅台")]
Bound = Annotated[
    Day | None, Query(description="YYYY-MM-DD; default: a year before the end, and the present day")
]
AsOf = Annotated[AwareDatetime | None, Query(description="what was known then; default: now")]


class Reading(NamedTuple):
    """One symbol at one moment, over a range of days."""

    market_data: MarketData
    symbol: Symbol
    start: date
    end: date
    as_of: datetime


async def reading(
    symbol: Share, data: Data, start: Bound = None, end: Bound = None, as_of: AsOf = None
) -> Reading:
    share, moment = await data.directory().symbol(symbol), as_of or data.clock.now()
    last = end or share.local_date(moment)
    return Reading(data.market_data(), share, start or last - A_YEAR, last, moment)


Asked = Annotated[Reading, Depends(reading)]


def sql_door(request: Request) -> SqlDoor:
    found: SqlDoor = request.app.state.desk.sql_door
    return found


Door = Annotated[SqlDoor, Depends(sql_door)]


@router.get("/tables", summary="The tables that SQL can read, with their columns")
async def tables() -> dict[str, list[str]]:
    return TABLES


@router.post(
    "/sql",
    summary="One SELECT over the market data, as known at a moment",
    response_model=QueryResult,
    responses=refusals(
        {
            202: "a person is asked; come back with the same request",
            400: "it does not run, or takes too long or too much",
            403: "the rules say no, `details` tell which; or the key has not the scope",
            429: "too many queries of this workspace are under way",
        }
    ),
)
async def sql(
    request: Request, body: SqlQuestion, door: Door, workspace: Workspace, caller: Caller, reader: Reader
) -> QueryResult | Response:
    """A decision of type `tool_call` is on the record before anything runs; `notices` say what the rules changed."""
    try:
        return await door.query(body, requester=caller or ANYBODY, workspace=workspace, locale=reader)
    except Conflict as e:
        if "escalation_id" not in e.details:
            raise
        response = answer(request, e, 202)
        place = request.app.url_path_for("escalation", escalation_id=e.details["escalation_id"])
        response.headers["Location"] = str(place)
        return response


@router.get("/symbols", summary="Find a symbol by code, name or pinyin initials")
async def symbols(q: Annotated[str, Query(min_length=1)], data: Data) -> list[Match]:
    return await data.directory().find(q)


@router.get("/{symbol}", summary="The company listed under a symbol")
async def company(asked: Asked) -> Company:
    return await asked.market_data.company(asked.symbol, as_of=asked.as_of)


@router.get("/{symbol}/bars", summary="Daily bars, oldest first")
async def bars(asked: Asked, adjusted: bool = True) -> list[DailyBar]:
    return await asked.market_data.daily_bars(
        asked.symbol, asked.start, asked.end, as_of=asked.as_of, adjusted=adjusted
    )


@router.get("/{symbol}/valuations", summary="Daily valuations, oldest first")
async def valuations(asked: Asked) -> list[DailyValuation]:
    return await asked.market_data.daily_valuations(asked.symbol, asked.start, asked.end, as_of=asked.as_of)


@router.get("/{symbol}/reports", summary="Financial reports, newest first, each as it was known")
async def reports(asked: Asked, periods: Annotated[int, Query(ge=1, le=80)] = 8) -> list[FinancialReport]:
    return await asked.market_data.financial_reports(asked.symbol, periods, as_of=asked.as_of)


@router.get("/{symbol}/news", summary="Announcements and news, oldest first")
async def news(asked: Asked, days: Annotated[int, Query(ge=1, le=3650)] = 90) -> list[NewsItem]:
    return await asked.market_data.news(asked.symbol, days, as_of=asked.as_of)
