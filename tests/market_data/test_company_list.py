"""The list of companies is read and checked once per change of its file, and everybody shares what was read."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.domain import company_index
from moot.modules.market_data.domain.facts import COMPANIES
from moot.modules.market_data.infrastructure import lake as lake_files
from moot.modules.market_data.infrastructure.lake import Lake
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.facts import Company
from moot.shared.domain.symbol import Market, Symbol
from tests.fakes.market_data import a_company

AT = datetime(2024, 7, 1, 12, tzinfo=UTC)
MOUTAI = a_company("600519.SH", name="贵州茅台")
VANKE = a_company("000002.SZ", name="万科A")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    keep(lake, MOUTAI)
    return lake


def keep(lake: Lake, *companies: Company) -> None:
    lake.store(COMPANIES, Market.CN.value, companies, covered=None, at=AT)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were opened for their rows."""
    opened: list[Path] = []
    real = lake_files.frame_in

    def frame_in(path: Path, *more: object) -> pl.DataFrame:
        opened.append(path)
        return real(path, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(lake_files, "frame_in", frame_in)
    return opened


async def test_many_who_ask_at_once_and_later_share_one_reading(lake: Lake, reads: list[Path]) -> None:
    data = MarketData({Market.CN: lake})
    symbol = Symbol.parse("600519.SH")
    found = await asyncio.gather(*(data.company(symbol, as_of=AT) for _ in range(8)))
    found += [await data.company(symbol, as_of=AT), await data.directory.resolve("贵州茅台")]
    assert {company.name for company in found} == {"贵州茅台"}
    assert len(reads) == 1


async def test_a_file_that_was_replaced_is_read_again_by_every_reader(lake: Lake, tmp_path: Path) -> None:
    data = MarketData({Market.CN: lake})
    assert await data.directory.listed(Symbol.parse("000002.SZ")) is None
    keep(Lake(tmp_path), VANKE)  # as another process would
    assert await data.directory.listed(Symbol.parse("000002.SZ")) == VANKE
    assert (await data.directory.resolve("万科A")).symbol == "000002.SZ"
    assert len(await lake.read(COMPANIES, Market.CN.value)) == 2


async def test_a_list_that_is_not_there_is_empty_until_it_is(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "new")
    assert list(await lake.read(COMPANIES, Market.CN.value)) == []
    keep(lake, MOUTAI)
    assert list(await lake.read(COMPANIES, Market.CN.value)) == [MOUTAI]


async def test_a_damaged_file_is_told_each_time_and_read_once_it_is_mended(
    lake: Lake, tmp_path: Path
) -> None:
    file = tmp_path / "companies" / "CN.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    for _ in range(2):
        with pytest.raises(Unavailable) as refused:
            await lake.read(COMPANIES, Market.CN.value)
        assert refused.value.code == "LAKE_DAMAGED"
    file.write_bytes(whole)
    assert list(await lake.read(COMPANIES, Market.CN.value)) == [MOUTAI]


async def test_a_whole_symbol_needs_nothing_that_a_search_needs(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = MarketData({Market.CN: lake})
    with monkeypatch.context() as without:
        without.delattr(company_index, "_keys")
        assert (await data.company(Symbol.parse("600519.SH"), as_of=AT)).name == "贵州茅台"
    assert (await data.directory.resolve("茅台")).symbol == "600519.SH"


async def test_a_list_from_before_companies_told_their_names_is_read(lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "companies" / "CN.parquet"
    coverage = lake_files.coverage_of(file)
    lake_files.replace(file, pl.read_parquet(file).drop("names", "aliases"), coverage)
    assert list(await lake.read(COMPANIES, Market.CN.value)) == [MOUTAI]
