"""Whatever a person writes leads to a company, to choices, or to a refusal that says why."""

import csv
import os
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.modules.market_data.application.directory import Directory
from moot.modules.market_data.domain.company_index import CompanyIndex, How
from moot.modules.market_data.domain.provider import Batch, NotOffered
from moot.modules.market_data.domain.spelling import bare_name, infer, initials, read_aloud, transcribe
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.facts import Company
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.symbol import Market
from tests.fakes.market_data import FakeMarketDataProvider, a_company
from tests.market_data.demo import demo_market

DATA = Path(os.environ.get("MOOT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
STOCK_BASIC = DATA / "ashare_stock_basic" / "stock_basic.csv"
SPELLINGS = {
    "SH": (
        "{c}",
        "sh{c}",
        "SH{c}",
        "{c}.SS",
        "{c}.SH",
        "SHSE.{c}",
        "{c}.XSHG",
        "sh.{c}",
        "SSE:{c}",
        " {c}.sh ",
    ),
    "SZ": ("{c}", "sz{c}", "SZ{c}", "{c}.SZ", "SZSE.{c}", "{c}.XSHE", "sz.{c}", "{c}_SZ"),
    "BJ": ("{c}", "bj{c}", "BJ{c}", "{c}.BJ", "BSE.{c}", "bj.{c}"),
    "DEMO": ("{c}", "{c}.DEMO", "{c}.demo", "demo{c}"),
}


def share(symbol: str, name: str, name_en: str = "", **changes: object) -> Company:
    return a_company(symbol, name=name, name_en=name_en, synthetic=False, source="fake", **changes)


A_SHARES = [
    share("600519.SH", "贵州茅台", "Kweichow Moutai Co., Ltd."),
    share("000001.SZ", "平安银行", "Ping An Bank", pinyin="payh", aliases=("深发展Ａ", "深圳发展银行")),
    share("601318.SH", "中国平安", "Ping An Insurance"),
    share("000002.SZ", "万科Ａ", "China Vanke"),
    share("600518.SH", "ST康美", "Kangmei Pharmaceutical", aliases=("康美药业",)),
    share("002594.SZ", "比亚迪", "BYD Company"),
    share("430047.BJ", "诺思兰德"),
    share("920799.BJ", "艾融软件", aliases=("830799.BJ",)),
    share("600401.SH", "退市海润(退)", delist_date=date(2019, 7, 18)),
    share("600087.SH", "退市长油(退)", delist_date=date(2014, 6, 5)),
    share("601975.SH", "招商南油", aliases=("长油5",)),
]
US = [
    share("AAPL", "苹果", "Apple Inc."),
    share("BYD", "", "Boyd Gaming"),
    share("BRK.B", "", "Berkshire Hathaway"),
]


def directory() -> Directory:
    return Directory(
        {
            Market.CN: FakeMarketDataProvider(A_SHARES),
            Market.US: FakeMarketDataProvider(US),
            Market.DEMO: demo_market(),
        }
    )


async def refusal(text: str, within: Directory | None = None) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        await (within or directory()).resolve(text)
    return caught.value


def offered(error: InvalidInput) -> list[str]:
    return [candidate["symbol"] for candidate in error.details["candidates"]]


def every_spelling(companies: list[Company]) -> list[tuple[str, str]]:
    split = [(company.symbol, *company.symbol.split(".")) for company in companies]
    return [(form.format(c=code), symbol) for symbol, code, suffix in split for form in SPELLINGS[suffix]]


@pytest.mark.parametrize(("text", "symbol"), every_spelling(A_SHARES))
async def test_a_code_is_found_in_every_common_spelling(text: str, symbol: str) -> None:
    assert (await directory().resolve(text)).symbol == symbol


@pytest.mark.parametrize(
    ("text", "symbol"),
    [
        ("900001", "900001.DEMO"),
        ("900001.DEMO", "900001.DEMO"),
        ("AAPL", "AAPL"),
        ("aapl", "AAPL"),
        ("AAPL.US", "AAPL"),
        ("NASDAQ:AAPL", "AAPL"),
        ("BRK-B", "BRK.B"),
        ("６００５１９", "600519.SH"),
        ("bj830799", "920799.BJ"),  # renumbered: the former code is an alias
        ("贵州茅台", "600519.SH"),
        ("茅台", "600519.SH"),
        (" 贵 州　茅台 ", "600519.SH"),
        ("万科A", "000002.SZ"),
        ("万科Ａ", "000002.SZ"),
        ("万科", "000002.SZ"),
        ("康美", "600518.SH"),
        ("ST康美", "600518.SH"),
        ("*ST康美", "600518.SH"),
        ("＊ＳＴ康美", "600518.SH"),
        ("康美药业", "600518.SH"),
        ("深发展A", "000001.SZ"),
        ("海润", "600401.SH"),
        ("kweichow moutai", "600519.SH"),
        ("VANKE", "000002.SZ"),
        ("mirage hill", "900001.DEMO"),
        ("gzmt", "600519.SH"),
        ("GZMT", "600519.SH"),
        ("wgyh", "900002.DEMO"),
        ("guizhoumaotai", "600519.SH"),
        ("Gui Zhou Mao Tai", "600519.SH"),
        ("zhoumaotai", "600519.SH"),
        ("airong", "920799.BJ"),
        ("wanke", "000002.SZ"),
        ("zhongguo pingan", "601318.SH"),
        ("pinganyinhang", "000001.SZ"),
    ],
)
async def test_a_name_or_code_that_means_one_company_gives_it(text: str, symbol: str) -> None:
    assert (await directory().resolve(text)).symbol == symbol


@pytest.mark.parametrize(
    ("text", "how", "whole"),
    [
        ("600519", How.CODE, True),
        ("6005", How.CODE, False),
        ("贵州茅台", How.NAME, True),
        ("州茅台", How.NAME, False),
        ("茅台", How.NAME, True),  # what it is called
        ("kweichow", How.ENGLISH_NAME, False),
        ("gzmt", How.PINYIN, True),
        ("guizhou", How.PINYIN_IN_FULL, False),
        ("深圳发展银行", How.FORMER_NAME, True),
    ],
)
async def test_a_match_says_how_it_was_found(text: str, how: How, whole: bool) -> None:
    best = (await directory().find(text))[0]
    assert (best.how, best.whole, best.listed) == (how, whole, True)


async def test_a_delisted_company_is_found_and_marked_after_the_listed_ones() -> None:
    matches = await directory().find("长油")
    assert [(m.company.symbol, m.listed, m.company.delist_date) for m in matches] == [
        ("600087.SH", False, date(2014, 6, 5)),  # its whole name, without the marks
        ("601975.SH", True, None),
    ]
    by_code = await directory().find("600")
    assert [m.company.symbol for m in by_code] == ["600518.SH", "600519.SH", "600087.SH", "600401.SH"]


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("S*ST 托普(退)", "托普"),
        ("神城A退(退)", "神城A"),
        ("亚虹医药-U", "亚虹医药"),
        ("XD贵州茅", "贵州茅"),
        ("Steel", "STEEL"),  # not an eel under special treatment
        ("ST", "ST"),
    ],
)
def test_marks_that_come_and_go_are_no_part_of_a_name(name: str, bare: str) -> None:
    assert bare_name(name) == bare


