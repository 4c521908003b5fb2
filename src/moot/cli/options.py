"""What can be typed: the options that several commands share, and how what was typed is read."""

import getpass
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
from pydantic import BaseModel

from moot.cli import Commands, Group
from moot.cli.texts import SAY, say
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import LOCALES, Message
from moot.shared.domain.validation import number_or_text, validate
from moot.shared.infrastructure.redaction import REDACT

M = TypeVar("M", bound=BaseModel)

DAY = "YYYY-MM-DD"


def group(key: str) -> Commands:
    """A group of commands; `key` is its text in the catalogue, as it is of options and arguments below."""
    return Commands(cls=Group, help=say(key), no_args_is_help=True, add_completion=False)


def option(key: str, *names: str, told: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """`told` is what the text tells."""
    return typer.Option(*names, help=say(key, **(told or {})), **more)


def argument(key: str, *, told: Mapping[str, Any] | None = None, **more: Any) -> Any:
    return typer.Argument(help=say(key, **(told or {})), **more)


Profile = Literal["default", "research", "tools", "presets", "none"]

AsJson = Annotated[bool, option("help.json", "--json")]
AsOf = Annotated[str | None, option("help.as_of", metavar=DAY)]
Language = Annotated[str | None, option("help.locale", told={"locales": LOCALES})]
Over = Annotated[str | None, option("help.over", metavar="N")]
Rounds = Annotated[str | None, option("help.rounds", metavar="N")]
SkipDebate = Annotated[bool, option("help.skip_debate", "--skip-debate")]


def complete_experts(incomplete: str) -> list[str]:
    before, comma, _ = incomplete.rpartition(",")
    return [f"{before}{comma}{expert.value}" for expert in ExpertType if expert.value not in before]


EVERYBODY = ",".join(ExpertType)
Experts = Annotated[
    str,
    option(
        "help.experts",
        show_default=False,
        told={"experts": ", ".join(ExpertType)},
        autocompletion=complete_experts,
    ),
]


def day(name: str, text: str | None) -> date | None:
    return require_day(name, text) if text else None


def require_day(name: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(SAY("bad_day", option=name, text=text or "''")) from None


def list_typed(words: Sequence[str]) -> list[str]:
    """Each once. `-` stands for the lines of the standard input."""
    typed = [line.strip() for word in words for line in (sys.stdin if word == "-" else [word])]
    if not any(typed):
        raise InvalidInput(SAY("no_symbols"))
    return list(dict.fromkeys(filter(None, typed)))


def check_typed(kind: type[M], **typed: object) -> M:
    """What was typed, as the model it is meant for; what was not typed has the model's own default."""
    return validate(kind, {name: value for name, value in typed.items() if value is not None})


def number(text: str | None) -> int | float | str | None:
    """Of an option; one that is left empty was not given."""
    return number_or_text(text) if text else None


def read_file(path: Path, name: str = "") -> str:
    """`name` is what a complaint calls the file, if not by its path."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as e:
        reason: object = e.strerror or e
    except UnicodeDecodeError:
        reason = SAY("rules.not_text")
    raise InvalidInput(SAY("rules.no_file", path=name or path, reason=reason))


def user_name() -> str:
    """Whoever is at the keyboard, as this machine knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        return "cli"


def secret_in(name: str, variable: str) -> str:
    """The value of an environment variable."""
    return _keep_secret(os.environ.get(variable, ""), SAY("secret.no_variable", option=name, name=variable))


def secret_from_stdin() -> str:
    """The first line of the standard input."""
    return _keep_secret(sys.stdin.readline(), SAY("secret.no_input"))


def confirm(question: str, needs_yes: str, kept: str, *, code: int = 0) -> None:
    """Go on if somebody says yes; `needs_yes` and `kept` are what to tell when nobody can, or does not.

    `code` is how the command ends then.
    """
    if not somebody_is_there():
        raise InvalidInput(SAY(needs_yes))
    if not typer.confirm(question):
        typer.echo(say(kept))
        raise typer.Exit(code)


def somebody_is_there() -> bool:
    return sys.stdin.isatty()


def ask_secret(question: str) -> str:
    """What is answered, not shown as it is typed; empty when there is no answer."""
    hidden = sys.stdin.isatty()  # what is piped in is not shown anyway
    return _keep_secret(typer.prompt(question, default="", show_default=False, hide_input=hidden))


def _keep_secret(typed: str, if_empty: Message | None = None) -> str:
    value = typed.strip()
    if not value and if_empty:
        raise InvalidInput(if_empty)
    REDACT.learn(value)
    return value
