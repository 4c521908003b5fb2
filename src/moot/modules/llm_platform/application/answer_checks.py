"""What an answer says, field by field, and whether it says it in the reader's language."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from moot.modules.llm_platform.application.answer_schema import literals
from moot.shared.domain.messages import Locale

CJK = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
WORD = re.compile(r"[A-Za-z][a-z']+")
FOREIGN: Mapping[Locale, re.Pattern[str]] = {
    "zh-CN": re.compile(r"[A-Za-z][A-Za-z ,.'&-]*"),
    "en-US": re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+"),
}
MOST_FOREIGN = 0.4
FEWEST_TO_TELL = 8
"""Of fewer words nobody can say which language they are in."""

NARRATIVE = "narrative_report"
NARRATIVE_LENGTH: Mapping[Locale, tuple[int, int]] = {"zh-CN": (300, 800), "en-US": (150, 400)}
"""Characters in Chinese, spaces aside; words in English."""


@dataclass(frozen=True)
class Statements:
    """`texts` are by field; `figures` are numbers stated in fields of their own; `own` need no evidence."""

    texts: dict[str, list[str]]
    figures: list[str]
    own: list[float]

    @property
    def all_texts(self) -> list[str]:
        return [*(text for texts in self.texts.values() for text in texts), *self.figures]


def statements(answer: BaseModel, own: frozenset[str]) -> Statements:
    """All that the model wrote: no defaults, and no literals, which it had to choose from."""
    prescribed = literals(type(answer))
    found = Statements({}, [], [])
    for path, value in _leaves(answer.model_dump(mode="json", by_alias=True, exclude_unset=True)):
        if isinstance(value, str):
            if value not in prescribed:
                found.texts.setdefault(path[0], []).append(value)
        elif isinstance(value, bool) or value is None:
            continue
        elif own.intersection(path):
            found.own.append(value)
        else:
            found.figures.append(f"{Decimal(repr(value)):f}")
    return found


def _leaves(value: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, *path, name)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part, *path)
    else:
        yield path, value


def in_another_language(texts: Mapping[str, list[str]], locale: Locale, shown: str) -> list[str]:
    """The fields that are not in the locale's language. Foreign words that stand in `shown` are merely quoted."""
    return [
        field
        for field, parts in texts.items()
        if _foreign_share("\n".join(parts), locale, shown) > MOST_FOREIGN
    ]


def _foreign_share(text: str, locale: Locale, shown: str) -> float:
    written = _size(text)
    foreign = [run for run in FOREIGN[locale].findall(text) if run.strip(" ,.'&-") not in shown]
    return sum(map(_size, foreign)) / written if written >= FEWEST_TO_TELL else 0.0


def _size(text: str) -> int:
    return len(CJK.findall(text)) + len(WORD.findall(text))


def narrative_length(text: str, locale: Locale) -> int:
    words = text.split()
    return sum(map(len, words)) if locale == "zh-CN" else len(words)
