"""Keeps secrets out of whatever is written down: rows, logs, exports.

A secret is known by its value, once somebody has said that it is one, or by its looks.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from pydantic_core import PydanticSerializationError, to_json

from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Locale

HIDDEN = "***"
SHORTEST = 6
"""A shorter secret would blank out ordinary words."""
NAMES = "api[_-]?key|access[_-]?token|token|key|secret|password|signature"

LOOKS_SECRET = (
    (
        ("bearer", "basic"),
        re.compile(r"\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}", re.IGNORECASE | re.ASCII),
        rf"\1 {HIDDEN}",
    ),
    (
        ("sk-", "pk-", "rk-", "moot_"),
        re.compile(
            r"\b(?:sk|pk|rk)-[a-z0-9_-]{16,}|\bmoot_[a-z0-9]{8}_[a-z0-9_-]{43}", re.IGNORECASE | re.ASCII
        ),
        HIDDEN,
    ),
    (
        ("key=", "token=", "secret=", "password=", "signature="),
        re.compile(rf"(?<=[?&;])({NAMES})=[^&\s\"'<>]+", re.IGNORECASE),
        rf"\1={HIDDEN}",
    ),
    (
        ('"api_key"', "@"),
        re.compile(r"(?<=\"api_key\":\s\")[^\"]+|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)", re.IGNORECASE),
        HIDDEN,
    ),
)
"""Signs, one of which is in every text the pattern can match: looking for them is a hundred times as fast. And what
is left of what it matches: the name of a secret may stay, as it says what was hidden."""

SIGNS_IN_JSON = (*(sign.strip('"').encode() for signs, *_ in LOOKS_SECRET for sign in signs), rb"\u0000")
"""Those signs, and of what no database keeps, in a value as JSON says it: most have none, and need no closer look."""
QUICK_PARTS = (b"=", b"k-", b"\\")
"""Of signs, and quicker to look for than they are."""


def _part(sign: bytes) -> bytes:
    return next((part for part in QUICK_PARTS if part in sign), sign)


PARTS_OF_SIGNS = {
    part: tuple(sign for sign in SIGNS_IN_JSON if _part(sign) == part) for part in map(_part, SIGNS_IN_JSON)
}
"""What to look for, and the signs one may then have found."""


class Redactor:
    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._secrets_in_json: set[bytes] = set()

    def learn(self, *secrets: str) -> None:
        """From now on these are never written down, nor in the forms URLs give them."""
        for secret in secrets:
            if len(secret) >= SHORTEST:
                self._secrets |= {secret, quote(secret, safe=""), quote_plus(secret)}
        self._secrets_in_json = {to_json(make_storable(secret))[1:-1] for secret in self._secrets}

    def text(self, text: str) -> str:
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        lowered = text.lower()
        for signs, looks, left in LOOKS_SECRET:
            for sign in signs:
                if sign in lowered:
                    text = looks.sub(left, text)
                    break
        return text

    def __call__(self, value: Any) -> Any:
        """`value` without secrets, at any depth, and without the characters a database refuses."""
        if isinstance(value, str):
            return self.text(make_storable(value))
        if isinstance(value, (dict, list)) and self.finds_nothing_in(value):
            return value
        if isinstance(value, Mapping):
            return {self(name): self(member) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return [self(member) for member in value]
        return value

    def finds_nothing_in(self, value: Any) -> bool:
        """Whether there is nothing in it to hide. What JSON cannot say needs a closer look."""
        try:
            said = to_json(value)
        except PydanticSerializationError:
            return False
        lowered = said.lower()
        for part, signs in PARTS_OF_SIGNS.items():  # in so many words: this runs for every row there is
            if part in lowered and any(sign in lowered for sign in signs):
                return False
        return not any(secret in said for secret in self._secrets_in_json)


def make_storable(text: str) -> str:
    """PostgreSQL keeps no NUL, and nobody can encode half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode()
    return text.replace("\x00", "�") if "\x00" in text else text


REDACT = Redactor()
"""What this process must not write down. One for all: a secret is a secret whoever logs."""


def error_text(error: Exception, locale: Locale) -> str:
    """What an error says to a reader, secrets taken out; one that says nothing is at least named."""
    said = error.in_locale(locale) if isinstance(error, AppError) else str(error)
    return REDACT.text(said) or type(error).__name__
