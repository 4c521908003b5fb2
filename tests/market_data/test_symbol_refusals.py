"""A symbol that cannot be researched is refused by code, with the field named, in the reader's language."""

from datetime import UTC, datetime

import pytest

from moot.modules.market_data.application.market_data import MarketData
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.symbol import Market, Symbol
from tests.market_data.demo import NOW, demo_market

MARKET_DATA = MarketData({Market.DEMO: demo_market()})


async def refusal(symbol: str, as_of: datetime = NOW) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        await MARKET_DATA.company(Symbol.parse(symbol), as_of=as_of)
    return caught.value


async def test_a_listed_company_is_found() -> None:
    company = await MARKET_DATA.company(Symbol.parse("900001.demo"), as_of=NOW)
    assert (company.name, company.name_en, company.synthetic) == ("幻山酒业", "Mirage Hill Distillers", True)


async def test_an_unknown_symbol_is_answered_with_the_nearest_ones() -> None:
    error = await refusal("900013.DEMO")
    assert error.code == "SYMBOL_UNKNOWN"
    near = [candidate["symbol"] for candidate in error.details["candidates"]]
    assert near == ["900012.DEMO", "900011.DEMO", "900010.DEMO"]
    assert all(symbol in error.in_locale(locale) for locale in LOCALES for symbol in near)


async def test_a_symbol_near_to_none_is_told_the_range() -> None:
    error = await refusal("123456.DEMO")
    assert (error.code, error.details["candidates"]) == ("SYMBOL_UNKNOWN", [])
    assert "900001.DEMO 至 900012.DEMO" in error.in_locale("zh-CN")
    assert "900001.DEMO to 900012.DEMO" in error.in_locale("en-US")


@pytest.mark.parametrize("symbol", ["600519.SH", "AAPL"])
async def test_a_market_without_a_source_is_not_supported(symbol: str) -> None:
    assert (await refusal(symbol)).code == "SYMBOL_UNSUPPORTED"


@pytest.mark.parametrize("read", ["daily_bars", "daily_valuations", "financial_reports", "macro", "news"])
async def test_every_read_refuses_a_market_without_a_source(read: str) -> None:
    window = {"daily_bars": (NOW.date(), NOW.date()), "daily_valuations": (NOW.date(), NOW.date())}.get(
        read, (30,)
    )
    with pytest.raises(InvalidInput) as caught:
        await getattr(MARKET_DATA, read)(Symbol.parse("600519.SH"), *window, as_of=NOW)
    assert caught.value.code == "SYMBOL_UNSUPPORTED"


async def test_a_delisted_company_is_refused_from_its_last_day_on() -> None:
    error = await refusal("900007.DEMO", as_of=datetime(2022, 7, 14, 16, tzinfo=UTC))  # the 15th in Shanghai
    assert error.code == "SYMBOL_NOT_LISTED"
    assert all("2022-07-15" in error.in_locale(locale) for locale in LOCALES)
    day_before = datetime(2022, 7, 14, 8, tzinfo=UTC)
    assert await MARKET_DATA.company(Symbol.parse("900007.DEMO"), as_of=day_before)


async def test_a_company_is_refused_before_its_listing() -> None:
    error = await refusal("900006.DEMO", as_of=datetime(2023, 3, 14, 8, tzinfo=UTC))
    assert error.code == "SYMBOL_NOT_LISTED"
    assert all("2023-03-15" in error.in_locale(locale) for locale in LOCALES)


@pytest.mark.parametrize("symbol", ["900013.DEMO", "123456.DEMO", "600519.SH", "900007.DEMO"])
async def test_every_refusal_names_the_field_and_the_symbol_in_both_languages(symbol: str) -> None:
    error = await refusal(symbol)
    assert error.details["field"] == "symbol"
    zh, en = (error.in_locale(locale) for locale in LOCALES)
    assert zh.startswith("symbol：")
    assert en.startswith("symbol: ")
    assert symbol in zh
    assert symbol in en
    assert zh != en
