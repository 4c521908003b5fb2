"""`moot` on the command line. Each command waits in a module of its own, so `--help` is quick."""

import gc
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from moot.cli.help import Commands, Root
from moot.cli.texts import say

COMMANDS = {
    "init": "init",
    "research": "research",
    "ask": "ask",
    "decide": "decide",
    "serve": "server",
    "doctor": "upkeep",
    "llm": "llm",
    "data": "data",
    "sessions": "sessions",
    "rules": "rules",
    "escalations": "escalations",
    "keys": "upkeep",
    "db": "upkeep",
}
"""The module that has the command, or the group of commands, under the same name."""

SELDOM = (200_000, 20, 50)
"""How many objects must have come before Python looks for circles among them: loading makes many, and few circles."""

app = typer.Typer(
    cls=Root,
    help=say("about"),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


class Late(TyperCommand):
    """A command that is known by its name and help until somebody names it."""

    def load(self) -> Any:
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
