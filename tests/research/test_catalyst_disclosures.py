"""What is disclosed in figures: events without a headline, each counted once, the days to come, how money moves, and
what such events did before; nothing of it before it was known.
"""

from datetime import date, timedelta
from typing import Any

import pytest

from moot.modules.research.application.catalyst_detective import CatalystDetectiveService
from moot.modules.research.domain.events import event_table
from moot.shared.domain.claims import Claim
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.facts import (
    Dividend,
    EarningsNotice,
    Fact,
    FlowDay,
    HolderTrade,
    IndexBar,
    MarginDay,
    Pledge,
    Unlock,
)
from moot.shared.domain.grounding import ground
from moot.shared.domain.messages import LOCALES
from tests.fakes.research import AS_OF, SYMBOL, TODAY, FakeMarketFacts, a_news, a_report, bars_of, told
from tests.research.cases import catalyst

A_DAY = timedelta(days=1)


def ago(days: int) -> date:
    return TODAY - days * A_DAY


def a_notice(low: float, high: float, days: int = 5, **changes: Any) -> EarningsNotice:
    fields: dict[str, Any] = {"kind": "forecast", "period_end": date(2026, 6, 30), "net_profit_high": 2e8}
    times = {**told(ago(days)), "announced_on": ago(days), "symbol": SYMBOL}
    return EarningsNotice(change_low=low, change_high=high, **fields | times | changes)


def an_unlock(ahead: int, percent: float | None, days: int = 100, **changes: Any) -> Unlock:
    fields = {**told(ago(days)), "announced_on": ago(days), "symbol": SYMBOL, "shares": 1e6}
    day = TODAY + ahead * A_DAY
    return Unlock(
        **fields | {"unlock_date": day, "percent": percent, "event_time": told(day)["event_time"]} | changes
    )


def a_dividend(cash: float, ex_in: int | None, days: int = 5) -> Dividend:
    ex_date = None if ex_in is None else TODAY + ex_in * A_DAY
    fields = {
        **told(ago(days)),
        "announced_on": ago(days),
        "symbol": SYMBOL,
        "period_end": date(2025, 12, 31),
    }
    return Dividend(cash_per_share=cash, ex_date=ex_date, **fields)


def a_trade(direction: str, percent: float | None, days: int = 5, holder: str = "甲") -> HolderTrade:
    fields = {
        **told(ago(days)),
        "announced_on": ago(days),
        "symbol": SYMBOL,
        "kind": "company",
        "shares": 1e5,
    }
    return HolderTrade(direction=direction, percent=percent, holder=holder, **fields)  # type: ignore[arg-type]


def a_pledge(percent: float) -> Pledge:
    return Pledge(symbol=SYMBOL, day=ago(4), pledged_shares=1e6, pledged_percent=percent, **told(ago(4)))


async def ask(*deep: Fact, **known: Any) -> dict[str, Any]:
    return await catalyst(FakeMarketFacts(others=deep, **known))


def claims(report: dict[str, Any]) -> dict[str, Claim]:
    """Each with every number it states in the evidence it cites, in both languages."""
    evidence = {item["id"]: Evidence(**item) for item in report["evidence"]}
    found = [Claim(**claim) for claim in report["claims"]]
    for claim in found:
        assert claim.says.keys() == set(LOCALES)
        for text in claim.says.values():
            assert ground([text], [evidence[id_] for id_ in claim.evidence]).offenders == [], text
    return {claim.kind: claim for claim in found}


def evidence(report: dict[str, Any]) -> dict[str, Any]:
    return {item["id"]: item["value"] for item in report["evidence"]}


# ---------------------------------------------------------------- events


