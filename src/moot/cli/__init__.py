"""`moot` on the command line. Each command waits in a module of its own, so `--help` is quick.

What surrounds the commands is in the reader's language: the frame of their help, and what is wrong with a line.
"""

import atexit
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from moot.cli.texts import environment_locale, say

if TYPE_CHECKING:
    Base = TyperCommand
else:
    Base = object

COMMANDS = {
    "init": "init",
    "research": "research",
    "expert": "research",
    "contest": "contest",
    "report": "sessions",
    "ask": "ask",
    "decide": "decide",
    "evaluate": "evaluate",
    "serve": "server",
    "worker": "worker",
    "doctor": "upkeep",
    "llm": "llm",
    "data": "data",
    "sessions": "sessions",
    "batch": "batch",
    "watch": "watch",
    "schedule": "schedule",
    "notify": "notify",
    "rules": "rules",
    "escalations": "escalations",
    "keys": "upkeep",
    "db": "upkeep",
}
"""The module that has the command, or the group of commands, under the same name."""

SELDOM = (200_000, 20, 50)
"""How many objects must have come before Python looks for circles among them: loading makes many, and so do a hundred
sessions at once, but few circles."""

FRAME = {
    "arguments": "ARGUMENTS_PANEL_TITLE",
    "options": "OPTIONS_PANEL_TITLE",
    "commands": "COMMANDS_PANEL_TITLE",
    "error": "ERRORS_PANEL_TITLE",
    "default": "DEFAULT_STRING",
    "required": "REQUIRED_LONG_STRING",
    "try_help": "RICH_HELP",
}
"""What typer calls its own words, which it has in English only."""


class Worded(Base):
    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            vars(option).update(help=say("usage.help"))
        return option

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = list(super().get_params(ctx))
        for param in params:
            if getattr(param, "is_flag", False):
                vars(param).update(metavar="")  # it takes no value
            elif "list[" in (param.display_type_rich(ctx) or ""):
                vars(param).update(display_type_rich=lambda ctx: "<str>...")
            if param.name in ("install_completion", "show_completion"):
                vars(param).update(help=say(f"usage.{param.name}"))
        return params

    def get_usage(self, ctx: Any) -> str:
        return super().get_usage(ctx).replace("Usage: ", say("usage.usage"), 1)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        word_frame()
        super().format_help(ctx, formatter)


class Command(Worded, TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Notes in which order the options were typed: what each was given does not tell."""
        _, _, typed = self.make_parser(ctx).parse_args(list(args))
        ctx.meta["typed"] = [param.name for param in typed]
        return super().parse_args(ctx, args)


class Group(Worded, TyperGroup): ...


class Root(Group):
    """All commands. What cannot be read on the line is told like everything else."""

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        with _worded_errors():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: Any) -> Any:
        with _worded_errors():
            return super().invoke(ctx)


class Commands(typer.Typer):
    def command(self, *arguments: Any, **more: Any) -> Callable[[Any], Any]:
        return super().command(*arguments, **{"cls": Command, **more})


def word_frame() -> None:
    from rich.text import Text  # takes a while, and only help and complaints need it
    from typer import rich_utils

    class Folding(rich_utils.OptionHighlighter):
        """Chinese has no spaces to break at, and would be cut."""

        def __call__(self, text: Any) -> Any:
            return Text.assemble(super().__call__(text), overflow="fold")

    vars(rich_utils).update(highlighter=Folding())
    for name, constant in FRAME.items():
        setattr(rich_utils, constant, say(f"usage.{name}"))


@contextmanager
def _worded_errors() -> Iterator[None]:
    """Typer complains in English."""
    try:
        yield
    except typer.TyperException as e:
        word_frame()
        if environment_locale() != "en-US":
            said = _reword(e)
            vars(e).update(format_message=lambda: said)
        raise


def _reword(error: Any) -> str:
    quoted = error.message.split("'")[1::2]
    if error.message.startswith("No such command"):
        near = say("usage.did_you_mean", near=quoted[1:]) if quoted[1:] else ""
        return say("usage.no_command", name=quoted[0]) + near
    match type(error).__name__:
        case "NoSuchOption":
            near = say("usage.did_you_mean", near=error.possibilities) if error.possibilities else ""
            return say("usage.no_option", name=error.option_name) + near
        case "MissingParameter":
            return say("usage.missing", name=error.param.display_name_raw if error.param else "")
        case "BadParameter" if error.param:
            return say("usage.bad", name=error.param.get_error_hint().strip("'"), why=error.message)
    return say("usage.other", why=error.message)


app = typer.Typer(
    cls=Root,
    help=say("about"),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


class Late(TyperCommand):
    """A command that is known by its name and help until somebody names it."""

    def load(self) -> Any:
        from pydantic import BaseModel

        BaseModel.model_config["defer_build"] = True  # of a thousand shapes that are declared, few are needed
        name = str(self.name)
        found = getattr(import_module(f"moot.cli.{COMMANDS[name]}"), name)
        if isinstance(found, Commands):
            return typer.main.get_command(found)
        alone = Commands(add_completion=False)
        alone.command(help=self.help)(found)
        return typer.main.get_command(alone)

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        return self.load().make_context(*arguments, **more)


for _name in COMMANDS:
    app.command(_name, cls=Late, help=say(f"help.{_name}"))(lambda: None)


def main() -> None:
    gc.set_threshold(*SELDOM)
    atexit.register(gc.freeze)  # at the end everything goes: nobody need look for circles first
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it looks for them in every package
    app(prog_name="moot")


def _version(wanted: bool) -> None:
    if wanted:
        from moot import __version__

        typer.echo(f"moot {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help=say("help.version"))
    ] = False,
) -> None:
    """The options every command shares."""
