"""What was typed, and what should not be typed where others can see it."""

import os
import sys
from datetime import date
from uuid import UUID

import typer

from moot.cli.texts import SAY
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.validation import refused
from moot.shared.infrastructure.redaction import REDACT


def day(option: str, text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidInput(SAY("bad_day", option=option, text=text)) from None


def session_id_of(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise refused("uuid_parsing", "session_id", text) from None


def secret_in(option: str, variable: str) -> str:
    """The value of an environment variable."""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InvalidInput(SAY("secret.no_variable", option=option, name=variable))
    return _kept_secret(value)


def secret_from_stdin() -> str:
    """The first line of the standard input."""
    value = sys.stdin.readline().strip()
    if not value:
        raise InvalidInput(SAY("secret.no_input"))
    return _kept_secret(value)


def ask_secret(question: str) -> str:
    """What is answered, not shown as it is typed; empty when there is no answer."""
    hidden = sys.stdin.isatty()  # what is piped in is not shown anyway
    answer: str = typer.prompt(question, default="", show_default=False, hide_input=hidden)
    return _kept_secret(answer.strip())


def _kept_secret(value: str) -> str:
    REDACT.learn(value)
    return value
