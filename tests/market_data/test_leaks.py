"""What becomes known after a moment changes nothing about it: no reading of any dataset, no answer of any expert.

A history of every dataset is cut at a moment. What was known by then is kept in a lake and all of it is read; then
the rest is stored beside it, and all is read once more.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.application.sql import DatabaseTool
from moot.modules.market_data.domain.facts import (
    BARS,
    COMPANIES,
    DATASETS,
    INDEX_BARS,
    MACRO,
    REPORTS,
    UNLOCKS,
    VALUATIONS,
    Dataset,
)
from moot.modules.market_data.domain.provider import Batch
from moot.modules.market_data.domain.trading_rules import trading_calendar
from moot.modules.market_data.infrastructure.cross_section import MeasuringLake
from moot.modules.market_data.infrastructure.lake_sql import Children, LakeDatabase
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.errors import AppError
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import Company, Fact, Filed, NameSince, SpecialTreatment
from moot.shared.domain.symbol import TIME_ZONES, Market, Symbol

M = TypeVar("M", bound=BaseModel)
SHANGHAI = TIME_ZONES[Market.CN]
SYMBOLS = ("600001.SH", "600002.SH", "000003.SZ")
OURS, NEW = Symbol.parse(SYMBOLS[0]), "600009.SH"
SESSIONS = trading_calendar(Market.CN).sessions(date(2023, 10, 9), date(2024, 9, 30))
MONTHS = [date(y, m, 1) - timedelta(1) for y in (2022, 2023, 2024) for m in range(1, 13)]
QUARTERS = [day for day in MONTHS if day.month % 3 == 0]
EVER = date(2000, 1, 1), date(2030, 1, 1)
SERIES = ("cpi_yoy", "pmi_manufacturing", "m2_yoy")
TITLES = ("业绩预增公告", "关于股份回购的公告", "股东减持计划公告", "收到立案调查通知", "签订重大合同")

pytestmark = pytest.mark.asyncio(loop_scope="module")


def at(day: date, hour: float) -> datetime:
    return (datetime.combine(day, time(), SHANGHAI) + timedelta(hours=hour)).astimezone(UTC)


@cache
def hints_of(model: type[BaseModel]) -> dict[str, Any]:
    return get_type_hints(model)


class History:
    """Facts of every dataset about a year of sessions, made from the fields of its model."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        middle = self.chance.choice(SESSIONS[140:190])
        self.as_of = at(middle, self.chance.choice([9.0, 15.5, 16.0, 20.0, 23.9]))
        self.facts = {
            (dataset, subject): list(self._facts(dataset, subject))
            for dataset in DATASETS.values()
            if dataset is not COMPANIES
            for subject in _subjects(dataset)
        }

    def _facts(self, dataset: Dataset[Any], subject: str) -> Iterator[Fact]:
        if dataset in (BARS, INDEX_BARS):
            yield from self._prices(dataset, subject)
        elif issubclass(dataset.model, Filed) or dataset is MACRO:
            for period in MONTHS if dataset is MACRO else QUARTERS:
                told = at(period, 24.0 * self.chance.randint(9, 45) + self.chance.randint(8, 20))
                for version in range(self.chance.choice([1, 2, 4, 6])):
                    yield self._make(dataset, subject, period, told + timedelta(days=61 * version))
        else:
            for day in SESSIONS if self.chance.random() < 0.9 else SESSIONS[::5]:
                yield self._make(dataset, subject, day, at(day, self.chance.choice([16.0, 18.5])))

    def _prices(self, dataset: Dataset[Any], subject: str) -> Iterator[Fact]:
        close, factor, steps = 20.0, 1.0, set(self.chance.sample(SESSIONS, 4)) | {SESSIONS[-20]}
        for day in SESSIONS:
            step = 1.25 if dataset is BARS and day in steps else 1.0
            before, factor = close / step, factor * step
            close = round(before * self.chance.uniform(0.95, 1.06), 2)
            prices = {"open": before, "high": max(before, close), "low": min(before, close), "close": close}
            traded = {"volume": 1000, "amount": 1000 * close, "adj_factor": factor, "pre_close": before}
            yield self._make(dataset, subject, day, at(day, 16.0), **prices, **traded)

    def _make(self, dataset: Dataset[Any], subject: str, day: date, known: datetime, **fixed: Any) -> Fact:
        about: dict[str, Any] = {"symbol": subject, "industry": None, "suspended": False, "is_st": False}
        about |= {
            "announced_on": known.astimezone(SHANGHAI).date(),
            "title": self.chance.choice(TITLES),
            "index": "000300.SH",
        }
        about |= {
            "series": self.chance.choice(SERIES),
            "unit": "%",
            "url": f"made-up://{subject}/{known.timestamp()}",
        }
        about |= {"event_time": min(at(day, 15.0), known), "available_at": known, "source": "history"} | fixed
        if dataset is VALUATIONS:
            about |= {"close": 10.0, "total_mv": self.chance.uniform(1e9, 2e9), "shares": None}
        if dataset is UNLOCKS:
            about["unlock_date"] = day + timedelta(days=self.chance.randint(-5, 90))
        hints = hints_of(dataset.model)
        return dataset.model(
            **{
                f: about[f] if f in about else self._value(hints[f], day)
                for f in hints
                if f in dataset.model.model_fields
            }
        )

    def _value(self, hint: Any, day: date) -> Any:
        if get_origin(hint) is Literal:
            return self.chance.choice(get_args(hint))
        kinds = get_args(hint) or (hint,)
        if float in kinds:
            return round(self.chance.uniform(1, 60), 2)
        return {date: day, int: self.chance.randint(1, 10**6), bool: False, str: f"{self.chance.random()}"}[
            kinds[0]
        ]

    def known(self, yes: bool) -> dict[tuple[Dataset[Any], str], list[Fact]]:
        return {
            key: [f for f in facts if (f.available_at <= self.as_of) is yes]
            for key, facts in self.facts.items()
        }

    def companies(self) -> list[Company]:
        return [self._company(symbol, "甲乙丙"[n]) for n, symbol in enumerate(SYMBOLS)]

    def _company(self, symbol: str, name: str, since: date = date(2010, 1, 4), **more: Any) -> Company:
        told: dict[str, Any] = {
            "name": f"{name}山酒业",
            "names": (NameSince(name=f"{name}山酒业", start=since),),
        } | more
        called = {"name_en": told["name"], "industry": "白酒", "industry_en": "Liquor", "source": "history"}
        return Company(symbol=symbol, list_date=since, **called, **told)

    def later_companies(self) -> list[Company]:
        """Renamed and under special treatment, delisted, and a peer that was not there yet."""
        soon = self.as_of.astimezone(SHANGHAI).date() + timedelta(days=self.chance.randint(1, 60))
        first, second, _ = self.companies()
        renamed = (*first.names, NameSince(name="*ST新途", start=soon))
        return [
            first.model_copy(
                update={
                    "name": "*ST新途",
                    "name_en": "*ST新途",
                    "names": renamed,
                    "aliases": ("*ST新途",),
                    "st_history": (SpecialTreatment(start=soon),),
                }
            ),
            second.model_copy(update={"delist_date": soon}),
            self._company(NEW, "丁", soon),
        ]


