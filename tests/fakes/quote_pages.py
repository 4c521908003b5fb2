"""The days of a share as Sina and Tencent send them, from the lines Eastmoney sends.

Sina packs a history into a stream of bits, low ones first, six to a letter: differences to the day before, each in as
many bits as the head says. What unpacks it is the script that AKShare runs.
"""

import json
from collections.abc import Sequence
from datetime import date, timedelta

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
DAY_ZERO = date(1990, 12, 19)
PACKED, UNTOUCHED = 3466, 63
WIDTHS = {"open": (3, 5), "high": (3, 5), "low": (3, 5), "close": (3, 5), "volume": (5, 8), "amount": (5, 10)}
"""For each figure, how many times three bits it has at first, and from the first day on."""

Day = tuple[date, float, float, float, float, int, float]
"""Open, close, high, low; volume in lots, amount in CNY."""


def read_days(lines: Sequence[str]) -> list[Day]:
    """A dash for an opening price is Eastmoney's own trouble: the others have the low of that day."""
    days = []
    for line in lines:
        day, opening, close, high, low, lots, amount, *_ = line.split(",")
        known = float(low if opening == "-" else opening)
        days.append(
            (date.fromisoformat(day), known, float(close), float(high), float(low), int(lots), float(amount))
        )
    return days


def sina_history(symbol: str, days: Sequence[Day]) -> str:
    bits = [*_bits(PACKED, 12), *_bits(UNTOUCHED, 6)]
    before: date | None = None
    last = volume = amount = 0
    for day, opening, close, high, low, lots, paid in days:
        bits += _head(day) if before is None else _pause(before, day)
        first, top, bottom, end = (round(price * 100) for price in (opening, high, low, close))
        moves = (
            first - last,
            top - first,
            first - bottom,
            end - first,
            lots * 100 - volume,
            int(paid) - amount,
        )
        for move, (_, width) in zip(moves, WIDTHS.values(), strict=True):
            bits += _bits(move, 3 * width)
        before, last, volume, amount = day, end, lots * 100, int(paid)
    bits += [1, 1, 0, 0, 0]
    bits += [0] * (-len(bits) % 6)
    letters = (
        LETTERS[sum(bit << n for n, bit in enumerate(bits[at : at + 6]))] for at in range(0, len(bits), 6)
    )
    return f'var KLC_KL_{symbol}="{"".join(letters)}";'


def sina_shares(symbol: str) -> str:
    """The shares in circulation since a day, in 10,000; no JSON, and behind a trap for browsers."""
    trap = "/*<script>location.href='//sina.com';</script>*/"
    return f'{trap}\nvar KKE_ShareAmount_{symbol}=([{{date:"2001-08-27",amount:"125000"}}])'


def tencent_days(name: str, symbol: str, days: Sequence[Day]) -> str:
    """Volume in lots, turnover in per cent, amount in 10,000 CNY; all of it text."""
    rows = [
        [
            day.isoformat(),
            *(f"{price:.2f}" for price in prices),
            f"{lots}.000",
            {},
            "0.64",
            f"{paid / 1e4:.2f}",
            "",
        ]
        for day, *prices, lots, paid in days
    ]
    told = {"day": rows, "qt": {}, "mx_price": {}, "prec": "19.90", "version": "16"}
    return f"{name}={json.dumps({'code': 0, 'msg': '', 'data': {symbol: told}})}"


def _bits(number: int, width: int) -> list[int]:
    return [number >> place & 1 for place in range(width)]


def _head(day: date) -> list[int]:
    """Amounts are told, not guessed; the figures get their widths; the first day counts from the exchange's."""
    wider = [bit for first, width in WIDTHS.values() for bit in (1, 1, *[1] * (width - first - 1), 0)]
    return [
        1,
        1,
        1,
        1,
        1,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        1,
        *wider,
        1,
        *_bits(1, 3),
        *_bits((day - DAY_ZERO).days, 18),
        0,
    ]


def _pause(before: date, day: date) -> list[int]:
    """Nothing where the next weekday follows, else how many weekdays on."""
    later = [before + timedelta(days=n) for n in range(1, (day - before).days + 1)]
    weekdays = sum(day.weekday() < 5 for day in later)
    return [0] if weekdays == 1 else [1, 0, 1, 1, 1, *_bits(weekdays, 3)]
