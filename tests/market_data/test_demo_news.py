"""The demo market's macro figures and headlines: on time, in two languages, and true to its own numbers."""

import re
from collections import Counter
from datetime import date, timedelta
from itertools import pairwise

import pytest

from moot.shared.domain.facts import DailyBar, FinancialReport, NewsItem
from tests.market_data.demo import Listing, Snapshot, ex_right_days, payouts

DELISTED, NEW = "900007.DEMO", "900006.DEMO"
PERIODS = {
    3: "{year}年第一季度报告",
    6: "{year}年半年度报告",
    9: "{year}年第三季度报告",
    12: "{year}年年度报告",
}


class TestMacro:
    def test_every_series_every_month_with_its_unit(self, demo: Snapshot) -> None:
        months = {o.period for o in demo.macro}
        assert (min(months), max(months)) == (date(2017, 1, 1), date(2026, 10, 1))
        units = {o.series: o.unit for o in demo.macro}
        assert units == {
            "pmi_manufacturing": "index",
            "cpi_yoy": "%",
            "ppi_yoy": "%",
            "m2_yoy": "%",
            "lpr_1y": "%",
            "cgb_10y": "%",
            "industry_prosperity": "index",
        }
        per_month = Counter(o.period for o in demo.macro if o.period < date(2026, 9, 1))
        assert set(per_month.values()) == {6 + 8}

    def test_each_is_released_by_its_timetable(self, demo: Snapshot) -> None:
        released = {
            o.series: o.available_at.isoformat()[:16] for o in demo.macro if o.period == date(2024, 2, 1)
        }
        assert released["pmi_manufacturing"] == "2024-02-29T01:30"
        assert released["lpr_1y"] == "2024-02-20T01:15"
        assert released["cgb_10y"][:10] == "2024-03-01"
        assert "2024-03-09" <= released["cpi_yoy"][:10] <= "2024-03-11"
        assert released["cpi_yoy"] == released["ppi_yoy"]
        assert "2024-03-11" <= released["m2_yoy"][:10] <= "2024-03-13"

    def test_an_industry_series_names_its_industry(self, demo: Snapshot) -> None:
        named = {o.industry for o in demo.macro if o.series == "industry_prosperity"}
        assert named == {listing.company.industry for listing in demo.listings.values()}
        assert {o.industry for o in demo.macro if o.series != "industry_prosperity"} == {None}

    def test_values_stay_in_a_plausible_band(self, demo: Snapshot) -> None:
        bands = {
            "pmi_manufacturing": (44, 57),
            "cpi_yoy": (-3, 6),
            "ppi_yoy": (-12, 14),
            "m2_yoy": (4, 14),
            "lpr_1y": (2, 6),
            "cgb_10y": (1, 5),
            "industry_prosperity": (25, 75),
        }
        assert all(bands[o.series][0] <= o.value <= bands[o.series][1] for o in demo.macro)

    def test_urls_are_unique_and_ascii(self, demo: Snapshot) -> None:
        urls = [o.url for o in demo.macro]
        assert len(set(urls)) == len(urls)
        assert all(url.isascii() for url in urls)
        assert "demo://macro/pmi_manufacturing/2026-09" in urls