def _subjects(dataset: Dataset[Any]) -> Sequence[str]:
    """Of a peer, what is compared."""
    if not dataset.by_symbol:
        return ["CN"]
    return SYMBOLS if dataset in (BARS, VALUATIONS, REPORTS) else SYMBOLS[:1]


class Nobody:
    name = "nobody"

    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        return Batch()


class Reader:
    """Reads all there is to read at a moment, as text: equal texts are equal to the last bit."""

    def __init__(self, folder: Path, children: Children) -> None:
        self.lake = MeasuringLake(folder)
        self.data = MarketData({Market.CN: self.lake})
        self.sql = DatabaseTool(LakeDatabase(folder, children), self.lake, Nobody(), most_rows=100_000)

    def keep(self, facts: dict[tuple[Dataset[Any], str], list[Fact]], companies: Sequence[Company]) -> None:
        now = at(SESSIONS[-1], 24.0 * 90)
        self.lake.store(COMPANIES, "CN", companies, covered=None, at=now)
        for (dataset, subject), found in facts.items():
            self.lake.store(dataset, subject, found, covered=None, at=now)

    async def read(self, as_of: datetime) -> dict[str, str]:
        raw = {"raw": repr(await self.data.daily_bars(OURS, *EVER, as_of=as_of, adjusted=False))}
        return (
            raw | await self.read_each(as_of) | await self.read_sql(as_of) | await self.read_adjusted(as_of)
        )

    async def read_each(self, as_of: datetime) -> dict[str, str]:
        return {
            name: repr(await self.data.read_known(dataset, OURS, as_of))
            for name, dataset in DATASETS.items()
            if dataset is not COMPANIES
        }

    async def read_sql(self, as_of: datetime) -> dict[str, str]:
        parts = [f"SELECT '{name}' AS kind, CAST(t AS VARCHAR) AS told FROM {name} t" for name in DATASETS]
        sql = f"{' UNION ALL '.join(parts)} ORDER BY ALL"
        rows = (await self.sql.query(sql, as_of=as_of, workspace="w")).rows
        assert {row[0] for row in rows} == set(DATASETS)
        return {f"sql {name}": repr([row for row in rows if row[0] == name]) for name in DATASETS}

    async def read_adjusted(self, as_of: datetime) -> dict[str, str]:
        data = self.data
        found: dict[str, Any] = {
            "companies": [await data.company(Symbol.parse(symbol), as_of=as_of) for symbol in SYMBOLS],
            "adjusted": [
                (b.trade_date, b.close, b.pre_close, b.high)
                for b in await data.daily_bars(OURS, *EVER, as_of=as_of)
            ],
            "valued": await data.daily_valuations(OURS, *EVER, as_of=as_of),
            "reported": await data.financial_reports(OURS, 20, as_of=as_of),
            "macro figures": await data.macro(OURS, 400, as_of=as_of),
            "told": await data.news(OURS, 400, as_of=as_of),
            "peers": await data.peers(OURS, as_of=as_of),
            "state": await data.trading_state(OURS, as_of=as_of),
        }
        for expert in ExpertType:
            found[expert.value] = await self._ask(expert, as_of)
        return {name: repr(what) for name, what in found.items()}

    async def _ask(self, expert: ExpertType, as_of: datetime) -> Any:
        day = (OURS.local_date(as_of),) if expert is ExpertType.TECHNICAL_ANALYST else ()
        try:
            return (
                await ResearchContainer(self.data)
                .service(expert.value)
                .run(OURS.text, *day, as_of=as_of, locale="zh-CN")
            )
        except AppError as e:
            return "refused", str(e)


