"""Speaks an expert's catalogue in one language about one snapshot."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any

from moot.modules.research.domain.evidence import Snapshot, Unit
from moot.modules.research.domain.texts import SAY
from moot.shared.domain.messages import LIST_SEPARATOR, Catalogue, Locale


@dataclass(frozen=True)
class Shown:
    """A number as people read it: `{x}` with its sign, `{x.size}` without, for texts that say "fell by"."""

    text: str
    size: str

    def __str__(self) -> str:
        return self.text


class Voice:
    """Templates may name every field of the snapshot: `{rsi_value}`, `{gross_margin_change.size}`."""

    def __init__(self, texts: Catalogue, snapshot: Snapshot, locale: Locale) -> None:
        self._texts, self.locale = texts, locale
        units = snapshot.units()
        self._values = {
            name: shown(getattr(snapshot, name), unit, locale) if unit else getattr(snapshot, name)
            for name in type(snapshot).model_fields
            for unit in [units.get(name)]
        }

    def also(self, **values: Any) -> "Voice":
        """The same voice, with more to name than the snapshot holds."""
        wider = copy(self)
        wider._values = self._values | values
        return wider

    def __call__(self, key: str, /, **values: Any) -> str:
        return self._texts(key, **self._values | values).in_locale(self.locale)

    def prose(self, sentences: Iterable[str]) -> str:
        return self("glue").join(sentences)

    def listing(self, names: Iterable[str]) -> str:
        return LIST_SEPARATOR[self.locale].join(names)


def shown(value: Any, unit: Unit, locale: Locale) -> Any:
    if isinstance(value, list):
        return LIST_SEPARATOR[locale].join(str(shown(member, unit, locale)) for member in value)
    if value is None:
        return SAY("not_available").in_locale(locale)
    scaled = value / float(SAY(f"scale.{unit.name}").in_locale(locale))
    text, size = (
        SAY(f"unit.{unit.name}", amount=f"{number:,.{unit.digits}f}").in_locale(locale)
        for number in (scaled, abs(scaled))
    )
    return Shown(text, size)
