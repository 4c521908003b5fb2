"""Where the real data are: `MOOT_TEST_DATA`, else `../shared/data` beside the repository. Without them, all skips."""

import asyncio
import os
from pathlib import Path

import polars as pl
import pytest

from moot.modules.market_data.infrastructure.providers.files import FilesProvider
from tests.measured.real_market import GOLDEN, RealMarket, golden_files, real_market, table

BESIDE = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = Path(os.environ.get("MOOT_TEST_DATA") or BESIDE)
    if not folder.is_dir():
        pytest.skip(f"no real market data: {folder} is not there (MOOT_TEST_DATA names another folder)")
    return folder.resolve()


@pytest.fixture(scope="session")
def market(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> RealMarket:
    """40 A-shares from 2020 to 2022."""
    return asyncio.run(real_market(data_folder, tmp_path_factory.mktemp("market")))


@pytest.fixture(scope="session")
def golden(data_folder: Path) -> pl.DataFrame:
    """12 A-shares in 2024 with the factors and indicators that Tushare computed."""
    return table(data_folder, GOLDEN).sort("ts_code", "trade_date")


@pytest.fixture(scope="session")
def golden_bars(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> FilesProvider:
    return golden_files(data_folder, tmp_path_factory.mktemp("golden"))