def differing(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [name for name in before if before[name] != after[name]]


@pytest.mark.parametrize("seed", range(2))
async def test_what_is_planted_after_a_moment_is_not_seen_at_it(
    tmp_path: Path, children: Children, seed: int
) -> None:
    history, reader = History(seed), Reader(tmp_path, children)
    reader.keep(history.known(True), history.companies())
    before = await reader.read(history.as_of)
    assert not [expert for expert in ExpertType if before[expert.value].startswith("('refused'")], (
        "an expert had nothing to say"
    )
    reader.keep(history.known(False), history.later_companies())
    assert differing(before, await reader.read(history.as_of)) == []
    seen = await reader.read_each(at(SESSIONS[-1], 24.0 * 89))
    assert set(differing(before, {**before, **seen})) == set(seen), "nothing was planted"


async def test_known_days_told_again_by_a_later_factor_are_the_same_prices(
    tmp_path: Path, children: Children
) -> None:
    """As a source does that counts its factors back from the newest day; by two, so that no bit is rounded away."""
    history, reader = History(7), Reader(tmp_path, children)
    reader.keep(history.known(True), history.companies())
    before = await reader.read_adjusted(history.as_of)
    again = {
        key: [f.model_copy(update={"adj_factor": f.adj_factor * 2}) for f in facts]
        for key, facts in history.facts.items()
        if key[0] is BARS
    }
    reader.keep(again, history.companies())
    assert differing(before, await reader.read_adjusted(history.as_of)) == []


async def test_known_rows_told_again_as_if_they_came_later_stay_known(
    tmp_path: Path, children: Children
) -> None:
    """A page that was changed, a source that is slower: what was read at the moment is read there for ever."""
    history, reader = History(11), Reader(tmp_path, children)
    reader.keep(history.known(True), history.companies())
    before = await reader.read(history.as_of)
    later = {"available_at": history.as_of + timedelta(days=3), "source": "slower"}
    again = {
        key: [fact.model_copy(update=later) for fact in facts[-40:]]
        for key, facts in history.known(True).items()
        if "available_at" not in key[0].key
    }
    reader.keep(again, history.companies())
    assert differing(before, await reader.read(history.as_of)) == []
