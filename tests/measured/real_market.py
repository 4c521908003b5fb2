"""Real tables, read the way a user's own files are read, and the same rows as plain polars for a second opinion."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from shutil import copyfile

import polars as pl

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.domain.facts import BARS, COMPANIES, MACRO, NEWS, REPORTS, VALUATIONS
from moot.modules.market_data.domain.provider import Batch, screen
from moot.modules.market_data.infrastructure.providers.files import FilesProvider
from moot.shared.domain.facts import MacroObservation, NewsItem
from moot.shared.domain.symbol import TIME_ZONES, Market
from tests.fakes.market_data import FakeMarketDataProvider

HERE = Path(__file__).parent
SHANGHAI = TIME_ZONES[Market.CN]
EVER = (date(1990, 1, 1), date(2030, 1, 1))

DAILY = "ashare_daily/daily_valuation_40.csv.gz"
REPORTS_FILE = "ashare_fin_pit/fin_indicators_pit.csv"
COMPANIES_FILE = "ashare_stock_basic/stock_basic.csv"
GOLDEN = "indicator_golden/stk_factor_2024.csv.gz"
NEWS_FILE = "ashare_news/announcements_2018_2020.csv.gz"
PMI = "china_macro/choice_pmi.csv"


@dataclass(frozen=True)
class RealMarket:
    """`daily` and `reports` are the tables as they came, `sources` what Moot made of them, by symbol."""

    daily: pl.DataFrame
    reports: pl.DataFrame
    files: FilesProvider
    sources: dict[str, FakeMarketDataProvider]

    def reading(self, symbol: str) -> MarketData:
        return MarketData({Market.CN: self.sources[symbol]})

    def rows(self, symbol: str) -> pl.DataFrame:
        return self.daily.filter(pl.col("ts_code") == symbol).sort("date")


def at(day: date, hour: int, minute: int = 0) -> datetime:
    """Exchange time, as UTC."""
    return datetime.combine(day, time(hour, minute), SHANGHAI).astimezone(UTC)


def table(folder: Path, name: str) -> pl.DataFrame:
    return pl.read_csv(folder / name, try_parse_dates=True, infer_schema_length=None)


def golden_files(folder: Path, work: Path) -> FilesProvider:
    (work / "golden.csv.gz").symlink_to(folder / GOLDEN)
    return FilesProvider(Path(copyfile(HERE / "golden.yaml", work / "golden.yaml")))


async def real_market(folder: Path, work: Path) -> RealMarket:
    daily, reports = table(folder, DAILY), table(folder, REPORTS_FILE)
    (work / "daily.csv.gz").symlink_to(folder / DAILY)
    (work / "companies.csv").symlink_to(folder / COMPANIES_FILE)
    _with_market_value(daily).write_parquet(work / "valuations.parquet")
    _per_share(reports).write_parquet(work / "reports.parquet")
    files = FilesProvider(Path(copyfile(HERE / "moot-data.yaml", work / "moot-data.yaml")))
    return RealMarket(daily, reports, files, await _sources(files, folder, daily["ts_code"].unique().sort()))


async def _sources(
    files: FilesProvider, folder: Path, symbols: pl.Series
) -> dict[str, FakeMarketDataProvider]:
    directory = await files.read(COMPANIES, "CN")
    observations, items = _pmi(table(folder, PMI)), _news(table(folder, NEWS_FILE))
    return {
        symbol: FakeMarketDataProvider(
            directory=[company for company in directory if company.symbol == symbol],
            bars=await files.read(BARS, symbol, *EVER),
            valuations=await files.read(VALUATIONS, symbol, *EVER),
            reports=await files.read(REPORTS, symbol),
            observations=observations,
            items=[item for item in items if item.symbol == symbol],
        )
        for symbol in symbols
    }


def _with_market_value(daily: pl.DataFrame) -> pl.DataFrame:
    """The table has no share count; what was traded over the part of the shares it was is one."""
    shares = (100 * pl.col("volume") / pl.col("turn")).forward_fill().over("ts_code")
    return daily.with_columns(total_mv=pl.col("close") * shares)


def _per_share(reports: pl.DataFrame) -> pl.DataFrame:
    def per_share(total: pl.Expr) -> pl.Expr:
        return total / pl.col("totalShare")

    return reports.with_columns(
        eps=per_share(pl.col("netProfit") * pl.col("dupontPnitoni")),
        ocfps=per_share(pl.col("netProfit") * pl.col("CFOToNP")),
        revenue_ps=per_share(pl.col("MBRevenue")),
    )


def _pmi(months: pl.DataFrame) -> Batch[MacroObservation]:
    """Out on the last morning of its month."""
    released = months.with_columns(out=pl.col("date").dt.month_end()).drop_nulls("PMI")
    rows = (
        {
            "series": "pmi_manufacturing",
            "period": month["date"],
            "value": month["PMI"],
            "unit": "index",
            "url": f"pmi/{month['date']}",
            "event_time": at(month["out"], 9),
            "available_at": at(month["out"], 9, 30),
            "source": "files",
        }
        for month in released.iter_rows(named=True)
    )
    return screen(MACRO, rows)


def _news(announcements: pl.DataFrame) -> Batch[NewsItem]:
    rows = (
        {
            "kind": "announcement",
            "title": item["title"],
            "url": f"announcement/{n}",
            "symbol": item["ts_code"],
            "event_time": item["date"].replace(tzinfo=SHANGHAI),
            "available_at": item["date"].replace(tzinfo=SHANGHAI),
            "source": "files",
        }
        for n, item in enumerate(announcements.sort("date").iter_rows(named=True))
    )
    return screen(NEWS, rows)
