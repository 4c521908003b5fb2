"""Texts of the demo market's experts, which are right, and the same texts with one number made wrong."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise, product
from random import Random
from typing import Any

from moot.modules.llm_platform.application.answer_schema import collect_statements
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.infrastructure.demo.provider import DemoMarket
from moot.modules.research.container import ResearchContainer
from moot.modules.research.infrastructure.llm_analyst import OWN_NUMBERS
from moot.shared.domain.claims import Claim
from moot.shared.domain.errors import AppError
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.grounding import ground
from moot.shared.domain.messages import LOCALES, Locale
from moot.shared.domain.symbol import Market
from tests.fakes.clock import FixedClock

NOW = datetime(2026, 6, 30, 10, tzinfo=UTC)
LIMITS = (20, 40, 50, 60, 75, 90)
"""Scores at which a rubric's grade would be another: its own, and no evidence."""

FEW = 5
STATED = re.compile(
    r"""
    (?<![\w.\-/年月第])
    (?P<sign> [+-]? )
    (?P<currency> (?:CNY\ )? )
    (?P<digits> [0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)? | [0-9]+(?:\.[0-9]+)? )
    (?P<unit> \ ?(?:%|亿元|万元|元|倍|个百分点|pp\b|x\b|billion|million|bn\b|天|days) )?
    (?![\w\-/.]*[0-9年月日])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Told:
    """One text of an expert and what it was written from."""

    symbol: str
    expert: ExpertType
    locale: Locale
    text: str
    evidence: tuple[Evidence, ...]
    own: tuple[float, ...]
    claims: tuple[Claim, ...]

    def check(self, text: str) -> list[str]:
        return ground([text], self.evidence, own=self.own, claims=self.claims).offenders

    @cached_property
    def flagged(self) -> list[str]:
        """Of what is right."""
        return self.check(self.text)


@dataclass(frozen=True)
class Planted:
    told: Told
    kind: str
    text: str
    right: str
    wrong: str

    @property
    def caught(self) -> bool:
        """Offence is taken at something in the wrong text that nobody took offence at in the right one."""
        return bool(set(self.told.check(self.text)) - set(self.told.flagged))


async def tell(companies: int, days_back: Sequence[int]) -> list[Told]:
    """The narratives and the claims of all experts, in both languages."""
    market = MarketData({Market.DEMO: DemoMarket(seed=7, clock=FixedClock(NOW))})
    told = []
    for n, back, expert, locale in product(range(1, companies + 1), days_back, ExpertType, LOCALES):
        with suppress(AppError):  # who is delisted, or has not published anything yet
            told += await _tell(market, f"9000{n:02}.DEMO", NOW - timedelta(days=back), expert, locale)
    return told


async def _tell(
    market: MarketData, symbol: str, as_of: datetime, expert: ExpertType, locale: Locale
) -> list[Told]:
    service: Any = ResearchContainer(market).service(expert)
    day = (as_of.date(),) if expert is ExpertType.TECHNICAL_ANALYST else ()
    run = await service.run(symbol, *day, as_of=as_of, locale=locale)
    report = run if isinstance(run, dict) else run.model_dump(mode="json")
    result = report.get("result", report)
    answer = service.answer.model_validate({name: result[name] for name in service.answer.model_fields})
    evidence = tuple(Evidence.model_validate(item) for item in report["evidence"])
    claims = tuple(Claim.model_validate(claim) for claim in report["claims"])
    own = (*collect_statements(answer, OWN_NUMBERS).own, *LIMITS)
    texts = (report["narrative_report"], "\n".join(claim.text(locale) for claim in claims))
    return [Told(symbol, expert, locale, text, evidence, own, claims) for text in texts]


Number = re.Match[str]
Change = Callable[[Number, Random], str | None]


def numbers_of(told: Told) -> list[Number]:
    """Those with decimals or a unit; and no number of the expert's own."""
    own = {f"{number:.2f}" for number in told.own} | {f"{number:g}" for number in told.own}
    return [
        found
        for found in STATED.finditer(told.text)
        if ("." in found["digits"] or found["unit"]) and (found["unit"] or found["digits"] not in own)
    ]


def _with(found: Number, **parts: str) -> str:
    names = ("sign", "currency", "digits", "unit")
    return "".join(parts.get(name, found[name] or "") for name in names)


def change_digit(found: Number, random: Random) -> str:
    digits = found["digits"]
    place = random.choice([n for n, c in enumerate(digits) if c.isdigit()])
    other = random.choice([d for d in "123456789" if d != digits[place]])
    return _with(found, digits=digits[:place] + other + digits[place + 1 :])


def invent(found: Number, random: Random) -> str:
    """As many digits, by chance."""
    digits = "".join(random.choice("123456789") if c.isdigit() else c for c in found["digits"])
    return _with(found, digits=digits)


def shift_point(found: Number, random: Random) -> str | None:
    digits = found["digits"].replace(",", "")
    value, decimals = float(digits), len(digits.partition(".")[2])
    if not value:
        return None
    shifted = value * 10 if random.random() < 0.5 or not decimals else value / 10
    return _with(found, digits=f"{shifted:.{decimals}f}")


def change_multiple(found: Number, _: Random) -> str | None:
    others = {"亿元": "万元", "万元": "亿元", "billion": "million", "million": "billion", "元": "亿元"}
    unit = found["unit"] or ""
    other = others.get(unit.strip())
    return other and _with(found, unit=unit.replace(unit.strip(), other))


def flip_sign(found: Number, random: Random) -> str | None:
    return _with(found, sign={"-": "+", "+": "-"}[found["sign"]]) if found["sign"] else None


def change_kind(found: Number, _: Random) -> str | None:
    """A percentage for a price, a multiple for a percentage."""
    unit = (found["unit"] or "").strip()
    if found["currency"]:
        return _with(found, currency="", unit="%")
    others = {"%": " 倍", "元": "%", "倍": "%", "x": "%"}
    return _with(found, unit=others[unit]) if unit in others else None


CHANGES: dict[str, Change] = {
    "digit": change_digit,
    "chance": invent,
    "point": shift_point,
    "multiple": change_multiple,
    "sign": flip_sign,
    "kind": change_kind,
}


def plant(told: Told, others: Sequence[Told], random: Random) -> Iterator[Planted]:
    """One wrong text of each kind that the text allows."""
    found = [number for number in numbers_of(told) if float(number["digits"].replace(",", ""))]
    for kind, change in CHANGES.items():
        wrong = [(number, other) for number in found if (other := change(number, random))]
        wrong = [(number, other) for number, other in wrong if not _still_right(told, number, other)]
        if wrong:
            yield _replace(told, kind, *random.choice(wrong))
    yield from _swap(told, found, random)
    yield from _mistake(told, found, others, random)


def _replace(told: Told, kind: str, number: Number, wrong: str) -> Planted:
    text = told.text[: number.start()] + wrong + told.text[number.end() :]
    return Planted(told, kind, text, number.group(), wrong)


def _still_right(told: Told, number: Number, wrong: str) -> bool:
    """It could have been cut off instead of rounded, or it is not another number at all."""
    digits = lambda text: float(re.sub(r"[^0-9.]", "", text) or 0)  # noqa: E731
    if (before := digits(number.group())) == digits(wrong):
        return number.group() == wrong
    step = 10.0 ** -len(number["digits"].partition(".")[2])
    return abs(before - digits(wrong)) <= step * 1.001


def _swap(told: Told, found: list[Number], random: Random) -> Iterator[Planted]:
    """Two figures of one unit in neighbouring places."""
    pairs = [
        (a, b)
        for a, b in pairwise(found)
        if (a["unit"], a["currency"]) == (b["unit"], b["currency"])
        and a.group() != b.group()
        and b.start() - a.end() < 60
    ]
    if pairs:
        a, b = random.choice(pairs)
        text = (
            told.text[: a.start()]
            + b.group()
            + told.text[a.end() : b.start()]
            + a.group()
            + told.text[b.end() :]
        )
        yield Planted(told, "swap", text, a.group(), b.group())


def _mistake(told: Told, found: list[Number], others: Sequence[Told], random: Random) -> Iterator[Planted]:
    """The figure that another company has in the same place."""
    alike = [
        o for o in others if (o.expert, o.locale) == (told.expert, told.locale) and o.symbol != told.symbol
    ]
    choices = []
    for other, number in product(random.sample(alike, min(len(alike), FEW)), found):
        before = told.text[max(0, number.start() - 8) : number.start()]
        there = (n.group() for n in STATED.finditer(other.text) if other.text[: n.start()].endswith(before))
        figure = next(there, None)
        if figure and not _still_right(told, number, figure):
            choices.append((number, figure))
    if choices:
        yield _replace(told, "company", *random.choice(choices))
