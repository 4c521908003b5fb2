"""What the experts find in real tables: `python -m bench.real_data FOLDER [PAGE]` counts, and writes PAGE.

Forty A-shares at ten moments, some of them long after the tables end. The tables are imported into an empty lake the
way a user imports files, then every expert is asked by rule. Exits 1 if one judged by data older than their limit.
"""

import asyncio
import sys
import tempfile
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import SecretStr

from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.container import MarketDataContainer, Sources
from moot.modules.market_data.domain.facts import BARS, MACRO, REPORTS, VALUATIONS, Dataset
from moot.modules.market_data.domain.trading_rules import trading_calendar
from moot.modules.research.container import ResearchContainer
from moot.shared.domain.clock import SystemClock
from moot.shared.domain.errors import AppError, Unavailable
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import TIME_ZONES, Market, Symbol
from moot.shared.infrastructure.call_audit import ExternalCalls

DAILY = "ashare_daily/daily_valuation_40.csv.gz"
FIGURES = "ashare_fin_pit/fin_indicators_pit.csv"
NEWS = "ashare_news/announcements_2018_2020.csv.gz"
COMPANIES = "ashare_stock_basic/stock_basic.csv"
AS_THEY_ARE = (
    COMPANIES,
    DAILY,
    *(f"china_macro/{name}" for name in ("choice_pmi.csv", "choice_cpi_ppi.csv", "choice_gdp.csv")),
    "china_macro/cgb_yield_curve.csv.gz",
)
DAYS = [
    *(date(2020, 3, 31), date(2020, 6, 30), date(2020, 9, 30), date(2020, 12, 31), date(2021, 6, 30)),
    *(date(2021, 12, 31), date(2022, 6, 30), date(2022, 12, 30), date(2023, 6, 30), date(2024, 7, 31)),
]
JUDGED_BY: dict[ExpertType, tuple[Dataset[Any], ...]] = {
    ExpertType.TECHNICAL_ANALYST: (BARS,),
    ExpertType.FINANCIAL_AUDITOR: (REPORTS,),
    ExpertType.VALUATION_MODELER: (VALUATIONS, REPORTS),
    ExpertType.MACRO_INTELLIGENCE: (MACRO,),
    ExpertType.CATALYST_DETECTIVE: (),
}


@dataclass
class Count:
    """`ages`: by dataset, those of the newest rows a verdict was given by; `stale`: verdicts beyond the limit."""

    imported: list[str] = field(default_factory=list)
    verdicts: Counter[tuple[ExpertType, date]] = field(default_factory=Counter)
    reasons: Counter[tuple[ExpertType, str]] = field(default_factory=Counter)
    ages: dict[str, list[int]] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)
    peers: Counter[date] = field(default_factory=Counter)


async def count(folder: Path) -> Count:
    found = Count()
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as prepared:
        symbols = pl.read_csv(folder / DAILY, columns=["ts_code"])["ts_code"].unique().sort().to_list()
        files = [*((folder / name,) for name in AS_THEY_ARE), *prepare(folder, Path(prepared), symbols)]
        for choices in files:
            found.imported += [await bring_in(Path(home), choices)]
        data = container(Path(home)).market_data()
        for text in symbols:
            await ask_about(Symbol.parse(text), data, found)
    return found


def container(home: Path) -> MarketDataContainer:
    """One for the import and one for the questions: which markets there are is looked up when it is made."""
    sources, calls = Sources(SecretStr(""), ""), ExternalCalls(None)
    return MarketDataContainer(SystemClock(), demo_seed=1, lake=home / "lake", sources=sources, calls=calls)


