"""The words of a report: ours in the reader's language, measured values with their units, and the words of others,
each of which is told once.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from moot.modules.coordinator.domain.texts import MEASURES, SAY
from moot.shared.domain.claims import Claim
from moot.shared.domain.markdown import escape
from moot.shared.domain.messages import Locale

UNITS = {
    **{unit: unit for unit in ("days", "sessions", "years", "shares")},
    **{"CNY": "price", "%": "percent", "pp": "points", "x": "times", "100m CNY": "amount"},
}
"""How the texts call what evidence is measured in; anything else is a plain number."""
HUNDRED_MILLION = 1e8
LARGE = 1e6
"""Yuan from which on a price is an amount."""
CASE = re.compile(r"(\d+)bp_(\d+)y")
"""What a member of a table by rate and years is called."""
SENTENCE = re.compile(r".+?(?:[。！？；\n]|[.!?;](?=\s)|$)\s*", re.DOTALL)
LONG = 10
"""Characters from which on a sentence is noticed when it comes again."""


class Wording(NamedTuple):
    """The coordinator's words in one language."""

    locale: Locale

    def __call__(self, key: str, /, **values: Any) -> str:
        return SAY(key, **values).in_locale(self.locale)

    def literal(self, value: str) -> str:
        """How a contract's literal reads; what it *is* never changes with the language."""
        return self(f"literal.{value.split(maxsplit=1)[0]}")

    def dimension(self, claim: Claim) -> str:
        """What the claim is about, as its expert's texts call it, if they do."""
        key = f"dimension.{claim.expert.prefix}.{claim.dimension}"
        return self(key) if key in SAY.texts(self.locale) else claim.dimension

    def measure(self, name: str) -> str:
        """What a field of an expert's evidence is called, an unknown one by its name; `event.3` is the third, and
        `study.buyback` that of a kind of events."""
        if case := CASE.fullmatch(name):
            rate, years = int(case[1]) / 100, int(case[2])
            return MEASURES("rate_and_years", rate=rate, years=years).in_locale(self.locale)
        kind, _, number = name.partition(".")
        told = MEASURES.texts(self.locale).get(f"measure.{kind}", kind)
        if (of := f"event.{number}") in SAY.texts(self.locale):
            return self("report.item", name=told, words=self(of))
        return f"{told} {number}" if number.isdecimal() else told

    def source(self, name: str) -> str:
        """Where a fact comes from: what the desk assumes and what was imported have no address."""
        kind, _, file = name.partition(":")
        told = MEASURES.texts(self.locale).get(f"source.{kind}")
        named = file and not file.startswith("//")
        return name if told is None else self("report.item", name=told, words=file) if named else told

    def value(self, value: float | str, unit: str) -> str:
        if isinstance(value, str):
            return value
        name, texts = UNITS.get(unit, "plain"), MEASURES.texts(self.locale)
        amount = float(value) * (HUNDRED_MILLION if unit == "100m CNY" else 1)
        if name == "price" and abs(amount) >= LARGE:
            name = "amount" if abs(amount) >= float(texts["scale.amount"]) else "million"
        amount /= float(texts.get(f"scale.{name}", 1))
        small = name == "plain" and 0 < abs(amount) < 0.1  # two digits of it that tell
        shown = f"{amount:.2g}" if small else f"{amount:,.2f}"
        if name != "price":
            shown = shown.rstrip("0").rstrip(".")
        return MEASURES(f"unit.{name}", amount=shown).in_locale(self.locale)


class Told:
    """What a report has said already. A claim that comes again goes by a short name, other sentences are left out."""

    def __init__(self, names: Mapping[str, str], spell: Callable[[str], str] = escape) -> None:
        """`names` of claims by their text; `spell` is how the words of others are written."""
        self._spell, self._said = spell, set[str]()
        self._names = {spell(text).rstrip(".。"): name for text, name in names.items() if len(text) >= LONG}

    def refer(self, words: str) -> str:
        """The words of others, with claims by their names."""
        words = self._spell(words)
        for text, name in self._names.items():
            words = words.replace(text, name)
        return words

    def once(self, words: str) -> str:
        """What is new in the words of others; scraps of what was told are not."""
        parts = {part: part.strip(" \n;；.。") for part in SENTENCE.findall(self.refer(words))}
        new = {part: said for part, said in parts.items() if said not in self._said}
        weighty = {said for said in new.values() if len(said) >= LONG or said in self._names.values()}
        self._said |= weighty
        return "".join(new).strip() if weighty or len(new) == len(parts) else ""

    def again(self, words: str) -> str:
        return self.once(words) or self.refer(words)

    def each(self, texts: Iterable[str]) -> list[str]:
        return list(filter(None, map(self.once, texts)))
