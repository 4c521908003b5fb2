"""How a share did beside its market and its industry: between the same days, by an index or by its peers, or said to
be unknown.
"""

import asyncio
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest

from moot.modules.research.application import technical_analyst
from moot.shared.domain.facts import DailyBar, IndexBar
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.peers import CrossSection, Peer, Place
from tests.fakes.research import AS_OF, SYMBOL, TODAY, FakeMarketFacts, bars_of, told
from tests.research.cases import technical

MARKET, INDUSTRY = "900000.DEMO", "980001.DEMO"
SHARE = [20.0] * 40 + [20 + n / 10 for n in range(61)]
"""Over its last 60 days from 20 to 26: 30 per cent; over its last 20 from 24 to 26: 8.3 per cent."""


def index_of(
    closes: Sequence[float], code: str = MARKET, industry: str | None = None, until: date = TODAY
) -> list[IndexBar]:
    days = [until - timedelta(days=len(closes) - 1 - n) for n in range(len(closes))]
    return [
        IndexBar(
            index=code,
            name=code,
            industry=industry,
            trade_date=day,
            **dict.fromkeys(("open", "high", "low", "close", "pre_close"), close),
            **told(day) | {"source": "exchange"},
        )
        for day, close in zip(days, closes, strict=True)
    ]


def rising(by: float, days: int = 101) -> list[float]:
    """By so many per cent over its last 60 days, all of it on the first of them."""
    return [100.0] * (days - 60) + [100.0 + by] * 60


def peers(median: float, own: float, count: int) -> CrossSection:
    place = Place(count=count, median=median, percentile=50.0)
    me = Peer(symbol=SYMBOL, name="幻山酒业", return_3m=own)
    return CrossSection(industry="白酒", as_of=AS_OF, own=me, peers=(), places={"return_3m": place})


