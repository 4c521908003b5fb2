"""Prompts kept as text files: `<folder>/<locale>/<name>.md`."""

from functools import cache
from pathlib import Path
from string import Template

from moot.shared.domain.messages import Locale


class Prompts:
    """A context's prompts. Each file is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def text(self, name: str, locale: Locale) -> str:
        return _read(self._folder / locale / f"{name}.md")

    def filled(self, name: str, locale: Locale, /, **values: str) -> str:
        """The text with every `$name` in it replaced; a value is never read as a template itself."""
        return Template(self.text(name, locale)).substitute(values)


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()
