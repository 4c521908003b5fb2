"""What a share costs against what it used to, and what it is worth by simple models.

Multiples are compared with their own past or with those of others; residual income values a share by what its book
earns beyond its cost, and tells, the other way round, what a price assumes. What the numbers do not allow is None.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import median

MIN_VALID_HISTORY = 60
GRAHAM_FACTOR = 22.5
SHARE_BASIS_TOLERANCE = 0.05
"""How far a reported per-share figure may be from the one the market's multiple implies."""
COST_STEP = 0.01
FADES = (10, 15, 20)
"""In years, the middle one being the usual: studies of returns on equity find most of an advantage gone by then."""
LEAST_ROE, MOST_ROE = -0.5, 3.0
"""No price is read as an assumption beyond these."""


def keep_valid(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and value > 0]


def percentile(current: float | None, history: Sequence[float | None]) -> int | None:
    """The share of past days that were no dearer, in per cent; loss years and short histories have none."""
    valid = keep_valid(history)
    if current is None or current <= 0 or len(valid) < MIN_VALID_HISTORY:
        return None
    return round(100 * sum(value <= current for value in valid) / len(valid))


def rank_among(own: float, others: Sequence[float]) -> int:
    """The share of the others that lie below it, in per cent, equals by half."""
    return round(100 * sum((value < own) + (value == own) / 2 for value in others) / len(others))


def find_usual(history: Sequence[float | None]) -> float | None:
    valid = keep_valid(history)
    return round(median(valid), 2) if len(valid) >= MIN_VALID_HISTORY else None


def implied_value(price: float, multiple: float | None, usual: float | None) -> float | None:
    """What the share would cost at its usual multiple."""
    return round(price * usual / multiple, 2) if multiple and usual and multiple > 0 else None


def peg(pe: float | None, growth: float | None) -> float | None:
    return round(pe / growth, 2) if pe and growth and pe > 0 and growth > 0 else None


def graham_value(eps: float | None, bps: float | None) -> float | None:
    return round(sqrt(GRAHAM_FACTOR * eps * bps), 2) if eps and bps and eps > 0 and bps > 0 else None


def safety_margin(value: float | None, price: float) -> float | None:
    """How far the value lies above the price, in per cent of the price; positive is cheap."""
    return None if value is None else round(100 * (value - price) / price, 1)


def on_todays_shares(reported: float | None, price: float, multiple: float | None) -> float | None:
    """A per-share figure on today's share count: where the market's multiple implies another, or none was reported,
    what it implies.
    """
    if not multiple:
        return reported
    implied = price / multiple
    fits = reported is not None and abs(reported / implied - 1) <= SHARE_BASIS_TOLERANCE
    return reported if fits else round(implied, 4)


@dataclass(frozen=True)
class Outlook:
    """What is assumed of a company, in fractions: its return on equity fades in a straight line to the cost of equity
    over so many years, and what it does not pay out is added to its book.
    """

    roe: float
    cost: float
    payout: float
    fade: int = FADES[1]


def times_book(outlook: Outlook) -> float:
    """What the share is worth in multiples of its book: the book, and what it earns beyond its cost."""
    worth = book = 1.0
    for year in range(outlook.fade):
        earned = outlook.roe + (outlook.cost - outlook.roe) * year / outlook.fade
        worth += (earned - outlook.cost) * book / (1 + outlook.cost) ** (year + 1)
        book *= 1 + (1 - outlook.payout) * earned
    return worth


def find_implied_roe(multiple: float, outlook: Outlook) -> float | None:
    """The return on equity at which the share is worth that multiple of its book, all else as in `outlook`."""
    low, high = LEAST_ROE, MOST_ROE
    if not times_book(replace(outlook, roe=low)) <= multiple <= times_book(replace(outlook, roe=high)):
        return None
    while high - low > 1e-7:
        middle = (low + high) / 2
        if times_book(replace(outlook, roe=middle)) < multiple:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def vary(outlook: Outlook) -> list[Outlook]:
    """The outlooks of a table of sensitivity: a point more or less of cost, by how long the return takes to fade."""
    costs = (outlook.cost - COST_STEP, outlook.cost, outlook.cost + COST_STEP)
    return [replace(outlook, cost=cost, fade=fade) for cost in costs for fade in FADES]
