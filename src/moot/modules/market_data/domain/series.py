"""A series of daily bars made whole: days without a bar while the exchange traded, ST by the name of the day."""

from bisect import bisect
from collections.abc import Sequence
from datetime import UTC, date, timedelta

from moot.modules.market_data.domain.provider import A_DAY, Range
from moot.modules.market_data.domain.spelling import tells_trouble
from moot.modules.market_data.domain.trading_rules import TradingCalendar
from moot.shared.domain.facts import Company, DailyBar, SpecialTreatment
from moot.shared.domain.symbol import TIME_ZONES, Market

SILENCE = timedelta(days=30)
"""How long a share in a file of several may be silent at an end and count as suspended; longer, it may be cut off."""


def cover(own: Range | None, file: Range | None) -> Range | None:
    """What is known of a share: from its first day to its last, and around as far as its file goes, for a while."""
    if own is None or file is None:
        return None
    return max(file[0], own[0] - SILENCE), min(file[1], own[1] + SILENCE)


def find_earlier(
    bars: Sequence[DailyBar], covered: Sequence[Range], calendar: TradingCalendar, start: date
) -> Range | None:
    """The known days before `start`, where the last close stands, if the series does not begin with its own."""
    first, last = next((known for known in covered if known[0] < start <= known[1]), (start, start))
    silent = calendar.within(start, bars[0].trade_date - A_DAY if bars else last)
    return (first, start - A_DAY) if first < start and silent else None


def make_whole(
    bars: Sequence[DailyBar], covered: Sequence[Range], calendar: TradingCalendar, company: Company | None
) -> list[DailyBar]:
    """With a suspended bar for every known session that has none, up to delisting; and with ST told by the name."""
    days = [bar.trade_date for bar in bars]
    ended = (company and company.delist_date) or date.max
    begun, there = days[0] if days else date.max, set(days)
    known = ((max(first, begun), min(last, ended - A_DAY)) for first, last in covered)
    silent = [day for span in known for day in calendar.within(*span) if day not in there]
    filled = (_suspend(bars[bisect(days, day) - 1], day, calendar.market) for day in silent)
    whole = sorted([*bars, *filled], key=lambda bar: bar.trade_date)
    return [
        bar.model_copy(update={"is_st": True}) if company and was_st(company, bar.trade_date) else bar
        for bar in whole
    ]


def _suspend(bar: DailyBar, day: date, market: Market) -> DailyBar:
    """The last close again, known when the bars of that session came out."""
    later, zone = day - bar.trade_date, TIME_ZONES[market]
    moments = {name: getattr(bar, name).astimezone(zone) + later for name in ("event_time", "available_at")}
    times = {name: moment.astimezone(UTC) for name, moment in moments.items()}
    prices = dict.fromkeys(("open", "high", "low", "close", "pre_close"), bar.close)
    still = {"trade_date": day, "volume": 0, "amount": 0.0, "suspended": True}
    return bar.model_copy(update={**times, **prices, **still})


def was_st(company: Company, on: date) -> bool:
    """By what it was called on that day, or by the spells a source tells of."""
    called = max((known for known in company.names if known.start <= on), key=lambda n: n.start, default=None)
    spells = any(spell.start <= on < (spell.end or date.max) for spell in company.st_history)
    return spells or (called is not None and tells_trouble(called.name))


def date_spell(company: Company, kept: tuple[SpecialTreatment, ...], on: date) -> Company:
    """Where a source tells only the present name: a spell begins on the day it was first told with the mark of ST.

    It ends when the name is told without it. What a source tells of former names or spells stands.
    """
    if company.names or company.st_history not in ((), kept):
        return company
    troubled, last = tells_trouble(company.name), kept[-1] if kept else None
    spells = kept
    if troubled and (last is None or last.end):
        spells = (*kept, SpecialTreatment(start=on))
    elif last and not last.end and not troubled:
        spells = (*kept[:-1], SpecialTreatment(start=last.start, end=on))
    return company.model_copy(update={"st_history": spells})