async def test_the_number_of_matches_is_limited() -> None:
    assert len(await directory().find("900", limit=3)) == 3
    assert len(await directory().find("900")) == 10


async def test_several_companies_are_given_as_choices() -> None:
    error = await refusal("平安")
    assert (error.code, error.details["candidates"]) == (
        "SYMBOL_AMBIGUOUS",
        [{"symbol": "000001.SZ", "name": "平安银行"}, {"symbol": "601318.SH", "name": "中国平安"}],
    )
    assert error.in_locale("zh-CN") == (
        "symbol：“平安”对应 2 家公司，请选择其一："
        "000001.SZ 平安银行 Ping An Bank、601318.SH 中国平安 Ping An Insurance。"
    )
    assert error.in_locale("en-US") == (
        "symbol: '平安' may mean 2 companies. Choose one: "
        "000001.SZ 平安银行 Ping An Bank, 601318.SH 中国平安 Ping An Insurance."
    )


async def test_a_ticker_that_is_also_someones_pinyin_is_asked_back() -> None:
    error = await refusal("byd")
    assert (error.code, set(offered(error))) == ("SYMBOL_AMBIGUOUS", {"BYD", "002594.SZ"})


async def test_a_name_in_use_outdoes_a_former_one() -> None:
    former = share("600002.SH", "新名", aliases=("旧名",))
    now = share("600003.SH", "旧名")
    found = await Directory({Market.CN: FakeMarketDataProvider([former, now])}).resolve("旧名")
    assert found.symbol == "600003.SH"


async def test_a_delisted_choice_says_when() -> None:
    error = await refusal("退市")
    assert "600401.SH 退市海润(退)（已于 2019-07-18 退市）" in error.in_locale("zh-CN")
    assert "600401.SH 退市海润(退) (delisted on 2019-07-18)" in error.in_locale("en-US")