@pytest.mark.parametrize(
    ("low", "high", "profit", "kind", "side", "strength"),
    [
        (60, 80, 2e8, "profit_up", "for", 0.67),
        (25, 40, 2e8, "profit_up", "for", 0.45),
        (5, 12, 2e8, "profit_up", "for", 0.22),
        (-60, -30, 2e8, "profit_warning", "against", 0.45),
        (20, 60, -1e8, "loss_narrowed", "for", 0.22),
        (-5, 8, 2e8, "results", "neither", 0),
    ],
)
async def test_a_forecast_is_an_event_by_its_range(
    low: float, high: float, profit: float, kind: str, side: str, strength: float
) -> None:
    found = claims(await ask(a_notice(low, high, net_profit_high=profit)))
    claim = found[f"catalyst.{kind}"]
    assert (claim.side, claim.horizon, claim.reported) == (side, 60, False)
    assert claim.strength == pytest.approx(strength, abs=0.01)
    assert claim.says["zh-CN"].startswith("2026-06-25，2026 年半年度业绩预告的净利润同比变动")
    assert f"by {low:.2f}% to {high:.2f}% on a year before" in claim.says["en-US"]


async def test_what_a_headline_tells_too_counts_once() -> None:
    headline = a_news(
        "预计上半年净利润增长60%至80%，预增", "Expects half-year profit up 60% to 80%", days_ago=4
    )
    alone = claims(await ask(a_notice(60, 80)))
    both = await ask(a_notice(60, 80), published=[headline])
    assert claims(both) == alone
    assert both["catalyst_context"]["event_count"] == 1


async def test_what_a_headline_tells_otherwise_or_another_time_counts_beside_it() -> None:
    worse = a_news("一季度业绩下滑", "First-quarter profit fell", days_ago=4)
    earlier = a_news("一季度净利润同比增长", "First-quarter profit up", days_ago=40)
    report = await ask(a_notice(60, 80), published=[worse, earlier])
    assert report["catalyst_context"]["event_count"] == 3


async def test_that_a_report_is_out_gives_way_to_what_a_headline_says_is_in_it() -> None:
    headline = a_news("一季度净利润同比增长", "First-quarter profit up", days_ago=61)
    report = await ask(filed=[a_report(2026, 1)], published=[headline])
    assert [event["category"] for event in report["catalyst_context"]["events"]] == ["profit_up"]


async def test_an_express_report_takes_the_place_of_the_forecast_of_its_period() -> None:
    express = a_notice(71, 71, days=2, kind="express", event_time=told(ago(1))["event_time"])
    report = await ask(a_notice(60, 80), express)
    (event,) = report["catalyst_context"]["events"]
    assert event["title"] == "2026 年半年度业绩快报的净利润同比变动 71.00%"


async def test_what_several_holders_do_on_a_day_is_one_event_and_a_trifle_is_none() -> None:
    trades = [a_trade("sell", 0.7), a_trade("sell", 0.6, holder="乙"), a_trade("buy", 0.05, holder="丙")]
    report = await ask(*trades)
    (event,) = report["catalyst_context"]["events"]
    assert (event["category"], event["figures"]) == ("selldown", {"of_shares": 1.3})
    assert claims(report)["catalyst.selldown"].strength == pytest.approx(0.45, abs=0.01)


async def test_a_dividend_is_told_by_its_cash_and_what_part_of_the_price_that_is() -> None:
    report = await ask(a_dividend(0.6, None), daily=bars_of([20.0] * 3))
    assert (
        "每 10 股派 6.00 元（税前，相当于现价的 3.00%）" in claims(report)["catalyst.dividend"].says["zh-CN"]
    )


async def test_a_trifling_dividend_is_not_told_by_figures_nor_by_a_headline() -> None:
    headline = a_news("2025年度利润分配方案", "Dividend for 2025", days_ago=5)
    report = await ask(a_dividend(0.1, None), daily=bars_of([20.0] * 3), published=[headline])
    assert report["catalyst_context"]["events"] == []


async def test_what_is_grave_stands_first_however_weighty_the_rest() -> None:
    grave = a_news("公司股票被实施退市风险警示", "Shares under delisting risk warning", days_ago=80)
    report = await ask(a_notice(-90, -80), a_trade("sell", 3.0), published=[grave])
    first = report["result"]["negative_catalysts"][0]["event"]
    assert first == "2026-04-11 公司股票被实施退市风险警示"
    assert "负面判断主要建立在《公司股票被实施退市风险警示》之上" in report["narrative_report"]


