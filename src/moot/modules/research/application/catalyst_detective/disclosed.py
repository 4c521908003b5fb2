"""What a company and its holders disclose in figures, and what its market measures: events of the kinds that
headlines tell of, without reading any; how the money moves; and the days to wait for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from moot.modules.research.domain.event_study import Tape
from moot.modules.research.domain.events import WINDOW_DAYS, Event, event_table, make_event, sort_news
from moot.modules.research.domain.evidence import show
from moot.modules.research.domain.facts import COMMON, Case, MarketFacts
from moot.shared.domain import units
from moot.shared.domain.datasets import DATASET_TEXTS
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.experts import EXPERT_TEXTS
from moot.shared.domain.facts import (
    DailyBar,
    Dividend,
    EarningsNotice,
    Fact,
    FinancialReport,
    FlowDay,
    HolderTrade,
    IndexBar,
    MarginDay,
    NewsItem,
    Pledge,
    Unlock,
    quarter_of,
    report_due,
)
from moot.shared.domain.messages import LOCALES, Catalogue, Locale, Message
from moot.shared.domain.symbol import Market

SAY, DATASETS = Catalogue(COMMON, EXPERT_TEXTS, Path(__file__).parent), Catalogue(DATASET_TEXTS)
HISTORY_DAYS = 3 * 365
SESSIONS = 20
"""Over which balances and flows are compared."""
FIGURES = {"cash_per_ten": units.PRICE}
PART = units.Unit("percent", "%", 2)
"""What a fact is told by is a part of something, unless it is named."""


READ: Mapping[str, tuple[type[Fact], int]] = {
    "reports": (FinancialReport, HISTORY_DAYS),
    "notices": (EarningsNotice, HISTORY_DAYS),
    "dividends": (Dividend, HISTORY_DAYS),
    "unlocks": (Unlock, HISTORY_DAYS),
    "pledges": (Pledge, WINDOW_DAYS),
    "holder_trades": (HolderTrade, HISTORY_DAYS),
    "margin": (MarginDay, WINDOW_DAYS),
    "flows": (FlowDay, WINDOW_DAYS),
    "bars": (DailyBar, HISTORY_DAYS),
    "index_bars": (IndexBar, HISTORY_DAYS),
}
"""By dataset: how many days back."""
F = TypeVar("F", bound=Fact)


@dataclass(frozen=True)
class Disclosed:
    """By kind, oldest first; a kind that could not be had is not there."""

    facts: Mapping[type[Fact], Sequence[Any]]

    def of(self, kind: type[F]) -> Sequence[F]:
        return self.facts.get(kind, ())

    def newest(self, kind: type[F]) -> F | None:
        return next(iter(self.of(kind)[-1:]), None)

    @property
    def sources(self) -> list[str]:
        """Who told what was disclosed; prices alone are none of it."""
        kinds = [kind for kind in self.facts if kind not in (DailyBar, IndexBar)]
        return sorted({fact.source for kind in kinds if (fact := self.newest(kind))})

    @property
    def missing(self) -> list[Message]:
        return [DATASETS(f"dataset.{name}") for name, (kind, _) in READ.items() if kind not in self.facts]


async def gather(facts: MarketFacts, case: Case) -> Disclosed:
    found: dict[type[Fact], Sequence[Any]] = {}
    for kind, days in READ.values():
        start = case.today - timedelta(days=days)
        # the detective can do without any of them, and says without which it did
        with suppress(Unavailable):
            found[kind] = await facts.read(kind, case.symbol, as_of=case.as_of, start=start, end=case.today)
    return Disclosed(found)


class Occurrence(NamedTuple):
    """Something disclosed: of which kind, from when on it works, its size in per cent, and what it is told by."""

    fact: Fact
    category: str
    at: datetime
    size: float
    told: str
    figures: Mapping[str, float]
    period: date | None = None


def list_occurrences(found: Disclosed, case: Case) -> list[Occurrence]:
    """Those that tell their size; the others are left to headlines."""
    price = bar.close if (bar := found.newest(DailyBar)) else None
    notices = {notice.period_end: notice for notice in found.of(EarningsNotice)}.values()
    over = [unlock for unlock in found.of(Unlock) if unlock.unlock_date <= case.today]
    return [
        *(
            Occurrence(r, "results", r.available_at, 0, "results", {}, r.period_end)
            for r in found.of(FinancialReport)
        ),
        *(_read_notice(n) for n in notices if n.change_low is not None and n.change_high is not None),
        *(_read_dividend(d, price) for d in found.of(Dividend) if d.cash_per_share and price),
        *_add_up(over, lambda unlock: (unlock.event_time, "lockup_expiry")),
        *_add_up(found.of(HolderTrade), lambda trade: (trade.available_at, WAYS[trade.direction])),
    ]


WAYS = {"buy": "stake_raised", "sell": "selldown"}


def _read_notice(notice: EarningsNotice) -> Occurrence:
    """A range that is all gain or all loss points; one that is neither is only told."""
    low, high = sorted((notice.change_low or 0.0, notice.change_high or 0.0))
    better = "loss_narrowed" if (notice.net_profit_high or 0.0) < 0 else "profit_up"
    category = better if low > 0 else "profit_warning" if high < 0 else "results"
    figures, size = {"change_low": low, "change_high": high}, min(abs(low), abs(high))
    return Occurrence(notice, category, notice.available_at, size, notice.kind, figures, notice.period_end)


def _read_dividend(dividend: Dividend, price: float) -> Occurrence:
    part, cash = round(100 * dividend.cash_per_share / price, 2), round(10 * dividend.cash_per_share, 4)
    figures = {"cash_per_ten": cash, "of_price": part}
    at, period = dividend.available_at, dividend.period_end
    return Occurrence(dividend, "dividend", at, part, "dividend", figures, period)


Parts = TypeVar("Parts", Unlock, HolderTrade)


def _add_up(
    rows: Sequence[Parts], when_and_what: Callable[[Parts], tuple[datetime, str]]
) -> Iterator[Occurrence]:
    """What several free or trade at one time is one event."""
    for (at, category), group in groupby(sorted(rows, key=when_and_what), key=when_and_what):
        same = list(group)
        if size := add_parts(same):
            yield Occurrence(same[-1], category, at, size, category, {"of_shares": size})


def add_parts(rows: Sequence[Unlock] | Sequence[HolderTrade]) -> float | None:
    """Per cent of all shares; None where one of them does not tell."""
    parts = [row.percent for row in rows if row.percent is not None]
    return round(sum(parts), 2) if len(parts) == len(rows) else None


def date_kinds(occurrences: Iterable[Occurrence], told: Iterable[NewsItem]) -> dict[str, list[datetime]]:
    """By kind, when each event about the company itself was known, in figures or by a headline."""
    known = [(one.category, one.at) for one in occurrences]
    known += [(category.id, item.available_at) for item, category in sort_news(n for n in told if n.symbol)]
    moments: dict[str, list[datetime]] = {}
    for category, at in sorted(known, key=lambda one: one[1]):
        moments.setdefault(category, []).append(at)
    return moments


def read_facts(occurrences: Iterable[Occurrence], case: Case) -> list[Event]:
    """Those of the last months; of a kind one a day."""
    events = [event for one in occurrences if (event := _read(one, case))]
    return list({(event.category, event.published): event for event in events}.values())


EARNINGS = {"turnaround", "profit_up", "profit_warning", "loss_narrowed", "results"}
SAME_DAYS = 5


def count_once(
    headlines: Sequence[Event], facts: Sequence[Event], measured: Mapping[str, Any]
) -> list[Event]:
    """A headline that tells what was disclosed in figures about the same time gives way to it; that a report is out
    gives way to a headline that tells what is in it, and what is too small is not told at all. Newest first.
    """
    state = {"pledge": measured["pledged_percent"], "lockup_expiry": measured["unlock_ahead"]}
    said = [headline for headline in headlines if not state.get(headline.category)]
    plain = [fact for fact in facts if fact.figures or not any(_same(fact, other) for other in said)]
    figured = [fact for fact in facts if fact.figures]
    kept = [headline for headline in said if not any(_same(fact, headline) for fact in figured)]
    told = [*(fact for fact in plain if fact.weight), *kept]
    return sorted(told, key=lambda event: (event.published, event.available_at), reverse=True)


def _same(fact: Event, other: Event) -> bool:
    """Of what a period brought, whatever does not point the other way."""
    earned = {fact.category, other.category} <= EARNINGS and fact.points * other.points >= 0
    return (fact.category == other.category or earned) and abs(
        (fact.published - other.published).days
    ) <= SAME_DAYS


def _read(one: Occurrence, case: Case) -> Event | None:
    table, age = event_table(), (case.today - case.symbol.local_date(one.at)).days
    category = next(category for category in table.news if category.id == one.category)
    weight = next(weight for below, weight in table.sizes[one.category] if one.size < below)
    if not 0 <= age <= WINDOW_DAYS:
        return None
    titles = {locale: _tell(one, locale) for locale in LOCALES}
    told = {"kind": "fact", "url": one.fact.source, "probability": "高", "figures": one.figures}
    return make_event(one.fact, category, case, at=one.at, weight=weight, titles=titles, **told)


def _tell(one: Occurrence, locale: Locale) -> str:
    figures = {name: show(value, FIGURES.get(name, PART), locale) for name, value in one.figures.items()}
    return SAY(f"fact.{one.told}", period=one.period and name_period(one.period), **figures).in_locale(locale)


def name_period(end: date) -> Message:
    year, quarter = quarter_of(end)
    return SAY(f"period.{quarter}", year=year)


def measure(found: Disclosed, tape: Tape, case: Case) -> dict[str, Any]:
    """The fields of the detective's view that are measured; None where the data do not tell."""
    return {
        **_measure_money(found),
        **_look_ahead(found, case),
        "pledged_percent": pledge.pledged_percent if (pledge := found.newest(Pledge)) else None,
        **_measure_reaction(found, tape, case),
    }