@pytest.mark.parametrize(
    ("text", "kind", "zh", "en"),
    [
        ("000001.SH", "index", "指数", "an index"),
        ("sh000001", "index", "指数", "an index"),
        ("399001.SZ", "index", "指数", "an index"),
        ("399006", "index", "指数", "an index"),
        ("000300.SH", "index", "指数", "an index"),
        ("上证指数", "index", "指数", "an index"),
        ("沪深300", "index", "指数", "an index"),
        ("510300", "fund", "基金", "a fund"),
        ("510300.SH", "fund", "基金", "a fund"),
        ("159915.SZ", "fund", "基金", "a fund"),
        ("科创芯片ETF", "fund", "基金", "a fund"),
        ("900901.SH", "b_share", "B 股", "a B share"),
        ("200002.SZ", "b_share", "B 股", "a B share"),
        ("113050.SH", "bond", "债券", "a bond"),
        ("00700.HK", "hong_kong", "港股", "a Hong Kong share"),
        ("hk00700", "hong_kong", "港股", "a Hong Kong share"),
        ("700.HK", "hong_kong", "港股", "a Hong Kong share"),
        ("IF2412", "futures", "期货", "a futures contract"),
        ("rb2505.SHF", "futures", "期货", "a futures contract"),
    ],
)
async def test_what_is_no_share_is_told_so(text: str, kind: str, zh: str, en: str) -> None:
    error = await refusal(text)
    assert (error.code, error.details["kind"]) == ("SYMBOL_UNSUPPORTED", kind)
    assert zh in error.in_locale("zh-CN")
    assert en in error.in_locale("en-US")
    assert await directory().find(text) == []


@pytest.mark.parametrize(
    ("text", "market"), [("600519", "CN"), ("sz000001", "CN"), ("920002", "CN"), ("AAPL", "US")]
)
async def test_a_market_without_a_source_is_told_so(text: str, market: str) -> None:
    error = await refusal(text, Directory({Market.DEMO: demo_market()}))
    assert (error.code, error.details["market"]) == ("SYMBOL_UNSUPPORTED", market)
    assert all(text in error.in_locale(locale) for locale in LOCALES)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("600159", "600519.SH"),
        ("600519.SZ", "600519.SH"),  # the right number on the wrong exchange
        ("贵洲茅台", "600519.SH"),
        ("茅苔", "600519.SH"),  # another character of the same sound
        ("AAPK", "AAPL"),
        ("900013.DEMO", "900012.DEMO"),
    ],
)
async def test_an_unknown_text_is_answered_with_the_nearest(text: str, nearest: str) -> None:
    error = await refusal(text)
    assert error.code == "SYMBOL_UNKNOWN"
    assert nearest in offered(error)
    assert all(text in error.in_locale(locale) and nearest in error.in_locale(locale) for locale in LOCALES)


async def test_the_nearest_to_a_code_of_one_market_are_of_that_market() -> None:
    assert offered(await refusal("900013.DEMO")) == ["900012.DEMO", "900011.DEMO", "900010.DEMO"]


@pytest.mark.parametrize("text", ["没有这家公司吧", "zzzzzzzzz", "123"])
async def test_a_text_near_to_nothing_is_told_what_can_be_asked(text: str) -> None:
    error = await refusal(text)
    assert (error.code, offered(error)) == ("SYMBOL_UNKNOWN", [])
    assert "拼音首字母" in error.in_locale("zh-CN")
    assert "pinyin initials" in error.in_locale("en-US")


@pytest.mark.parametrize("text", ["", "  ", "　"])
async def test_a_blank_text_is_refused(text: str) -> None:
    assert (await refusal(text)).code == "SYMBOL_UNKNOWN"


@pytest.mark.parametrize(
    ("code", "symbol"),
    [
        ("600000", "600000.SH"),
        ("688001", "688001.SH"),
        ("000001", "000001.SZ"),
        ("300750", "300750.SZ"),
        ("430047", "430047.BJ"),
        ("830799", "830799.BJ"),
        ("920002", "920002.BJ"),
        ("900901", None),
        ("510300", None),
    ],
)
def test_the_exchange_of_a_bare_code_is_inferred_from_its_range(code: str, symbol: str | None) -> None:
    assert infer(code) == symbol


@pytest.mark.parametrize(
    ("name", "letters"),
    [("平安银行", "payh"), ("重庆啤酒", "cqpj"), ("TCL科技", "tclkj"), ("鑫科材料", "xkcl"), ("㐀", "")],
)
def test_pinyin_initials_are_worked_out_where_a_source_has_none(name: str, letters: str) -> None:
    assert initials(name) == letters


@pytest.mark.parametrize(
    ("name", "sounds"),
    [
        ("重庆啤酒", "chong qing pi jiu"),
        ("南都电源", "nan du dian yuan"),
        ("TCL科技", "t c l ke ji"),
        ("云铝股份", "yun lv gu fen"),
        ("昊华能源", "hao hua neng yuan"),
        ("㐀科技", ""),
    ],
)
def test_a_name_is_read_aloud_where_every_character_is_known(name: str, sounds: str) -> None:
    assert read_aloud(name) == sounds.split()


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("贵州茅台", "Guizhou Maotai"),
        ("五粮液", "Wuliangye"),
        ("*ST旧名股", "*ST Jiuminggu"),
        ("万科Ａ", "Wanke A"),
        ("Apple Inc.", "Apple Inc."),
        ("龘", "龘"),
    ],
)
def test_a_name_is_written_for_who_reads_no_chinese(name: str, written: str) -> None:
    assert transcribe(name) == written