async def test_a_fact_keeps_its_id_when_others_come_and_go() -> None:
    async def ids(*deep: Fact) -> set[str]:
        return {claim["id"] for claim in (await ask(*deep))["claims"]}

    later = await ids(a_notice(60, 80), a_trade("sell", 2.0, days=1))
    assert "catalyst.fact.profit_up.20260625" in later & await ids(a_notice(60, 80))


# ---------------------------------------------------------------- the days to come


@pytest.mark.parametrize(
    ("percent", "band", "side", "strength"),
    [(6.0, "large", "against", 0.5), (2.0, "some", "against", 0.25), (0.4, "small", "neither", 0)],
)
async def test_an_unlock_within_60_sessions_weighs_by_its_size(
    percent: float, band: str, side: str, strength: float
) -> None:
    report = await ask(an_unlock(30, percent / 2), an_unlock(45, percent / 2, holder="乙"))
    claim = claims(report)[f"catalyst.unlock.{band}"]
    assert (claim.side, claim.strength, claim.horizon) == (side, strength, 60)
    assert "最早 2026-07-30" in claim.says["zh-CN"]
    assert f"{percent:.2f}% of all shares" in claim.says["en-US"]
    assert evidence(report)["catalyst.unlock.due"] == "2026-07-30"
    expected = report["result"]["negative_catalysts"][0]["event"] == f"未来解禁（{percent:.2f}%）"
    assert expected == (side == "against")


async def test_an_unlock_that_is_far_off_or_announced_later_does_not_exist() -> None:
    report = await ask(an_unlock(91, 20.0), an_unlock(10, 20.0, days=-1))
    assert claims(report).keys() == {"catalyst.unlock.none"}
    assert "catalyst.unlock.due" not in evidence(report)


async def test_an_unlock_that_was_is_an_event_that_fades() -> None:
    report = await ask(an_unlock(-30, 6.0))
    assert claims(report)["catalyst.lockup_expiry"].strength == 0.25
    assert claims(report)["catalyst.unlock.none"].side == "neither"


async def test_the_share_goes_ex_dividend_on_a_day() -> None:
    report = await ask(a_dividend(0.5, 9), a_dividend(0.4, -200, days=220), a_dividend(9.0, 20, days=-3))
    assert evidence(report)["catalyst.ex_dividend.due"] == "2026-07-09"
    told_ = claims(report)["catalyst.ex_dividend.ahead"].says["zh-CN"]
    assert told_ == "2026-07-09 除息，每 10 股派 5.00 元（税前）。"


@pytest.mark.parametrize(
    ("last", "due", "period"),
    [
        ((2026, 1), "2026-08-31", "2026 年半年度"),
        ((2026, 2), "2026-10-31", "2026 年前三季度"),
        ((2025, 3), "2026-08-31", "2026 年半年度"),
    ],
)
async def test_the_next_report_is_due_by_law(last: tuple[int, int], due: str, period: str) -> None:
    """What was due before and is not known is not awaited any more."""
    known = told(ago(20)) | {"announced_on": ago(20)}
    report = await ask(filed=[a_report(*last).model_copy(update=known)])
    assert evidence(report)["catalyst.calendar.report"] == due
    assert (
        claims(report)["catalyst.report_due.ahead"].says["zh-CN"].startswith(f"{period}报告按规定最迟 {due}")
    )


async def test_days_are_counted_at_the_moment_asked_and_not_when_the_last_report_came() -> None:
    known = told(ago(20)) | {"announced_on": ago(20)}
    report = await ask(filed=[a_report(2026, 1).model_copy(update=known)])
    dated = {item["id"]: Evidence(**item).as_of for item in report["evidence"]}
    assert dated["catalyst.report_due_days"] == dated["catalyst.event_count"] == AS_OF
    assert dated["catalyst.calendar.report"] < AS_OF


# ---------------------------------------------------------------- money


def flows(net: float, held: float, then: float) -> list[FlowDay]:
    return [
        FlowDay(
            symbol=SYMBOL,
            trade_date=ago(n),
            net_inflow=net,
            northbound_percent=held if n == 0 else then,
            **told(ago(n)),
        )
        for n in range(25)
    ]


def margin(now: float) -> list[MarginDay]:
    return [
        MarginDay(symbol=SYMBOL, trade_date=ago(n), financing_balance=now if n == 0 else 1e9, **told(ago(n)))
        for n in range(25)
    ]


