"""Who holds, lends on and sells a demo share is tied to its prices; indexes are made of them."""

import asyncio
import re
from datetime import date, timedelta
from itertools import pairwise
from statistics import correlation, fmean

import pytest

from moot.modules.market_data.domain.facts import (
    BARS,
    COMPANIES,
    FLOWS,
    HOLDER_TRADES,
    HOLDERS,
    INDEX_BARS,
    MARGIN,
    NEWS,
    PLEDGES,
    UNLOCKS,
    VALUATIONS,
)
from moot.shared.domain.facts import Company, IndexBar
from tests.market_data.demo import FIRST_PEER, Listing, Snapshot, demo_market

FALLEN, DELISTED, RENAMED, NEW, BANK = (f"9000{n}.DEMO" for n in ("05", "07", "10", "06", "02"))


def shares_of(listing: Listing) -> dict[date, float]:
    return {v.trade_date: v.total_mv / v.close for v in listing.valuations}


class TestDaily:
    async def test_loans_are_a_part_of_the_market_value_and_made_within_the_trading(
        self, demo: Snapshot
    ) -> None:
        for symbol, listing in demo.listings.items():
            days = {b.trade_date: (b, v) for b, v in zip(listing.bars, listing.valuations, strict=True)}
            rows = await demo_market().read(MARGIN, symbol)
            assert [r.trade_date for r in rows][:50] == [b.trade_date for b in listing.bars if not b.is_st][
                :50
            ]
            for before, row in pairwise(rows):
                bar, valuation = days[row.trade_date]
                assert 0.001 < row.financing_balance / valuation.total_mv < 0.12
                assert 0 <= row.financing_bought <= 0.25 * bar.amount + 0.01
                if bar.suspended and not days[before.trade_date][0].is_st:
                    assert row.financing_balance == before.financing_balance
                elif (row.trade_date - before.trade_date).days < 12:
                    assert row.financing_balance - before.financing_balance <= row.financing_bought + 0.02

    async def test_flows_are_a_part_of_the_amount_and_lean_with_the_price(self, demo: Snapshot) -> None:
        for symbol, listing in demo.listings.items():
            rows, shares = await demo_market().read(FLOWS, symbol), shares_of(listing)
            pairs = list(zip(rows, listing.bars, strict=True))
            assert all(abs(row.net_inflow) <= 0.36 * bar.amount + 0.01 for row, bar in pairs)
            moved = [
                (r.net_inflow / b.amount, b.close / b.pre_close - 1) for r, b in pairs if not b.suspended
            ]
            assert correlation(*zip(*moved, strict=True)) > 0.2
            for row in rows:
                held = row.northbound_percent / 100 * shares[row.trade_date]
                assert row.northbound_shares == pytest.approx(held, rel=1e-3)

    async def test_both_are_known_the_next_morning_and_nobody_lends_under_special_treatment(self) -> None:
        for dataset in (MARGIN, FLOWS):
            for row in await demo_market().read(dataset, FALLEN):
                local = row.available_at + timedelta(hours=8)
                assert (local.date(), local.hour) == (row.trade_date + timedelta(days=1), 9)
        lent = {row.trade_date for row in await demo_market().read(MARGIN, FALLEN)}
        assert not any(date(2021, 5, 6) <= day < date(2023, 6, 1) for day in lent)


