"""Asking a person: every question can be skipped with Enter."""

from collections.abc import Mapping

import typer

from moot.cli.arguments import ask_secret
from moot.cli.texts import SAY
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Locale, Message


class Questions:
    """Asked in `locale`. `silent`: nobody is there, so every question counts as skipped."""

    def __init__(self, locale: Locale, *, silent: bool) -> None:
        self.locale: Locale = locale
        self.silent = silent

    def tell(self, key: str, /, **values: object) -> None:
        typer.echo(SAY(key, **values).in_locale(self.locale))

    def complain(self, error: AppError) -> None:
        self.tell("error", message=error.in_locale(self.locale))

    def text(self, key: str, default: str | None = None) -> str:
        """What is answered; the default, which is shown, when nothing is."""
        if self.silent:
            return default or ""
        question = SAY(key).in_locale(self.locale)
        answer: str = typer.prompt(question, default=default or "", show_default=bool(default))
        return answer.strip()

    def secret(self, key: str) -> str:
        return "" if self.silent else ask_secret(SAY(key).in_locale(self.locale))

    def sure(self, key: str) -> bool:
        return not self.silent and typer.confirm(SAY(key).in_locale(self.locale))

    def choice(self, key: str, choices: Mapping[str, str | Message]) -> str | None:
        """One of `choices`, which are names with what they mean, by its number or name; None when skipped."""
        if self.silent:
            return None
        for number, (name, meaning) in enumerate(choices.items(), 1):
            said = meaning if isinstance(meaning, str) else meaning.in_locale(self.locale)
            typer.echo(f"  {number}  {name:<10} {said}")
        by_number = {str(number): name for number, name in enumerate(choices, 1)}
        while answer := self.text(key):
            chosen = by_number.get(answer, answer)
            if chosen in choices:
                return chosen
            self.tell("init.not_a_choice", answer=answer)
        return None