@pytest.mark.parametrize(
    ("deep", "kind", "side", "says"),
    [
        (margin(1.2e9), "margin.rising", "for", "上升 20.0%"),
        (margin(1.5e9), "margin.crowded", "against", "上升 50.0%"),
        (margin(0.8e9), "margin.falling", "against", "下降 20.0%"),
        (margin(1.05e9), "margin.steady", "neither", "变化 5.0%"),
        (flows(2000, 3.0, 3.0), "large_orders.in", "for", "成交额的 10.0%"),
        (flows(-2000, 3.0, 3.0), "large_orders.out", "against", "成交额的 10.0%"),
        (flows(200, 3.5, 3.0), "northbound.more", "for", "增加 0.50 个百分点"),
        (flows(200, 2.5, 3.0), "northbound.less", "against", "减少 0.50 个百分点"),
        ([a_pledge(55.0)], "pledge_level.heavy", "against", "55.0%"),
        ([a_pledge(12.0)], "pledge_level.low", "neither", "12.0%"),
    ],
)
async def test_money_is_measured(deep: list[Fact], kind: str, side: str, says: str) -> None:
    report = await ask(*deep, daily=bars_of([20.0] * 30))
    claim = claims(report)[f"catalyst.{kind}"]
    assert (claim.side, claim.reported) == (side, False)
    assert says in claim.says["zh-CN"]


async def test_a_headline_about_pledges_gives_way_to_how_much_is_pledged() -> None:
    headline = a_news("控股股东质押股份", "Controlling holder pledges shares")
    assert "catalyst.pledge" not in claims(await ask(a_pledge(55.0), published=[headline]))


# ---------------------------------------------------------------- what such events did before

CONTRACT = ("中标重大项目", "Wins contract")


def jumps(days: int, every: int, by: float) -> list[float]:
    """A price that moves by a part every so many sessions, and by a little between."""
    prices = [20.0]
    for n in range(1, days):
        prices.append(prices[-1] * (1 + (by if n % every == 1 else 0.001 * (-1) ** n)))
    return prices


def index_of(closes: list[float]) -> list[IndexBar]:
    days = [ago(len(closes) - 1 - n) for n in range(len(closes))]
    prices = [dict.fromkeys(("open", "high", "low", "close", "pre_close"), close) for close in closes]
    name = {"index": "900000.DEMO", "name": "指数"}
    return [
        IndexBar(**name, trade_date=day, **price, **told(day))
        for day, price in zip(days, prices, strict=True)
    ]


def contracts(count: int) -> list[Any]:
    """One now, and one every 70 sessions before: on the evening of the day before a jump."""
    return [a_news(*CONTRACT, days_ago=3), *(a_news(*CONTRACT, days_ago=99 + 70 * n) for n in range(count))]


PRICES = jumps(700, 70, 0.1)
"""Jumps on the sessions 1, 71, … 631 of 0 … 699: 68, 138, … days ago."""


async def study_of(count: int, *deep: Fact) -> dict[str, Any]:
    published = [a_news(*CONTRACT, days_ago=3)]
    published += [a_news(*CONTRACT, days_ago=69 + 70 * n) for n in range(count)]
    return await ask(*deep, published=published, daily=bars_of(PRICES))


async def test_five_earlier_events_that_went_one_way_are_a_claim() -> None:
    report = await study_of(6)
    claim = claims(report)["catalyst.study.up"]
    assert (claim.id, claim.side, claim.horizon) == ("catalyst.study.contract_won", "for", 60)
    assert "可比的获得订单有 6 次，其后 60 个交易日股价（未作市场调整）平均上涨 1" in claim.says["zh-CN"]
    assert "(not adjusted for the market)" in claim.says["en-US"]


async def test_four_are_told_and_not_claimed_and_two_are_too_few() -> None:
    four, two = await study_of(4), await study_of(2)
    assert not [kind for kind in (*claims(four), *claims(two)) if ".study." in kind]
    assert "获得订单有 4 次，其后 60 个交易日" in four["narrative_report"]
    assert "不足 5 次，不作评判" in four["narrative_report"]
    assert four["catalyst_context"]["studies"][0]["low"] > 0
    assert "获得订单的先例有 2 次，不足 3 次，不作评判" in two["narrative_report"]