class TestHolders:
    async def test_there_are_fewer_after_a_rise(self, demo: Snapshot) -> None:
        found = []
        for symbol, listing in demo.listings.items():
            price = {b.trade_date: b.close * b.adj_factor for b in listing.bars}
            for before, now in pairwise(await demo_market().read(HOLDERS, symbol)):
                first, last = (max(d for d in price if d <= h.period_end) for h in (before, now))
                found.append((now.holders / before.holders, price[last] / price[first]))
            assert fmean(h.holders for h in await demo_market().read(HOLDERS, symbol)) > 10_000
        assert correlation(*zip(*found, strict=True)) < -0.4

    async def test_they_are_told_with_the_report(self, demo: Snapshot) -> None:
        reports = {r.period_end: r for r in demo.listings[NEW].reports}
        for count in await demo_market().read(HOLDERS, NEW):
            assert count.available_at == reports[count.period_end].available_at
            assert count.period_end >= date(2023, 3, 31)

    async def test_pledges_are_told_for_fridays_on_mondays(self, demo: Snapshot) -> None:
        for symbol, listing in demo.listings.items():
            rows, shares = await demo_market().read(PLEDGES, symbol), shares_of(listing)
            for row in rows:
                assert (row.day.weekday(), row.available_at.date() - row.day) == (4, timedelta(days=3))
                assert row.pledged_percent <= 60
                assert row.pledged_shares == pytest.approx(
                    row.pledged_percent / 100 * shares[row.day], rel=1e-3, abs=1e5
                )
            assert max(b.day - a.day for a, b in pairwise(rows)) <= timedelta(days=45)

    @pytest.mark.parametrize("symbol", [BANK, FALLEN])
    async def test_what_the_news_tells_of_is_pledged_for_a_year(self, symbol: str) -> None:
        rows = await demo_market().read(PLEDGES, symbol)
        titles = [
            (item.available_at.date(), item.title_en) for item in await demo_market().read(NEWS, symbol)
        ]
        told = [
            (day, float(found[1]))
            for day, title in titles
            if (found := re.search(r"pledges ([\d.]+)%", title or ""))
        ]
        assert told
        for day, percent in told:
            after = [row.pledged_percent for row in rows if day < row.day < day + timedelta(days=360)]
            assert min(after, default=60) >= min(percent, 60)

    async def test_what_the_prospectus_locked_is_known_from_the_listing_on(self) -> None:
        locked = [u for u in await demo_market().read(UNLOCKS, NEW) if u.percent > 10]
        assert [u.unlock_date for u in locked] == [date(2024, 3, 15), date(2026, 3, 15)]
        for unlock in locked:
            assert unlock.available_at.date() == unlock.announced_on < date(2023, 3, 15)
            assert unlock.shares == pytest.approx(unlock.percent / 100 * 3.6e8)
        granted = [u for u in await demo_market().read(UNLOCKS, NEW) if u.percent < 1]
        assert all(u.unlock_date - u.announced_on == timedelta(days=5) for u in granted)
        assert len(granted) >= 2

    async def test_insiders_trade_within_the_trading_at_its_mean_price_and_tell_afterwards(
        self, demo: Snapshot
    ) -> None:
        sides, kinds = [], set()
        for symbol, listing in demo.listings.items():
            number = {bar.trade_date: n for n, bar in enumerate(listing.bars)}
            for trade in await demo_market().read(HOLDER_TRADES, symbol):
                n = number[trade.announced_on]
                traded = listing.bars[n - 10 : n]
                assert trade.shares <= 0.15 * sum(bar.volume for bar in traded)
                assert min(b.low for b in traded) <= trade.average_price <= max(b.high for b in traded)
                assert trade.event_time == traded[-1].event_time < trade.available_at
                assert trade.available_at.date() == trade.announced_on
                year = listing.bars[max(n - 250, 0) : n]
                dear = traded[-1].close * traded[-1].adj_factor / fmean(b.close * b.adj_factor for b in year)
                sides.append((trade.direction == "sell", dear))
                kinds.add(trade.kind)
        assert kinds == {"executive", "person", "company"}
        assert correlation([float(sell) for sell, _ in sides], [dear for _, dear in sides]) > 0.1


Indexes = dict[str | None, list[IndexBar]]


@pytest.fixture(scope="module")
def indexes() -> Indexes:
    found: Indexes = {}
    for bar in asyncio.run(demo_market().read(INDEX_BARS, "DEMO")):
        found.setdefault(bar.industry, []).append(bar)
    return found


class TestIndexes:
    def test_there_is_one_of_the_market_and_one_of_each_industry(
        self, indexes: Indexes, demo: Snapshot
    ) -> None:
        assert set(indexes) == {None, *(x.company.industry for x in demo.listings.values())}
        assert len({bar.index for bars in indexes.values() for bar in bars}) == 9
        for bars in indexes.values():
            assert all(now.pre_close == before.close for before, now in pairwise(bars))
            assert bars[-1].trade_date == date(2026, 11, 13)
            assert bars[-1].available_at == demo.listings["900001.DEMO"].bars[-1].available_at

    async def test_it_moves_as_its_members_did_by_market_value(self, indexes: Indexes) -> None:
        market, day, before = demo_market(), date(2025, 6, 17), date(2025, 6, 16)
        companies: list[Company] = await market.read(COMPANIES, "DEMO")
        members = [c.symbol for c in companies if c.industry == "钢铁"]
        assert len(members) == 4
        worth, then, amount = 0.0, 0.0, 0.0
        for symbol in members:
            bars = {bar.trade_date: bar for bar in await market.read(BARS, symbol, before, day)}
            value = (await market.read(VALUATIONS, symbol, before, before))[0].total_mv
            then += value
            worth += value * bars[day].close / bars[day].pre_close
            amount += bars[day].amount
        bar = next(bar for bar in indexes["钢铁"] if bar.trade_date == day)
        assert bar.close / bar.pre_close == pytest.approx(worth / then, abs=2e-5)
        assert bar.amount == pytest.approx(amount)


async def test_a_rename_and_a_spell_under_special_treatment_are_told_in_the_names() -> None:
    companies = {c.symbol: c for c in await demo_market().read(COMPANIES, "DEMO")}
    assert [n.name for n in companies[FALLEN].names] == ["鸾羽药业", "ST鸾羽", "鸾羽药业"]
    for symbol in (FALLEN, DELISTED):
        company, (spell,) = companies[symbol], companies[symbol].st_history
        marked = [n.start for n in company.names if n.name.startswith("ST")]
        assert marked == [spell.start]
        assert company.names[0].start == company.list_date
    renamed = companies[RENAMED]
    assert [n.name for n in renamed.names] == ["飞鲲科技", renamed.name]
    assert "飞鲲科技" in renamed.aliases
    assert FIRST_PEER in companies
