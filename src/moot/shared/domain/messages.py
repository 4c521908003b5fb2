"""Texts for people, by locale: a catalogue per context, and messages that wait until the reader is known."""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from string import Formatter
from typing import Any, Literal, get_args

Locale = Literal["zh-CN", "en-US"]
LOCALES: tuple[Locale, ...] = get_args(Locale)
LANGUAGES: Mapping[str, str] = {"zh-CN": "中文", "en-US": "English"}
"""What those who speak them call them."""
DEFAULT_LOCALE: Locale = "zh-CN"
LOG_LOCALE: Locale = "en-US"


def locale_of(wanted: object) -> Locale:
    """The locale somebody named, or ours where it is none."""
    return next((locale for locale in LOCALES if locale == wanted), DEFAULT_LOCALE)


def reading_language(locale: str) -> Locale:
    """In which of our languages somebody is told things: Chinese in any form, as any other, or else English."""
    return next((known for known in LOCALES if locale.lower().startswith(known[:2])), "en-US")


NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?%?")


def shorten(text: str, most: int = 80) -> str:
    """At most that many characters; a number is left out rather than cut in two, as it would be another."""
    if len(text) <= most:
        return text
    end = most - 1
    split = (
        found.start() for found in NUMBER.finditer(text, 0, most + 1) if found.start() < end < found.end()
    )
    return text[: next(split, end)] + "…"


def nearest(text: str, names: Iterable[str], cutoff: float = 0.7) -> list[str]:
    """Up to three of the names that somebody may have meant, the likeliest first."""
    known = {str(name).casefold(): name for name in names}
    near = difflib.get_close_matches(text[:LONGEST_NAME].casefold(), known, n=3, cutoff=cutoff)
    return [known[name] for name in near]


LONGEST_NAME = 200
LIST_SEPARATOR: Mapping[str, str] = {"zh-CN": "、", "en-US": ", "}


class Catalogue:
    """The texts of one context: `<folder>/<locale>.toml`, tables flattened to dotted keys.

    Calling it gives a `Message`: `SAY("no_bars", symbol="900001.DEMO").in_locale("en-US")`. Of several folders, each
    adds to the ones before.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders

    def __call__(self, key: str, /, **values: Any) -> "Message":
        return Message(self, key, values)

    @cache  # noqa: B019  # there are as many catalogues as contexts
    def texts(self, locale: Locale) -> dict[str, str]:
        files = ((folder / f"{locale}.toml").read_text("utf-8") for folder in self._folders)
        return dict(chain.from_iterable(map(_flatten, map(tomllib.loads, files))))


@dataclass(frozen=True)
class Message:
    """A text and its values. Values that are messages, or lists of them, follow the reader's locale too."""

    catalogue: Catalogue
    key: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def in_locale(self, locale: Locale) -> str:
        return fill(self.catalogue.texts(locale)[self.key], _Spoken(self.values, locale))

    def __str__(self) -> str:
        return self.in_locale(LOG_LOCALE)


def fill(text: str, values: Any) -> str:
    """A text with its values; `{n:day|days}` is the word that goes with so many."""
    return _COUNTED.vformat(text, (), values) if "|" in text else text.format_map(values)


class _Counted(Formatter):
    def format_field(self, value: Any, format_spec: str) -> Any:
        one, choice, many = format_spec.partition("|")
        chosen = one if str(value) == "1" else many
        return chosen if choice else super().format_field(value, format_spec)


_COUNTED = _Counted()


@dataclass(frozen=True, slots=True)
class _Spoken:
    """Each of the values as the reader is told it, if the text has it."""

    values: Mapping[str, Any]
    locale: Locale

    def __getitem__(self, name: str) -> Any:
        return in_words(self.values[name], self.locale)


def join(messages: Sequence[Message], two: Callable[[Message, Message], Message]) -> Message:
    """Several as one, put together by halves: thousands of them must not nest thousands deep."""
    half = len(messages) // 2
    return two(join(messages[:half], two), join(messages[half:], two)) if half else messages[0]


def in_words(value: Any, locale: Locale) -> Any:
    """As the reader is told it; what is no message is left as it is."""
    if isinstance(value, Message):
        return value.in_locale(locale)
    if isinstance(value, list | tuple):
        return LIST_SEPARATOR[locale].join(str(in_words(item, locale)) for item in value)
    return value


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