class Counted(Batch[Company]):
    """Counts how often it is read through."""

    reads = 0

    def __iter__(self) -> Iterator[Company]:
        self.reads += 1
        return super().__iter__()


class Source(FakeMarketDataProvider):
    def __init__(self, companies: Batch[Company]) -> None:
        super().__init__()
        self.list = companies

    async def read(self, *_: Any) -> Batch[Any]:
        return self.list


async def test_a_list_of_6000_is_indexed_once_and_again_when_it_changes() -> None:
    companies = Counted(share(f"{600000 + n}.SH", f"公司{n:04d}") for n in range(6000))
    source = Source(companies)
    directory = Directory({Market.CN: source})
    for n in range(0, 6000, 500):
        assert (await directory.resolve(f"公司{n:04d}")).symbol == f"{600000 + n}.SH"
    assert companies.reads == 1
    source.list = Counted([*companies[1:], share("601318.SH", "中国平安")])
    assert (await directory.resolve("中国平安")).symbol == "601318.SH"
    assert (await refusal("600000", directory)).code == "SYMBOL_UNKNOWN"
    assert source.list.reads == 1


class Failing(FakeMarketDataProvider):
    def __init__(self, error: Unavailable) -> None:
        super().__init__()
        self.error = error

    async def read(self, *_: Any) -> Batch[Any]:
        raise self.error


async def test_a_source_that_fails_hides_only_its_own_companies() -> None:
    down = Unavailable("down")
    directory = Directory({Market.CN: Failing(down), Market.DEMO: demo_market()})
    assert (await directory.resolve("900001")).symbol == "900001.DEMO"
    for text in ("600519", "gzmt"):
        with pytest.raises(Unavailable) as caught:
            await directory.resolve(text)
        assert caught.value is down
    assert (await refusal("900013.DEMO", directory)).code == "SYMBOL_UNKNOWN"
    assert (await refusal("AAPL", directory)).code == "SYMBOL_UNSUPPORTED"
    assert (await refusal("510300", directory)).code == "SYMBOL_UNSUPPORTED"


async def test_a_source_that_keeps_no_list_counts_as_an_empty_one() -> None:
    directory = Directory({Market.US: Failing(NotOffered("no list")), Market.DEMO: demo_market()})
    assert (await refusal("AAPL", directory)).code == "SYMBOL_UNKNOWN"


@given(
    number=st.integers(600000, 609999),
    form=st.sampled_from(SPELLINGS["SH"]),
    capitals=st.booleans(),
    wide=st.booleans(),
)
def test_any_spelling_of_a_listed_code_leads_to_it(
    number: int, form: str, capitals: bool, wide: bool
) -> None:
    listed = share(f"{number}.SH", "某公司")
    text = form.format(c=number).upper() if capitals else form.format(c=number)
    if wide:
        text = text.translate({n: n + 0xFEE0 for n in range(ord("!"), ord("~") + 1)})
    matches = CompanyIndex([listed, share("000002.SZ", "万科Ａ")]).search(text)
    assert [(m.company, m.how, m.whole) for m in matches] == [(listed, How.CODE, True)]


def all_a_shares() -> list[Company]:
    if not STOCK_BASIC.exists():
        pytest.skip(f"no list of real companies at {STOCK_BASIC}")

    def day(text: str) -> date | None:
        return datetime.strptime(text, "%Y%m%d").date() if text else None  # noqa: DTZ007

    with STOCK_BASIC.open(encoding="utf-8") as file:
        return [
            share(r["ts_code"], r["name"], list_date=day(r["list_date"]), delist_date=day(r["delist_date"]))
            for r in csv.DictReader(file)
        ]


async def test_every_real_delisted_company_is_found_by_code_and_name_and_marked() -> None:
    companies = all_a_shares()
    directory = Directory({Market.CN: Source(Batch(companies))})
    gone = [company for company in companies if company.delist_date]
    assert len(gone) == 320
    for company in gone:
        assert await directory.resolve(company.symbol) == company
        by_name = [m for m in await directory.find(company.name, limit=50) if m.company == company]
        assert [m.listed for m in by_name] == [False]


async def test_real_listed_codes_resolve_in_every_spelling() -> None:
    companies = all_a_shares()
    directory = Directory({Market.CN: Source(Batch(companies))})
    listed = [company for company in companies if not company.delist_date]
    for text, symbol in every_spelling(Random(1).sample(listed, 100)):
        assert (await directory.resolve(text)).symbol == symbol