def _measure_money(found: Disclosed) -> dict[str, float | None]:
    balances = [day.financing_balance for day in found.of(MarginDay)]
    held = [day.northbound_percent for day in found.of(FlowDay) if day.northbound_percent is not None]
    traded = {bar.trade_date: bar.amount for bar in found.of(DailyBar)[-2 * SESSIONS :]}
    flows = [
        (day.net_inflow, traded[day.trade_date])
        for day in found.of(FlowDay)
        if day.net_inflow is not None and day.trade_date in traded
    ][-SESSIONS:]
    amount = sum(traded for _, traded in flows) if len(flows) == SESSIONS else 0
    before = balances[-SESSIONS - 1] if len(balances) > SESSIONS else 0
    return {
        "margin_change_20d": round(100 * (balances[-1] / before - 1), 1) if before else None,
        "inflow_share_20d": round(100 * sum(inflow for inflow, _ in flows) / amount, 1) if amount else None,
        "northbound_percent": held[-1] if held else None,
        "northbound_change_20d": round(held[-1] - held[-SESSIONS - 1], 2) if len(held) > SESSIONS else None,
    }


def _look_ahead(found: Disclosed, case: Case) -> dict[str, Any]:
    """The next report, dividend and unlock; about 60 sessions are looked ahead."""
    until = case.today + timedelta(days=WINDOW_DAYS)
    unlocks = [unlock for unlock in found.of(Unlock) if case.today < unlock.unlock_date <= until]
    payouts = [
        d for d in found.of(Dividend) if d.cash_per_share and d.ex_date and case.today < d.ex_date <= until
    ]
    payout = min(payouts, key=lambda d: (d.ex_date, d.cash_per_share), default=None)
    due = _next_report(found.of(FinancialReport), case)
    return {
        "unlock_date": min((unlock.unlock_date for unlock in unlocks), default=None),
        "unlock_ahead": add_parts(unlocks) if Unlock in found.facts else None,
        "ex_date": payout.ex_date if payout else None,
        "dividend_ahead": round(10 * payout.cash_per_share, 4) if payout else None,
        "report_due": due[1] if due else None,
        "report_period": due[0] if due else None,
        "report_due_days": (due[1] - case.today).days if due else None,
    }


def _next_report(reports: Sequence[FinancialReport], case: Case) -> tuple[date, date] | None:
    """The end of the first period after the last reported whose day, by law, is still to come; and that day."""
    if not reports or case.symbol.market is Market.US:
        return None
    year, quarter = quarter_of(reports[-1].period_end)
    for n in range(4 * year + quarter, 4 * year + quarter + 6):
        end = date(n // 4, 3 * (n % 4) + 3, 28)
        if (day := report_due(end)) > case.today:
            return end, day
    return None


def _measure_reaction(found: Disclosed, tape: Tape, case: Case) -> dict[str, Any]:
    """To the last report, if that is not long ago."""
    told: dict[str, Any] = {"adjusted": tape.adjusted}
    if newest := found.newest(FinancialReport):
        day = case.symbol.local_date(newest.available_at)
        if (case.today - day).days <= WINDOW_DAYS:
            told |= {"reported_on": day, "reported": newest.period_end} | tape.react(newest.available_at)
    return told