async def test_what_the_market_did_too_is_no_doing_of_the_event() -> None:
    report = await study_of(6, *index_of(PRICES))
    assert not [kind for kind in claims(report) if ".study." in kind]
    assert "股价相对市场指数平均变动 0.0%" in report["narrative_report"]


async def test_an_earlier_event_whose_horizon_has_not_ended_is_not_counted() -> None:
    recent = [a_news(*CONTRACT, days_ago=n) for n in (3, 30, 59)]
    over = [a_news(*CONTRACT, days_ago=60 + 70 * n) for n in range(3)]
    report = await ask(published=[*recent, *over], daily=bars_of(PRICES))
    assert report["catalyst_context"]["studies"][0]["n"] == 3


def test_every_kind_that_points_can_be_studied_by_name_and_no_other() -> None:
    said = CatalystDetectiveService.texts.texts("en-US")
    pointing = {category.id for category in event_table().news if category.polarity}
    assert {key.removeprefix("event.") for key in said if key.startswith("event.")} == pointing
    assert event_table().sizes.keys() <= pointing | {"results"}


async def test_the_event_at_hand_is_no_precedent_of_itself() -> None:
    visits = [a_news("多家机构调研", "Institutions visit", days_ago=n) for n in (40, 100, 160, 220)]
    report = await ask(published=visits, daily=bars_of(PRICES))
    (told_,) = report["catalyst_context"]["studies"]
    assert (told_["category"], told_["horizon"], told_["n"]) == ("inflow", 5, 3)


async def test_the_reaction_to_a_report_is_measured_in_what_is_usual() -> None:
    quiet = [20.0 * (1 + 0.01 * (n % 2)) for n in range(239)]
    calm, strong = [*quiet, *quiet[:61]], [*quiet, *[price * 1.08 for price in quiet[:61]]]
    filed = [a_report(2026, 1)]
    kinds = [claims(await ask(filed=filed, daily=bars_of(prices))) for prices in (calm, strong)]
    assert "catalyst.report_reaction.calm" in kinds[0]
    claim = kinds[1]["catalyst.report_reaction.rose_far"]
    assert (claim.side, claim.horizon) == ("for", 60)
    assert (
        "2026 年第一季度报告于 2026-04-30 披露，其后 3 个交易日股价（未作市场调整）上涨"
        in claim.says["zh-CN"]
    )


# ---------------------------------------------------------------- all of it

EVERYTHING = [
    *(a_notice(60, 80), an_unlock(30, 6.0), an_unlock(-30, 2.0), a_dividend(0.5, 9), a_trade("buy", 1.2)),
    *(a_pledge(55.0), *margin(1.2e9), *flows(2000, 3.5, 3.0), *index_of(jumps(700, 50, 0.05))),
]
LATER = [
    *(a_notice(-90, -80, days=-1), an_unlock(5, 40.0, days=-2), a_dividend(5.0, 3, days=-1)),
    *(a_trade("sell", 9.0, days=-1), a_news("被立案调查", "Under investigation", days_ago=-1)),
]


async def test_nothing_known_later_changes_anything_and_again_is_byte_equal() -> None:
    known: dict[str, Any] = {
        "published": contracts(6),
        "daily": bars_of(PRICES),
        "filed": [a_report(2026, 1)],
    }
    first, again, knowing = [
        await catalyst(FakeMarketFacts(others=deep, **known))
        for deep in (EVERYTHING, EVERYTHING, [*EVERYTHING, *LATER])
    ]
    assert repr(first) == repr(again) == repr(knowing)


async def test_an_english_report_says_the_same_in_its_own_words() -> None:
    known: dict[str, Any] = {
        "published": contracts(6),
        "daily": bars_of(PRICES),
        "filed": [a_report(2026, 1)],
    }
    facts = FakeMarketFacts(others=EVERYTHING, **known)
    english, chinese = await catalyst(facts, "en-US"), await catalyst(facts)
    assert english["claims"] == chinese["claims"]
    assert not [c for c in english["narrative_report"] if "\u3000" <= c <= "\u9fff"]
