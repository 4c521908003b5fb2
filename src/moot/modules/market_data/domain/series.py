"""A series of daily bars made whole: days without a bar while the exchange traded, ST by the name of the day."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date

from moot.modules.market_data.domain.provider import A_DAY, Range
from moot.modules.market_data.domain.spelling import tells_trouble
from moot.modules.market_data.domain.trading_rules import TradingCalendar
from moot.shared.domain.errors import Conflict, ErrorKind
from moot.shared.domain.facts import Company, DailyBar, SpecialTreatment
from moot.shared.domain.symbol import TIME_ZONES

TOLERANCE = 0.005
"""How far two sources may differ in a close or a step of the factor: rounding, no more."""
STARTS_ANEW = "files"
"""Whose factors begin at 1 in each file; every other source counts from the listing on."""


class SeriesDoNotMeet(Conflict):
    """Two series of one share cannot be brought to one base; what is kept stays as it was."""

    code = "SERIES_DO_NOT_MEET"
    kind = ErrorKind.DATA


def ex_step(before: DailyBar, bar: DailyBar) -> float:
    """By how much the factor moves: where rights go ex, the reference price is not the close before."""
    return before.close / bar.pre_close


def find_earlier(
    bars: Sequence[DailyBar], covered: Sequence[Range], calendar: TradingCalendar, start: date
) -> Range | None:
    """The known days before `start`, where the last close stands, if the series does not begin with its own."""
    for first, last in covered:
        if first < start <= last:
            days = calendar.within(start, bars[0].trade_date - A_DAY if bars else last)
            return (first, start - A_DAY) if days else None
    return None


def make_whole(
    bars: Sequence[DailyBar], covered: Sequence[Range], calendar: TradingCalendar, company: Company | None
) -> list[DailyBar]:
    """With a suspended bar for every known session that has none, up to delisting; and with ST told by the name."""
    ended = company.delist_date if company and company.delist_date else date.max
    whole = sorted((*bars, *_find_suspended(bars, covered, calendar, ended)), key=lambda bar: bar.trade_date)
    if company is None:
        return whole
    return [
        bar if bar.is_st or not was_st(company, bar.trade_date) else bar.model_copy(update={"is_st": True})
        for bar in whole
    ]


def _find_suspended(
    bars: Sequence[DailyBar], covered: Sequence[Range], calendar: TradingCalendar, ended: date
) -> Iterator[DailyBar]:
    ends = [*(bar.trade_date for bar in bars[1:]), date.max]
    for bar, following in zip(bars, ends, strict=False):
        for first, last in covered:
            after, until = max(first, bar.trade_date + A_DAY), min(last, following - A_DAY, ended - A_DAY)
            yield from (_suspend(bar, day, calendar) for day in calendar.within(after, until))


def _suspend(bar: DailyBar, day: date, calendar: TradingCalendar) -> DailyBar:
    """The last close again, known when the bars of that session came out."""
    zone, later = TIME_ZONES[calendar.market], day - bar.trade_date
    prices = dict.fromkeys(("open", "high", "low", "close", "pre_close"), bar.close)
    times = {
        name: (getattr(bar, name).astimezone(zone) + later).astimezone(UTC)
        for name in ("event_time", "available_at")
    }
    still = {"trade_date": day, "volume": 0, "amount": 0.0, "suspended": True}
    return bar.model_copy(update={**prices, **times, **still})


def was_st(company: Company, on: date) -> bool:
    """By what it was called on that day, or by the spells a source tells of."""
    names = [
        known.name for known in sorted(company.names, key=lambda known: known.start) if known.start <= on
    ]
    spells = any(spell.start <= on < (spell.end or date.max) for spell in company.st_history)
    return spells or bool(names and tells_trouble(names[-1]))


def date_spell(company: Company, kept: tuple[SpecialTreatment, ...], on: date) -> Company:
    """Where a source tells only the present name: a spell begins on the day it was first told with the mark of ST.

    It ends when the name is told without it. What a source tells of former names or spells stands.
    """
    if company.names or company.st_history not in ((), kept):
        return company
    troubled, lasting = tells_trouble(company.name), bool(kept) and kept[-1].end is None
    spells = kept
    if troubled and not lasting:
        spells = (*kept, SpecialTreatment(start=on))
    elif lasting and not troubled:
        spells = (*kept[:-1], SpecialTreatment(start=kept[-1].start, end=on))
    return company if spells == company.st_history else company.model_copy(update={"st_history": spells})
