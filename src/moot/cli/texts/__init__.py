"""What the command line says."""

import os
from pathlib import Path

from moot.shared.domain.messages import DEFAULT_LOCALE, LOCALES, Catalogue, Locale

SAY = Catalogue(Path(__file__).parent)


def environment_locale() -> Locale:
    """`MOOT_LOCALE`, else the language of the terminal, else Chinese."""
    for name in ("MOOT_LOCALE", "LC_ALL", "LC_MESSAGES", "LANG"):
        language = os.environ.get(name, "")[:2].lower()
        for locale in LOCALES:
            if locale[:2] == language:
                return locale
    return DEFAULT_LOCALE


def say(key: str, /, **values: object) -> str:
    """A text in the language of the terminal, for help and for what has no session."""
    return SAY(key, **values).in_locale(environment_locale())
