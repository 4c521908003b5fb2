"""The demo market's bars, reports and valuations agree with each other and hold every hazard of real data."""

import re
from bisect import bisect_right
from collections import Counter
from datetime import date, timedelta
from itertools import pairwise

import pytest

from moot.modules.market_data.domain.facts import COMPANIES
from moot.shared.domain.facts import FinancialReport
from tests.market_data.demo import Listing, Snapshot, demo_market, ex_right_days, payouts

BANK, HALF_EMPTY, FALLEN, DELISTED, NEW, LOSS_MAKER = (
    f"9000{n}.DEMO" for n in ("02", "12", "05", "07", "06", "03")
)


async def test_synthetic_companies_with_names_in_two_languages_and_peers_in_every_industry() -> None:
    companies = await demo_market().read(COMPANIES, "DEMO")
    peers = [f"9201{n:02}.DEMO" for n in range(1, 23)]
    assert [c.symbol for c in companies] == [*(f"9000{n:02}.DEMO" for n in range(1, 13)), *peers]
    assert all(c.synthetic for c in companies)
    assert len({c.name for c in companies} | {c.name_en for c in companies}) == 2 * len(companies)
    listed = Counter(c.industry for c in companies if c.delist_date is None and c.list_date.year < 2020)
    assert len(listed) == 8
    assert set(listed.values()) == {4}


class TestBars:
    def test_every_price_keeps_within_the_limit_of_its_day(self, demo: Snapshot) -> None:
        for listing in demo.listings.values():
            for bar in listing.bars:
                limit = 0.05 if bar.is_st else 0.10
                assert bar.high <= bar.pre_close * (1 + limit) + 0.0051
                assert bar.low >= bar.pre_close * (1 - limit) - 0.0051

    def test_prices_are_whole_fen_and_volumes_whole_lots(self, demo: Snapshot) -> None:
        for listing in demo.listings.values():
            for bar in listing.bars:
                assert all(round(p, 2) == p for p in (bar.open, bar.high, bar.low, bar.close, bar.pre_close))
                assert bar.volume % 100 == 0
                assert (
                    bar.suspended or bar.low * bar.volume <= bar.amount + 0.01 <= bar.high * bar.volume + 0.02
                )

    def test_a_suspended_day_repeats_the_close_without_volume(self, demo: Snapshot) -> None:
        suspended = [
            (before, day)
            for listing in demo.listings.values()
            for before, day in pairwise(listing.bars)
            if day.suspended
        ]
        assert suspended
        for before, day in suspended:
            assert {day.open, day.high, day.low, day.close, day.pre_close} == {before.close}
            assert (day.volume, day.amount) == (0, 0)

    def test_special_treatment_lasts_for_its_period(self, demo: Snapshot) -> None:
        marked = {s: [b.trade_date for b in x.bars if b.is_st] for s, x in demo.listings.items()}
        assert {symbol for symbol, days in marked.items() if days} == {FALLEN, DELISTED}
        assert (marked[FALLEN][0], marked[FALLEN][-1]) == (date(2021, 5, 6), date(2023, 5, 31))

    def test_the_factor_changes_on_ex_right_days_only_and_bridges_them(self, demo: Snapshot) -> None:
        listing = demo.listings["900001.DEMO"]
        changed = [(a, b) for a, b in pairwise(listing.bars) if a.adj_factor != b.adj_factor]
        assert changed == ex_right_days(listing) != []
        for before, day in changed:
            assert day.adj_factor / before.adj_factor == pytest.approx(before.close / day.pre_close, abs=2e-6)

    def test_bars_begin_with_the_listing_and_end_with_it(self, demo: Snapshot) -> None:
        assert demo.listings["900001.DEMO"].bars[0].trade_date == date(2018, 1, 2)
        assert demo.listings[NEW].bars[0].trade_date == date(2023, 3, 15)
        assert demo.listings[DELISTED].bars[-1].trade_date == date(2022, 7, 14)
        assert demo.listings[DELISTED].reports[-1].announced_on < date(2022, 7, 15)

    def test_daily_figures_come_out_an_hour_after_the_close(self, demo: Snapshot) -> None:
        bar, valuation = demo.listings[NEW].bars[0], demo.listings[NEW].valuations[0]
        assert bar.event_time.isoformat() == "2023-03-15T07:00:00+00:00"
        assert bar.available_at.isoformat() == "2023-03-15T08:00:00+00:00"
        assert (valuation.event_time, valuation.available_at) == (bar.event_time, bar.available_at)


