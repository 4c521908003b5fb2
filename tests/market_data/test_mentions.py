"""Names inside a sentence lead to companies, and words that only look like names do not."""

from pathlib import Path
from shutil import copyfile

import pytest

from moot.modules.market_data.application.directory import Directory
from moot.modules.market_data.domain.facts import COMPANIES
from moot.modules.market_data.domain.provider import Batch
from moot.modules.market_data.infrastructure.providers.files import FilesProvider
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.symbol import Market
from tests.fakes.market_data import FakeMarketDataProvider
from tests.market_data.demo import demo_market
from tests.market_data.test_directory import A_SHARES, STOCK_BASIC, US, Failing, share

MAPPING = Path(__file__).parents[1] / "measured" / "moot-data.yaml"
MORE = [
    share("300750.SZ", "宁德时代"),
    share("600536.SH", "中国软件"),
    share("601099.SH", "太平洋"),
    share("000333.SZ", "美的集团"),
    share("600839.SH", "四川长虹"),
    share("002415.SZ", "海康威视"),
    share("600617.SH", "国新能源"),
]


async def named(text: str) -> list[tuple[str, list[str]]]:
    sources = {
        Market.CN: FakeMarketDataProvider([*A_SHARES, *MORE]),
        Market.US: FakeMarketDataProvider(US),
        Market.DEMO: demo_market(),
    }
    found = await Directory(sources).find_in(text)
    return [(one.text, [match.company.symbol for match in one.matches]) for one in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("茅台现在能买吗？", [("茅台", ["600519.SH"])]),
        ("贵州茅台和宁德时代", [("贵州茅台", ["600519.SH"]), ("宁德时代", ["300750.SZ"])]),
        ("分析 sz000001 和 600519.SS", [("sz000001", ["000001.SZ"]), ("600519.SS", ["600519.SH"])]),
        ("Compare CATL and BYD on valuation", [("CATL", ["300750.SZ"]), ("BYD", ["002594.SZ"])]),
        ("平安怎么样", [("平安", ["000001.SZ", "601318.SH"])]),
        ("平安（601318）怎么样", [("601318", ["601318.SH"])]),  # the code says which
        ("四川长虹分红，长虹的估值", [("四川长虹", ["600839.SH"])]),  # each company once
        ("长虹怎么样", [("长虹", ["600839.SH"])]),
        ("Is Apple stock cheap?", [("Apple", ["AAPL"])]),
        ("should I hold $AAPL or BRK.B", [("AAPL", ["AAPL"]), ("BRK.B", ["BRK.B"])]),
        ("how is Mirage Hill doing", [("Mirage Hill", ["900001.DEMO"])]),
        ("貴州茅台", [("貴州茅台", ["600519.SH"])]),
        ("ＣＡＴＬ的估值", [("CATL", ["300750.SZ"])]),
        ("深发展A还在吗", [("深发展A", ["000001.SZ"])]),
        ("６００５１９ 今年如何", [("600519", ["600519.SH"])]),
        ("moutai or Ping An?", [("moutai", ["600519.SH"]), ("Ping An", ["000001.SZ", "601318.SH"])]),
        ("万科A会跌吗", [("万科A", ["000002.SZ"])]),
    ],
)
async def test_names_are_found_in_a_sentence(text: str, expected: list[tuple[str, list[str]]]) -> None:
    assert await named(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "太平洋的岛国有哪些",
        "完美的一天",
        "中国新能源车",
        "平安夜吃什么",
        "I ate an apple",
        "600519元能买什么",
        "What is the PE of the market?",
        "",
    ],
)
async def test_words_that_only_look_like_names_are_left_alone(text: str) -> None:
    assert await named(text) == []


async def test_a_shares_word_beside_it_makes_an_everyday_word_a_name() -> None:
    assert await named("太平洋的股价") == [("太平洋", ["601099.SH"])]
    assert await named("太平洋？") == [("太平洋", ["601099.SH"])]


async def test_a_part_of_a_name_counts_where_one_company_has_it() -> None:
    assert await named("诺思的估值") == [("诺思", ["430047.BJ"])]
    assert await named("银行的估值") == []  # in the demo market there is another one
    assert await named("买宁德") == [("宁德", ["300750.SZ"])]


async def test_almost_every_listed_company_is_found_by_its_name_in_a_sentence(tmp_path: Path) -> None:
    if not STOCK_BASIC.exists():
        pytest.skip(f"no list of real companies at {STOCK_BASIC}")
    (tmp_path / "companies.csv").symlink_to(STOCK_BASIC.resolve())
    files = FilesProvider(Path(copyfile(MAPPING, tmp_path / "moot-data.yaml")))
    everybody = Directory({Market.CN: files})
    listed = [company for company in await files.read(COMPANIES, "CN") if not company.delist_date][::5]
    bars = {"{}现在能买吗？": 0.995, "帮我研究一下{}": 0.99, "What do you think of {}?": 0.99}
    for sentence, least in bars.items():
        found = 0
        for company in listed:
            told = await everybody.find_in(sentence.format(company.name))
            found += [[match.company.symbol for match in one.matches] for one in told] == [[company.symbol]]
        assert found >= least * len(listed), sentence


async def test_a_market_without_its_list_hides_only_its_own() -> None:
    directory = Directory({Market.CN: Failing(Unavailable("down")), Market.DEMO: demo_market()})
    found = await directory.find_in("贵州茅台 和 900001 比呢")
    assert [one.text for one in found] == ["900001"]


async def test_a_list_that_changes_is_read_again() -> None:
    source = FakeMarketDataProvider(A_SHARES)
    directory = Directory({Market.CN: source})
    assert await directory.find_in("宁德时代的估值") == []
    source.directory = Batch([*A_SHARES, *MORE])
    assert [one.text for one in await directory.find_in("宁德时代的估值")] == ["宁德时代"]