def prepare(folder: Path, work: Path, symbols: Sequence[str]) -> Iterator[tuple[Path, ...]]:
    """Tables that need a column more: valuations have no market value, and news is of thousands of companies.

    Where the figures of reports are not read as they are, they are offered in columns that every version reads.
    """
    daily = pl.read_csv(folder / DAILY)
    shares = (100 * pl.col("volume") / pl.col("turn")).forward_fill().over("ts_code")
    valued = daily.with_columns((pl.col("close") * shares).alias("总市值(元)")).fill_nan(None)
    kept = ["ts_code", "date", "close", "总市值(元)", "peTTM", "pbMRQ", "psTTM", "turn"]
    valued.select(kept).write_csv(work / "valuations.csv")
    news = pl.read_csv(folder / NEWS).filter(pl.col("ts_code").is_in(symbols))
    news.write_csv(work / "announcements.csv")
    reports = pl.read_csv(folder / FIGURES, infer_schema_length=None)
    percent = {"npMargin": "销售净利率", "roeAvg": "加权净资产收益率", "liabilityToAsset": "资产负债率"}
    reports.select(
        *("ts_code", "end_date", "ann_date"),
        (pl.col("netProfit") * pl.col("dupontPnitoni")).alias("net_profit"),
        pl.col("MBRevenue").alias("total_revenue"),
        (pl.col("netProfit") * pl.col("dupontPnitoni") / pl.col("totalShare")).alias("eps"),
        *((pl.col(theirs) * 100).alias(ours) for theirs, ours in percent.items()),
    ).write_csv(work / "reports.csv")
    yield (work / "valuations.csv",)
    yield (work / "announcements.csv",)
    yield (folder / FIGURES, work / "reports.csv")


async def bring_in(home: Path, choices: Sequence[Path]) -> str:
    """The first of the files that is understood; a line about what became of it."""
    why = ""
    for file in choices:
        try:
            done = (await container(home).imports().bring_in(file, None)).done
        except AppError as e:
            why = e.in_locale("en-US")
            continue
        told = [
            f"{one.name.in_locale('en-US')}: {one.rows:,} rows, {len(one.refused):,} refused" for one in done
        ]
        return f"| `{file.name}` | {'; '.join(told)} |"
    return f"| `{choices[0].name}` | not understood: {why[:80]} … |"


async def ask_about(symbol: Symbol, data: MarketData, found: Count) -> None:
    newest = {
        dataset: await days_known(dataset, symbol, data) for dataset in (BARS, VALUATIONS, REPORTS, MACRO)
    }
    for day in DAYS:
        as_of = datetime.combine(day, time_of_day(20), TIME_ZONES[Market.CN]).astimezone(UTC)
        for expert, datasets in JUDGED_BY.items():
            try:
                await ask(expert, symbol, day, as_of, data)
            except AppError as e:
                found.reasons[expert, reason_of(e)] += 1
                continue
            found.verdicts[expert, day] += 1
            for dataset in datasets:
                note_age(found, f"{expert} on {symbol.text} at {day}", dataset, newest[dataset], as_of, day)
        found.peers[day] += await has_place(symbol, data, as_of)


async def ask(expert: ExpertType, symbol: Symbol, day: date, as_of: datetime, data: MarketData) -> None:
    of_the_day = (day,) if expert is ExpertType.TECHNICAL_ANALYST else ()
    await ResearchContainer(data).service(expert).run(symbol.text, *of_the_day, as_of=as_of, locale="en-US")


async def has_place(symbol: Symbol, data: MarketData, as_of: datetime) -> bool:
    try:
        places = (await data.peers(symbol, as_of=as_of)).places
    except AppError:
        return False
    return any(place.percentile is not None for place in places.values())


async def days_known(dataset: Dataset[Any], symbol: Symbol, data: MarketData) -> list[tuple[datetime, date]]:
    """When each row became known and its day, as the newest day moved on; read past the experts."""
    try:
        known = await data.read_known(dataset, symbol, datetime.now(UTC))
    except Unavailable:
        return []
    steps: list[tuple[datetime, date]] = []
    for fact in sorted(known, key=lambda fact: fact.available_at):
        if not steps or getattr(fact, dataset.day) > steps[-1][1]:
            steps.append((fact.available_at, getattr(fact, dataset.day)))
    return steps


