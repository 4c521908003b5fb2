"""A screen says of every share what the experts themselves say of it, in one pass and at a moment."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from moot.modules.debate.domain.weighing import Weighing
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.application.sync import SyncedSource, SyncService
from moot.modules.market_data.domain.facts import (
    BARS,
    COMPANIES,
    INDEX_BARS,
    MACRO,
    REPORTS,
    STATEMENTS,
    VALUATIONS,
    Dataset,
)
from moot.modules.market_data.domain.trading_rules import trading_calendar
from moot.modules.market_data.infrastructure.cross_section import MeasuringLake
from moot.modules.research.application.financial_auditor.snapshot import FinancialSnapshot
from moot.modules.research.application.screening import Screen, ScreenedShare
from moot.modules.research.application.technical_analyst import TechnicalSnapshot
from moot.modules.research.application.valuation_modeler.snapshot import ValuationSnapshot
from moot.modules.research.container import ResearchContainer
from moot.modules.research.domain.evidence import Snapshot
from moot.modules.research.domain.rubric import plain_name
from moot.shared.domain.claims import Claim, Horizon
from moot.shared.domain.errors import AppError
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import DailyBar, FinancialReport, IndexBar, Statement
from moot.shared.domain.symbol import Market, Symbol
from tests.fakes.clock import FixedClock
from tests.fakes.market_data import (
    FakeMarketDataProvider,
    a_bar,
    a_company,
    a_valuation,
    an_observation,
)
from tests.market_data.demo import NOW, demo_market

AS_OF = datetime(2024, 6, 28, 12, tzinfo=NOW.tzinfo)
TODAY = Symbol.parse("600000.SH").local_date(AS_OF)
SESSIONS = trading_calendar(Market.CN).within(TODAY - timedelta(420), TODAY)
TECHNICAL = ExpertType.TECHNICAL_ANALYST
SNAPSHOTS: dict[ExpertType, type[Snapshot]] = {
    TECHNICAL: TechnicalSnapshot,
    ExpertType.VALUATION_MODELER: ValuationSnapshot,
    ExpertType.FINANCIAL_AUDITOR: FinancialSnapshot,
}
QUARTERS = [date(year, *end) for year in range(2019, 2025) for end in ((3, 31), (6, 30), (9, 30), (12, 31))]


def code(n: int) -> str:
    return f"{600000 + n}.SH"


def walk(chance: random.Random, symbol: str, days: Sequence[date]) -> list[DailyBar]:
    """A random walk with an ex-right day now and then, days of little trade, and swings of all sizes."""
    bars, price, factor = [], chance.uniform(3, 90), 1.0
    pace, drift = chance.uniform(0.002, 0.04), chance.uniform(-0.004, 0.004)
    for day in days:
        opened = max(0.05, round(price * (1 + chance.gauss(0, pace / 3)), 2))
        close = max(0.05, round(price * (1 + chance.gauss(drift, pace)), 2))
        high, low = max(opened, close) * chance.uniform(1, 1.02), min(opened, close) * chance.uniform(0.98, 1)
        volume = int(chance.lognormvariate(12 if day > TODAY - timedelta(40) else 13, 1))
        told = {"open": opened, "high": high, "low": low, "close": close, "pre_close": price}
        bars.append(
            a_bar(day, symbol=symbol, **told, volume=volume, amount=volume * close, adj_factor=factor)
        )
        price = close
        if chance.random() < 0.01:
            price, factor = round(max(0.05, close / 1.5), 2), factor * 1.5
    return bars


def a_market(chance: random.Random, shares: int = 30) -> FakeMarketDataProvider:
    """Of two industries; some shares are young, some missed sessions."""
    market = FakeMarketDataProvider()
    for n in range(shares):
        days = SESSIONS[-chance.choice([33, 70, 130, 215, 280]) :]
        gone = set(chance.sample(days[:-1], chance.choice([0, 0, 0, 3])))
        market.directory.append(a_company(code(n), industry=chance.choice(["白酒", "银行"])))
        market.bars += walk(chance, code(n), [day for day in days if day not in gone])
    return market


def file(chance: random.Random, kind: Any, symbol: str, period: date, told: datetime) -> Any:
    """With figures of every size, and some of them missing."""
    names = [n for n, field in kind.model_fields.items() if field.annotation == float | None]
    figures = {name: chance.choice([None, *(chance.uniform(-2, 60) for _ in range(9))]) for name in names}
    times = {"event_time": told, "available_at": told, "source": "fake", "announced_on": told.date()}
    return kind(symbol=symbol, period_end=period, **times, **figures)


def add_accounts(chance: random.Random, market: FakeMarketDataProvider) -> None:
    """What is paid for each share, what it reported, and restated; a few have none of it, or nothing lately."""
    market.observations = [an_observation(date(2024, 5, 31), AS_OF, series="cgb_10y", value=2.3)]
    market.deep[STATEMENTS.name] = []
    for company in market.directory:
        days = [bar for bar in market.bars if bar.symbol == company.symbol]
        for bar in days[: chance.choice([0, -20, None, None, None, None])]:
            multiples = {name: chance.uniform(-4, 40) for name in ("pe_ttm", "pb", "ps_ttm", "dv_ratio")}
            worth = {"close": bar.close, "total_mv": 1e8 * bar.close, "shares": 1e8}
            market.valuations.append(a_valuation(bar.trade_date, symbol=company.symbol, **worth, **multiples))
        for period in QUARTERS[chance.choice([0, 9, 14]) : chance.choice([-8, -3, -3, -3])]:
            for late in (30, 200)[: chance.choice([1, 1, 2])]:
                told = datetime.combine(period, AS_OF.timetz()) + timedelta(days=late)
                market.reports.append(file(chance, FinancialReport, company.symbol, period, told))
                market.deep[STATEMENTS.name].append(file(chance, Statement, company.symbol, period, told))


def an_index(chance: random.Random, index: str, industry: str | None) -> list[IndexBar]:
    fields = IndexBar.model_fields.keys() & DailyBar.model_fields.keys()
    told = [bar.model_dump(include=set(fields)) for bar in walk(chance, index, SESSIONS[-100:])]
    return [IndexBar(**bar, index=index, name=index, industry=industry) for bar in told]


def lake_of(market: FakeMarketDataProvider, folder: Path) -> MeasuringLake:
    lake = MeasuringLake(folder)

    def keep(dataset: Dataset[Any], facts: Sequence[BaseModel], subject: str) -> None:
        lake.store(dataset, subject, facts, covered=(SESSIONS[0], TODAY), at=AS_OF)

    keep(COMPANIES, market.directory, "CN")
    by_symbol = {BARS: market.bars, VALUATIONS: market.valuations, REPORTS: market.reports}
    by_symbol |= {STATEMENTS: market.deep.get(STATEMENTS.name, [])}
    for dataset, facts in by_symbol.items():
        for symbol in {fact.symbol for fact in facts}:
            keep(dataset, [fact for fact in facts if fact.symbol == symbol], symbol)
    keep(MACRO, market.observations, "CN")
    if indexes := market.deep.get(INDEX_BARS.name):
        keep(INDEX_BARS, indexes, "CN")
    return lake


def research_on(source: Any, market: Market = Market.CN) -> ResearchContainer:
    return ResearchContainer(MarketData({market: source}))


def ranked(screen: Screen) -> list[ScreenedShare]:
    return [share for share in screen.shares if share.status == "ranked"]


async def assert_as_the_experts_say(
    research: ResearchContainer, screen: Screen, as_of: datetime = AS_OF, horizon: Horizon = 20
) -> None:
    """Rules without data, scores by dimension and the lean of all claims, before they answer each other."""
    for share in ranked(screen):
        claims, missing, scores = [], [], {}
        for expert in SNAPSHOTS:
            told, (holes, score) = await ask(research, expert, share.symbol, as_of)
            claims += told
            missing += holes
            scores |= score
        assert list(share.missing) == missing, share.symbol
        assert share.scores == {
            name: score and pytest.approx(score, abs=1e-6) for name, score in scores.items()
        }
        lean = Weighing(claims, [], frozenset(SNAPSHOTS), horizon).lean
        assert share.lean == pytest.approx(lean, abs=1e-6), share.symbol


async def ask(
    research: ResearchContainer, expert: ExpertType, symbol: str, as_of: datetime
) -> tuple[list[Claim], tuple[list[str], dict[str, float | None]]]:
    service = research.service(expert)
    day = (Symbol.parse(symbol).local_date(as_of),) if expert is TECHNICAL else ()
    named = {rule.name: f"{expert.prefix}.{rule.name}" for rule in service.rules()}
    try:
        report = await service.run(symbol, *day, as_of=as_of, locale="zh-CN")
    except AppError:
        return [], (list(named.values()), {f"{expert.prefix}.{d}": None for d in expert.dimensions})
    snapshot = SNAPSHOTS[expert].model_validate(report[f"{expert.prefix}_indicators"])
    case = await service._open(symbol, as_of, "zh-CN")
    card = service.mark(snapshot, service.speak(snapshot, case, "zh-CN"))
    holes = [named[finding.id] for finding in card.holes if finding.id in named]
    scores = {
        f"{expert.prefix}.{plain_name(rule.dimension)}": card.of(rule.dimension).score
        for rule in service.rules()
    }
    return [Claim.model_validate(claim) for claim in report["claims"]], (holes, scores)


async def screen_all(
    research: ResearchContainer, symbols: Sequence[str], as_of: datetime = AS_OF, **how: Any
) -> Screen:
    return await research.screen(**how).run(symbols, as_of=as_of, locale="zh-CN")


async def test_on_the_demo_market_every_share_scores_as_its_experts_score_it() -> None:
    market = demo_market()
    research = research_on(market, Market.DEMO)
    symbols = [f"9000{n:02}.DEMO" for n in (1, 4, 7, 10)]
    screen = await screen_all(research, symbols, NOW)
    assert len(ranked(screen)) == 3, "one was delisted"
    await assert_as_the_experts_say(research, screen, NOW)


@pytest.mark.parametrize("horizon", [5, 60])
async def test_on_random_walks_in_a_lake_they_score_as_their_experts_score_them(
    tmp_path: Path, horizon: Horizon
) -> None:
    """Among peers over one horizon, beside indexes over the other."""
    chance = random.Random(horizon)
    market = a_market(chance, shares=16)
    add_accounts(chance, market)
    if horizon == 60:
        market.deep[INDEX_BARS.name] = [
            bar
            for index, industry in (("000300.SH", None), ("801120.SI", "白酒"))
            for bar in an_index(chance, index, industry)
        ]
    research = research_on(lake_of(market, tmp_path))
    screen = await screen_all(research, [c.symbol for c in market.directory], horizon=horizon)
    assert len(ranked(screen)) == len(market.directory)
    assert all(
        0 < sum(rule in share.missing for share in ranked(screen)) < 16
        for rule in ("technical.price_ma200", "valuation.pe", "financial.altman")
    )
    await assert_as_the_experts_say(research, screen, horizon=horizon)


async def test_a_source_that_keeps_nothing_is_read_share_by_share_says_so_and_ranks_the_same(
    tmp_path: Path,
) -> None:
    market = a_market(random.Random(3), shares=12)
    symbols = [company.symbol for company in market.directory]
    at_once = await screen_all(research_on(lake_of(market, tmp_path)), symbols)
    each = await screen_all(research_on(market), list(reversed(symbols)))
    assert each.shares == at_once.shares, "whatever order they are asked for in"
    assert (at_once.notes, each.notes) == ((), ("数据源 fake 不能一次读取全部股票，已逐只读取。",))


async def test_nothing_is_seen_that_was_not_known_at_the_moment(tmp_path: Path) -> None:
    """Neither later days nor what came out late, of bars, valuations, reports and statements."""
    chance = random.Random(4)
    market = a_market(chance, shares=8)
    add_accounts(chance, market)
    symbols, week_ago = [c.symbol for c in market.directory], AS_OF - timedelta(days=7)
    late = {"available_at": week_ago + timedelta(days=1)}
    kinds = (market.bars, market.valuations, market.reports, market.deep[STATEMENTS.name])
    for facts in kinds:
        earlier = [n for n, fact in enumerate(facts) if fact.available_at < week_ago - timedelta(days=9)]
        chosen = [n for n in earlier if chance.random() < 0.1]
        for n in chosen:
            facts[n] = facts[n].model_copy(update=late)
    later = await screen_all(research_on(lake_of(market, tmp_path / "all")), symbols, week_ago)
    for facts in kinds:
        facts[:] = [fact for fact in facts if fact.available_at <= week_ago]
    then = await screen_all(research_on(lake_of(market, tmp_path / "then")), symbols, week_ago)
    assert later == then
    assert {share.newest for share in ranked(later)} == {date(2024, 6, 21)}


async def test_what_cannot_be_judged_is_listed_with_its_reason_and_not_ranked(tmp_path: Path) -> None:
    chance, market = random.Random(5), FakeMarketDataProvider()
    spans = {1: SESSIONS, 2: SESSIONS[:-3], 3: SESSIONS[:-40], 4: SESSIONS[-20:], 5: [], 6: SESSIONS}
    for n, days in spans.items():
        market.directory.append(a_company(code(n)))
        market.bars += walk(chance, code(n), days)
    market.directory.append(a_company(code(7), list_date=TODAY + timedelta(9)))
    lake = lake_of(market, tmp_path)
    old = [bar for bar in market.bars if bar.symbol == code(3)]
    (tmp_path / "bars" / f"{code(3)}.parquet").unlink()
    lake.store(BARS, code(3), old, covered=(SESSIONS[0], old[-1].trade_date), at=AS_OF)
    (tmp_path / "bars" / f"{code(6)}.parquet").write_bytes(b"PAR1 not really PAR1")
    screen = await screen_all(research_on(lake), [*map(code, range(1, 8)), "贵州茅台"])
    assert {share.symbol: share.status for share in screen.shares} == {
        code(1): "ranked",
        code(2): "suspended",
        code(3): "too_old",
        code(4): "too_little",
        code(5): "no_data",
        code(6): "damaged",
        code(7): "not_listed",
        "贵州茅台": "not_listed",
    }
    assert all(share.notes and share.lean is None and not share.scores for share in screen.shares[1:])
    assert screen.shares[1].newest == TODAY, "known up to the day, and not traded"
    assert screen.shares[2].newest == old[-1].trade_date
    assert "40 个交易日" in screen.shares[2].notes[0]


async def test_ranks_run_from_the_strongest_lean_down_and_equals_by_symbol(tmp_path: Path) -> None:
    market = a_market(random.Random(6), shares=10)
    twins = [bar.model_copy(update={"symbol": code(50)}) for bar in market.bars if bar.symbol == code(0)]
    market.directory.append(a_company(code(50), industry=market.directory[0].industry))
    market.bars += twins
    screen = await screen_all(research_on(lake_of(market, tmp_path)), [c.symbol for c in market.directory])
    table = [(share.lean, share.symbol) for share in screen.shares]
    assert table == sorted(table, key=lambda row: (-(row[0] or 0), row[1]))
    assert [share.rank for share in screen.shares] == list(range(1, 12))
    own, twin = (next(s for s in screen.shares if s.symbol == symbol) for symbol in (code(0), code(50)))
    assert (own.lean, own.scores) == (twin.lean, twin.scores)


async def test_what_was_wanted_and_cannot_be_screened_is_named(tmp_path: Path) -> None:
    market = a_market(random.Random(7), shares=3)
    research, symbols = research_on(lake_of(market, tmp_path)), [c.symbol for c in market.directory]
    whole = await research.screen().run(symbols, as_of=AS_OF, locale="en-US")
    assert set(whole.left_out) == {"macro_intelligence", "catalyst_detective"}
    chart = await research.screen().run(symbols, as_of=AS_OF, locale="en-US", experts=[TECHNICAL])
    assert chart.left_out == ()
    assert all(name.startswith("technical.") for share in chart.shares for name in share.scores)


async def test_where_nobody_is_listed_nobody_is_ranked() -> None:
    screen = await screen_all(research_on(FakeMarketDataProvider()), [code(1)])
    assert [share.status for share in screen.shares] == ["not_listed"]


@dataclass
class AskedOutside(FakeMarketDataProvider):
    """Remembers the shares that somebody asked it for."""

    shares: set[str] = field(default_factory=set)

    async def read(self, dataset: Dataset[Any], subject: str, *days: date) -> Any:
        self.shares |= {subject} if dataset.by_symbol else set()
        return await super().read(dataset, subject, *days)


async def test_what_is_kept_is_enough_and_nothing_is_fetched_for_a_share(tmp_path: Path) -> None:
    market = a_market(random.Random(8), shares=4)
    kept, outside = lake_of(market, tmp_path), AskedOutside(**vars(market))
    sync = SyncService(kept, {Market.CN: {"fake": outside}}, FixedClock(AS_OF))
    (tmp_path / "bars" / f"{code(0)}.parquet").unlink()
    screen = await screen_all(research_on(SyncedSource(kept, sync, Market.CN)), [code(n) for n in range(4)])
    assert {share.symbol: share.status for share in screen.shares if not share.rank} == {code(0): "no_data"}
    assert outside.shares == set()
