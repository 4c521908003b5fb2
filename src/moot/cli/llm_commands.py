"""The commands of `moot llm`, as they are typed; what they do is in `llm.py`."""

from typing import Annotated, Literal

import typer

from moot.cli.texts import say

llm = typer.Typer(help=say("help.llm"), no_args_is_help=True)

Alias = Annotated[str, typer.Argument(help=say("help.llm_alias"))]


@llm.command("list", help=say("help.llm_list"))
def list_() -> None:
    from moot.cli.llm import list_models

    list_models()


@llm.command(help=say("help.llm_add"))
def add(
    alias: Alias,
    preset: Annotated[str | None, typer.Option(help=say("help.llm_preset"))] = None,
    base_url: Annotated[str | None, typer.Option(help=say("help.llm_base_url"))] = None,
    model: Annotated[str | None, typer.Option(help=say("help.llm_model"))] = None,
    key_stdin: Annotated[bool, typer.Option("--key-stdin", help=say("help.llm_key_stdin"))] = False,
    key_env: Annotated[str | None, typer.Option(metavar="VAR", help=say("help.llm_key_env"))] = None,
    priority: Annotated[int | None, typer.Option(help=say("help.llm_priority"))] = None,
    tag: Annotated[list[str] | None, typer.Option(help=say("help.llm_tag"))] = None,
    price_in: Annotated[float | None, typer.Option(help=say("help.llm_price_in"))] = None,
    price_out: Annotated[float | None, typer.Option(help=say("help.llm_price_out"))] = None,
    context_size: Annotated[int | None, typer.Option(help=say("help.llm_context_size"))] = None,
    knowledge_cutoff: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help=say("help.llm_cutoff"))
    ] = None,
    proxy: Annotated[str | None, typer.Option(help=say("help.llm_proxy"))] = None,
) -> None:
    from moot.cli.llm import Entry, add_model

    entry = Entry(
        alias=alias,
        preset=preset,
        base_url=base_url,
        model_name=model,
        priority=priority,
        tags=tag or None,
        price_in=price_in,
        price_out=price_out,
        context_size=context_size,
        knowledge_cutoff=knowledge_cutoff,
        proxy=proxy,
    )
    add_model(entry, key_stdin=key_stdin, key_env=key_env)


@llm.command("test", help=say("help.llm_test"))
def try_out(alias: Annotated[str | None, typer.Argument(help=say("help.llm_test_alias"))] = None) -> None:
    from moot.cli.llm import try_models

    try_models(alias)


@llm.command(help=say("help.llm_remove"))
def remove(
    alias: Alias, yes: Annotated[bool, typer.Option("--yes", help=say("help.llm_yes"))] = False
) -> None:
    from moot.cli.llm import remove_model

    remove_model(alias, sure=yes)


@llm.command(help=say("help.llm_usage"))
def usage(
    by: Annotated[Literal["model", "agent", "day"], typer.Option(help=say("help.llm_by"))] = "model",
    since: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help=say("help.llm_since"))] = None,
) -> None:
    from moot.cli.llm import show_usage

    show_usage(by, since)