def note_age(
    found: Count,
    who: str,
    dataset: Dataset[Any],
    steps: list[tuple[datetime, date]],
    as_of: datetime,
    day: date,
) -> None:
    limit, known = dataset.limit, bisect_right(steps, (as_of, date.max))
    assert limit
    if not known:
        found.stale.append(f"{who}: judged without {dataset}")
        return
    newest, most = steps[known - 1][1], limit.days if limit.sessions is None else limit.sessions
    age = (day - newest).days
    if limit.sessions is not None:
        age = len(trading_calendar(Market.CN).sessions(newest, day)) - 1
    found.ages.setdefault(dataset.name, []).append(age)
    if most is not None and age > most:
        found.stale.append(f"{who}: {dataset} of {newest}, {age} old, limit {most}")


class Blank:
    """Stands where a reason has a name, a day or a number, so that like reasons are counted together."""

    def __format__(self, _: str) -> str:
        return "…"


class Blanks(dict[str, Any]):
    def __missing__(self, _: str) -> Blank:
        return Blank()


def reason_of(error: AppError) -> str:
    said = error.message
    if not isinstance(said, Message):
        return error.code
    dataset = said.values.get("dataset")
    told = Blanks(dataset=dataset.in_locale("en-US")) if isinstance(dataset, Message) else Blanks()
    sentence = said.catalogue.texts("en-US")[said.key].format_map(told).removeprefix("symbol: ")
    return sentence.partition(": …")[0].partition(". ")[0].strip(" .")


def page(found: Count) -> str:
    """The counts in Markdown: numbers only, nothing of the tables themselves."""
    days = [day.isoformat() for day in DAYS]
    by_expert = [
        f"| {expert} | {' | '.join(str(found.verdicts[expert, day]) for day in DAYS)} |"
        for expert in JUDGED_BY
    ]
    peers = f"| a place among peers | {' | '.join(str(found.peers[day]) for day in DAYS)} |"
    reasons = [
        f"| {expert} | {why} | {n} |" for (expert, why), n in sorted(found.reasons.items(), key=_by_expert)
    ]
    limits = {
        d.name: f"{d.limit.sessions} sessions" if d.limit.sessions else f"{d.limit.days} days"
        for d in (BARS, VALUATIONS, REPORTS, MACRO)
        if d.limit
    }
    ages = [f"| {name} | {limits[name]} | {max(seen)} | {len(seen):,} |" for name, seen in found.ages.items()]
    asked = len(DAYS) * len(JUDGED_BY)
    return "\n".join(
        [
            "# What the experts find in real tables",
            "",
            "Forty A-shares at ten moments, five experts each, judged by rule: which of them had data, and why the",
            "others had none. The tables end in 2022 (prices, reports), 2020 (announcements) and 2025 (macro), so",
            "the last moments ask for what nobody has. Counts only; `make real-data TABLES=folder` makes this page.",
            "",
            "## Imported",
            "",
            "| file | became |",
            "|---|---|",
            *found.imported,
            "",
            "## Had data, of forty",
            "",
            f"| expert | {' | '.join(days)} |",
            f"|---|{'---:|' * len(days)}",
            *by_expert,
            peers,
            "",
            "## Said that there is none, and why",
            "",
            f"Of {asked * 40:,} questions, {sum(found.verdicts.values()):,} were judged.",
            "",
            "| expert | reason | times |",
            "|---|---|---:|",
            *reasons,
            "",
            "## How old what they judged by was",
            "",
            "The newest row known at the moment, read past the experts.",
            "",
            "| dataset | limit | oldest | verdicts |",
            "|---|---|---:|---:|",
            *ages,
            "",
            f"Judged by something older than its limit, or by nothing: {len(found.stale)}.",
            "",
        ]
    )


def _by_expert(counted: tuple[tuple[ExpertType, str], int]) -> tuple[int, int]:
    (expert, _), times = counted
    return list(JUDGED_BY).index(expert), -times


def main(folder: str, written: str = "") -> int:
    started = time.perf_counter()
    found = asyncio.run(count(Path(folder)))
    text = page(found)
    print(text)
    print(f"{time.perf_counter() - started:.0f} s", *found.stale[:20], sep="\n", file=sys.stderr)
    if written:
        Path(written).write_text(text, encoding="utf-8")
    return 1 if found.stale else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