async def ask(*indexes: Sequence[IndexBar], **facts: Any) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What was seen, and the claim that came of it."""
    daily = facts.pop("daily", bars_of(SHARE))
    report = await technical(
        FakeMarketFacts(daily=daily, others=[bar for bars in indexes for bar in bars], **facts)
    )
    claims = [claim for claim in report["claims"] if claim["id"] == "technical.relative_strength"]
    return report["technical_indicators"] | {"told": report}, next(iter(claims), None)


async def test_returns_are_those_of_the_same_days_and_excess_is_their_difference() -> None:
    seen, claim = await ask(index_of(rising(4.0)), index_of(rising(10.0), INDUSTRY, "白酒"))
    assert (seen["return_60d"], seen["return_20d"], seen["return_since"]) == (30.0, 8.3, "2026-05-01")
    assert (seen["market_index"], seen["market_return_60d"], seen["market_excess_60d"]) == (MARKET, 4.0, 26.0)
    assert (seen["market_return_20d"], seen["market_excess_20d"]) == (0.0, 8.3)
    assert (seen["industry_index"], seen["industry_excess_60d"]) == (INDUSTRY, 20.0)
    sources = {item["id"]: item["source"] for item in seen["told"]["evidence"]}
    assert sources["technical.market_return_60d"] == sources["technical.industry_excess_20d"] == "exchange"
    assert sources["technical.return_60d"] == "fake"
    assert claim
    assert (claim["kind"], claim["side"], claim["horizon"]) == (
        *("technical.relative_strength.ahead", "for"),
        60,
    )
    assert claim["says"]["zh-CN"] == (
        "自 2026-05-01 以来的 60 个交易日涨跌幅为 30.0%：比市场指数 900000.DEMO（4.0%）高 26.0 个百分点、"
        "比行业指数 980001.DEMO（10.0%）高 20.0 个百分点。强于可比对象。"
    )
    assert claim["says"]["en-US"] == (
        "Over 60 sessions since 2026-05-01 it returned 30.0%: 26.0 pp more than the market index 900000.DEMO "
        "(4.0%), 20.0 pp more than the industry index 980001.DEMO (10.0%). It leads what it can be compared with."
    )


@pytest.mark.parametrize(
    ("market", "industry", "band"),
    [(4, 10, "ahead"), (24, 27, "level"), (10, 60, "level"), (40, 31, "behind"), (34, 32, "level")],
)
async def test_only_who_leads_both_leads(market: float, industry: float, band: str) -> None:
    _, claim = await ask(index_of(rising(market)), index_of(rising(industry), INDUSTRY, "白酒"))
    assert claim
    assert claim["kind"] == f"technical.relative_strength.{band}"


async def test_a_share_that_was_suspended_is_compared_between_days_it_was_traded_on() -> None:
    """Of 100 calendar days it missed 30; the index rose before the 60 traded days began, and during the gap."""
    bars = bars_of(SHARE)
    missed = [bar.model_copy(update={"suspended": True, "volume": 0, "amount": 0.0}) for bar in bars[50:80]]
    traded: list[DailyBar] = [*bars[:50], *missed, *bars[80:]]
    closes = [50.0] * 10 + [100.0] * 50 + [110.0] * 41
    seen, _ = await ask(index_of(closes), daily=traded)
    assert seen["return_since"] == bars[10].trade_date.isoformat()
    assert (seen["return_60d"], seen["market_return_60d"]) == (30.0, 10.0)


async def test_of_several_indexes_of_a_market_the_customary_one_is_taken() -> None:
    first, customary = index_of(rising(4.0), "000001.SH"), index_of(rising(9.0), "000300.SH")
    seen, _ = await ask(first, customary)
    assert (seen["market_index"], seen["market_return_60d"]) == ("000300.SH", 9.0)
    seen, _ = await ask(index_of(rising(5.0), "399001.SZ"), first)
    assert seen["market_index"] == "000001.SH"


async def test_where_there_is_no_index_its_peers_are_what_it_is_compared_with() -> None:
    seen, claim = await ask(among=peers(median=12.04, own=29.06, count=7))
    assert (seen["return_3m"], seen["peer_return_3m"], seen["peer_excess_3m"]) == (29.1, 12.0, 17.1)
    assert claim
    assert "近三个月（29.1%）比 7 家同行的中位数（12.0%）高 17.1 个百分点" in claim["says"]["zh-CN"]
    assert "technical.peer_excess_3m" in claim["evidence"]


async def test_what_there_is_nothing_to_compare_with_is_said() -> None:
    _, claim = await ask(index_of(rising(4.0)), among=peers(median=12.0, own=29.0, count=7))
    assert claim
    assert "没有可比的行业指数" in claim["says"]["zh-CN"]
    seen, claim = await ask(among=peers(median=12.0, own=29.0, count=4))
    assert (seen["peer_count"], claim) == (None, None), "four are too few"
    seen, claim = await ask()
    assert claim is None
    assert "相对强弱" in seen["told"]["narrative_report"].partition("数据缺口：")[2]
    assert "no peers" in seen["told"]["warnings"]


async def test_a_source_that_keeps_one_waiting_for_indexes_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Slow(FakeMarketFacts):
        async def read(self, *_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()

    monkeypatch.setattr(technical_analyst, "PATIENCE", 0.0)
    report = await technical(Slow(daily=bars_of(SHARE)))
    assert report["warnings"][0] == ("0 秒内没有取得指数日线，因此未与市场比较；可先用 moot data sync 同步。")
    assert report["signal"] in {"BULLISH", "NEUTRAL", "BEARISH"}


async def test_an_index_of_a_day_that_was_not_known_yet_does_not_exist() -> None:
    *known, last = index_of(rising(4.0))
    late = last.model_copy(update={"available_at": AS_OF + timedelta(hours=1)})
    seen, claim = await ask([*known, late])
    assert (seen["market_return_60d"], claim) == (None, None)


async def test_a_share_of_sixty_days_has_no_return_over_sixty() -> None:
    seen, claim = await ask(index_of(rising(4.0)), daily=bars_of(SHARE[-60:]))
    assert (seen["return_60d"], seen["return_since"], seen["market_excess_60d"], claim) == (None,) * 4
    assert seen["market_excess_20d"] == 8.3


async def test_the_same_again_is_the_same_in_either_language() -> None:
    facts = FakeMarketFacts(daily=bars_of(SHARE), others=index_of(rising(4.0)))
    for locale in LOCALES:
        assert await technical(facts, locale) == await technical(facts, locale)
    said = [(await technical(facts, locale))["claims"] for locale in LOCALES]
    assert said[0] == said[1]
