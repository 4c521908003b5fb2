"""The fixed words of an answer, in every language that questions are recognised in."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import get_args

from moot.modules.intake.domain.question import Tongue

TONGUES: tuple[Tongue, ...] = get_args(Tongue)
FOLDER = files("moot.modules.intake.domain") / "headings"


def tongue_of(locale: str) -> Tongue | None:
    """The language of a locale, whatever its region: `zh-TW` reads `zh-CN`. None where it is none of ours."""
    language = locale.lower().replace("_", "-").partition("-")[0]
    return next((tongue for tongue in TONGUES if tongue.startswith(f"{language}-")), None)


def headings_for(locale: str) -> Mapping[str, str]:
    """English where there are none for the locale."""
    return _read(tongue_of(locale) or "en-US")


def language_name(locale: str) -> str:
    """What a language calls itself; the bare locale where that is not known."""
    tongue = tongue_of(locale)
    return _read(tongue)["language"] if tongue else locale


@cache
def _read(tongue: Tongue) -> Mapping[str, str]:
    return tomllib.loads((FOLDER / f"{tongue[:2]}.toml").read_text(encoding="utf-8"))
