"""What the command line says."""

import os
from pathlib import Path

from moot.shared.domain.messages import Catalogue, Locale, reading_language
from moot.shared.infrastructure.home import SETTINGS_FILE, read_settings

SAY = Catalogue(Path(__file__).parent)


def environment_locale() -> Locale:
    """`MOOT_LOCALE`, else what `settings.toml` says, else the terminal's: Chinese in any form, or else English."""
    terminal = [os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG")]
    named = next(filter(None, (os.environ.get("MOOT_LOCALE", ""), _in_settings_file(), *terminal)), "")
    return reading_language(named)


def _in_settings_file() -> str:
    """Read here, without the settings: `--help` is in that language too, and must not wait for them."""
    file = Path(os.environ.get("MOOT_HOME") or "~/.moot").expanduser() / SETTINGS_FILE
    try:
        return str(read_settings(file).get("locale", ""))
    except (OSError, ValueError):  # whoever needs the settings will say what is wrong with them
        return ""


def say(key: str, /, **values: object) -> str:
    """A text in the language of the terminal, for help and for what has no session."""
    return SAY(key, **values).in_locale(environment_locale())