class TestNews:
    def test_every_report_is_announced_with_its_own_numbers(self, demo: Snapshot) -> None:
        for listing in demo.listings.values():
            told = titles(demo, listing)
            since = max(date(2018, 1, 2), listing.company.list_date)
            for report in (r for r in listing.reports if r.announced_on >= since):
                label = PERIODS[report.period_end.month].format(year=report.period_end.year)
                item = next(item for title, item in told.items() if title.startswith(label))
                assert item.event_time.date() == report.announced_on
                assert item.available_at >= report.available_at
                assert_title_tells(item, report, year_before(listing, report))

    def test_payouts_are_announced_before_the_day_they_move_the_price(self, demo: Snapshot) -> None:
        for listing in demo.listings.values():
            announced = payouts(demo, listing)
            days = {day.trade_date.isoformat(): (before, day) for before, day in ex_right_days(listing)}
            assert announced.keys() == days.keys()
            for ex_date, (before, day) in days.items():
                item = announced[ex_date]
                cash = float(re.search(r"红利([\d.]+)元", item.title)[1]) / 10
                bonus = re.search(r"转增(\d)股", item.title)
                expected = (before.close - cash) / (1 + (int(bonus[1]) / 10 if bonus else 0))
                assert day.pre_close == pytest.approx(expected, abs=0.0051)
                assert item.available_at < day.event_time - timedelta(days=4)

    def test_halts_and_special_treatment_are_announced_the_evening_before(self, demo: Snapshot) -> None:
        changes = 0
        for listing in demo.listings.values():
            told = titles(demo, listing)
            for before, day in pairwise(listing.bars):
                for title in status_changes(before, day):
                    assert before.available_at < told[title].available_at < day.event_time
                    changes += 1
        assert changes > 20

    def test_two_to_five_items_for_a_company_and_month(self, demo: Snapshot) -> None:
        counts = Counter((i.symbol, f"{i.event_time:%Y-%m}") for i in demo.news if i.symbol)
        whole = [n for (_, month), n in counts.items() if "2018-01" < month < "2026-11"]
        assert 2.5 < sum(whole) / len(whole) < 4.5
        assert sum(2 <= n <= 5 for n in whole) / len(whole) > 0.95

    def test_every_title_is_in_two_languages_and_every_url_its_own(self, demo: Snapshot) -> None:
        assert len({i.url for i in demo.news}) == len(demo.news)
        for item in demo.news:
            assert item.title_en and item.title_en.isascii() and "{" not in item.title + item.title_en
            assert item.url.startswith("demo://news/")
            assert item.event_time <= item.available_at <= item.event_time + timedelta(hours=24)
            assert item.title_en.count("%") == item.title.count("%")

    def test_policy_notices_concern_an_industry_or_the_market(self, demo: Snapshot) -> None:
        notices = [i for i in demo.news if i.kind == "policy"]
        assert {i.symbol for i in notices} == {None}
        assert {i.industry for i in notices} == {x.company.industry for x in demo.listings.values()} | {None}
        assert all(i.industry in i.title for i in notices if i.industry)

    def test_a_company_makes_news_only_while_it_is_listed(self, demo: Snapshot) -> None:
        gone = [i for i in demo.news if i.symbol == DELISTED]
        assert any("摘牌" in i.title for i in gone)
        assert max(i.event_time.date() for i in gone) < date(2022, 7, 15)
        assert min(i.event_time.date() for i in demo.news if i.symbol == NEW) >= date(2023, 3, 15)


def year_before(listing: Listing, report: FinancialReport) -> FinancialReport:
    end = report.period_end.replace(year=report.period_end.year - 1)
    return next(r for r in listing.reports if r.period_end == end)


def titles(demo: Snapshot, listing: Listing) -> dict[str, NewsItem]:
    """The company's announcements by what follows its name."""
    own = (i for i in demo.news if i.symbol == listing.company.symbol)
    return {i.title.removeprefix(f"{listing.company.name}："): i for i in own}


def status_changes(before: DailyBar, day: DailyBar) -> list[str]:
    on = day.trade_date
    changes = {
        f"筹划重大事项，股票自{on}起停牌": day.suspended and not before.suspended,
        f"股票自{on}起复牌": before.suspended and not day.suspended,
        f"股票自{on}起实施其他风险警示（ST），日涨跌幅限制为5%": day.is_st and not before.is_st,
        f"股票自{on}起撤销其他风险警示（ST）": before.is_st and not day.is_st,
    }
    return [title for title, changed in changes.items() if changed]


def assert_title_tells(item: NewsItem, now: FinancialReport, before: FinancialReport) -> None:
    assert f"{abs(now.profit_dedt) / 1e8:.2f}亿元" in item.title
    assert f"CNY {abs(now.profit_dedt) / 1e6:,.0f} million" in item.title_en
    change = now.profit_dedt / before.profit_dedt - 1
    words = {
        (True, True): (f"增长{change:.1%}", f"up {change:.1%}")
        if change >= 0
        else (f"下降{-change:.1%}", "down"),
        (True, False): ("扭亏为盈", "back to profit"),
        (False, True): ("由盈转亏", "after a profit"),
        (False, False): (f"扩大{change:.1%}", "wider") if change > 0 else (f"收窄{-change:.1%}", "narrower"),
    }
    zh, en = words[now.profit_dedt > 0, before.profit_dedt > 0]
    assert zh in item.title
    assert en in item.title_en