class TestReports:
    def test_figures_agree_with_each_other(self, demo: Snapshot) -> None:
        for symbol, listing in demo.listings.items():
            for r in listing.reports:
                if r.total_revenue_ps:
                    assert r.netprofit_margin == pytest.approx(100 * r.eps / r.total_revenue_ps, abs=0.05)
                if symbol != BANK:
                    assert r.fcff_ps == pytest.approx(r.fcff / shares_at(listing, r), abs=1e-3)
                    assert r.quick_ratio < r.current_ratio
                    assert r.gross_margin >= 1

    def test_flows_add_up_within_the_year(self, demo: Snapshot) -> None:
        revenue = [
            (r.period_end.month, r.total_revenue_ps * shares_at(demo.listings["900009.DEMO"], r))
            for r in demo.listings["900009.DEMO"].reports
        ]
        assert all(after > before for (_, before), (month, after) in pairwise(revenue) if month != 3)
        assert all(after < before for (_, before), (month, after) in pairwise(revenue) if month == 3)

    def test_equity_grows_by_what_was_earned_and_not_paid_out(self, demo: Snapshot) -> None:
        listing = demo.listings["900011.DEMO"]
        for before, after in pairwise(listing.reports):
            if after.period_end.month == 3:  # nothing is paid out in winter
                assert after.bps - before.bps == pytest.approx(after.eps, abs=2e-4)

    def test_trailing_years_exist_on_the_first_day_of_trading(self, demo: Snapshot) -> None:
        for listing in demo.listings.values():
            known = [r for r in listing.reports if r.announced_on < listing.bars[0].trade_date]
            assert len(known) >= 11
            assert known[-1].period_end >= listing.bars[0].trade_date - timedelta(days=170)

    def test_a_report_is_public_in_the_evening_of_its_announcement(self, demo: Snapshot) -> None:
        for listing in demo.listings.values():
            for r in listing.reports:
                assert r.available_at.isoformat() == f"{r.announced_on}T10:00:00+00:00"
                assert r.event_time.isoformat() == f"{r.period_end}T07:00:00+00:00"
            announced = [r.announced_on for r in listing.reports]
            assert announced == sorted(announced)

    def test_a_bank_has_no_inventories_gross_margin_or_current_ratio(self, demo: Snapshot) -> None:
        for r in demo.listings[BANK].reports:
            assert (r.invturn_days, r.gross_margin, r.current_ratio, r.fcff) == (None, None, None, None)
            assert None not in (r.eps, r.bps, r.roe_waa, r.total_revenue_ps, r.debt_to_assets)

    def test_one_company_leaves_half_of_its_revenue_empty(self, demo: Snapshot) -> None:
        for r in demo.listings[HALF_EMPTY].reports:
            assert (r.total_revenue_ps is None) == (r.period_end.month in (3, 9))
        assert None not in [r.total_revenue_ps for r in demo.listings["900011.DEMO"].reports]


class TestValuations:
    def test_they_follow_from_price_shares_and_the_reports_known_that_day(self, demo: Snapshot) -> None:
        for listing in demo.listings.values():
            available = [r.available_at for r in listing.reports]
            for bar, v in list(zip(listing.bars, listing.valuations, strict=True))[1::11]:
                newest = bisect_right(available, v.available_at) - 1
                shares = v.total_mv / v.close
                assert v.close == bar.close
                assert v.turnover_rate == pytest.approx(100 * bar.volume / shares, abs=1e-4)
                assert v.pb == pytest.approx(v.total_mv / in_money(listing, newest, "bps"), rel=1e-3)
                earned = trailing(listing, newest, "eps")
                assert v.total_mv / v.pe_ttm / shares == pytest.approx(earned / shares, abs=3e-4)
                sold = trailing(listing, newest, "total_revenue_ps")
                if sold is None:
                    assert v.ps_ttm is None
                else:
                    assert v.ps_ttm == pytest.approx(v.total_mv / sold, rel=1e-3)

    def test_the_first_row_has_no_ratios_and_the_second_has_them(self, demo: Snapshot) -> None:
        for listing in demo.listings.values():
            first, second = listing.valuations[:2]
            assert (first.pe_ttm, first.pb, first.ps_ttm, first.dv_ratio) == (None, None, None, None)
            assert None not in (second.pe_ttm, second.pb, second.dv_ratio)

    def test_losses_give_a_negative_pe(self, demo: Snapshot) -> None:
        for symbol in (LOSS_MAKER, FALLEN, DELISTED):
            assert min(v.pe_ttm for v in demo.listings[symbol].valuations[1:]) < 0

    def test_the_dividend_yield_is_the_cash_of_the_last_year_over_the_price(self, demo: Snapshot) -> None:
        listing = demo.listings["900009.DEMO"]
        before, day = ex_right_days(listing)[4]
        announced = payouts(demo, listing)[day.trade_date.isoformat()]
        held = next(v.total_mv / v.close for v in listing.valuations if v.trade_date == before.trade_date)
        cash = float(re.search(r"红利([\d.]+)元", announced.title)[1]) / 10 * held
        v = next(v for v in listing.valuations if v.trade_date == day.trade_date + timedelta(days=100))
        assert v.dv_ratio == pytest.approx(100 * cash / v.total_mv, abs=1e-3)


def shares_at(listing: Listing, report: FinancialReport) -> float:
    """Shares at the period's end, from the last valuation up to it; before the first there were no bonus shares."""
    n = bisect_right(listing.valuations, report.period_end, key=lambda v: v.trade_date)
    row = listing.valuations[max(n - 1, 0)]
    return row.total_mv / row.close


def in_money(listing: Listing, index: int, name: str) -> float | None:
    report = listing.reports[index]
    value = getattr(report, name)
    return None if value is None else value * shares_at(listing, report)


def trailing(listing: Listing, index: int, name: str) -> float | None:
    month = listing.reports[index].period_end.month
    if month == 12:
        return in_money(listing, index, name)
    parts = [in_money(listing, i, name) for i in (index, index - month // 3, index - 4)]
    return None if None in parts else parts[0] + parts[1] - parts[2]
