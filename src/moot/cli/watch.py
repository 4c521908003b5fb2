"""`moot watch`: the shares that somebody keeps an eye on."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

from moot.cli.command import name_share, on_desk
from moot.cli.options import AsJson, argument, group, list_typed, option
from moot.cli.printing import field, line_field, print_table, tell
from moot.cli.texts import environment_locale, say
from moot.modules.jobs.application.watch import DEFAULT_LIST, Ruling, Watched, Watchlist

if TYPE_CHECKING:
    from moot.desk import Moot

Symbols = Annotated[list[str], argument("help.symbols", metavar="SYMBOL...")]
ListName = Annotated[str, option("watch.help.list", "--list", metavar="NAME")]

watch = group("help.watch")


@watch.command("add", help=say("watch.help.add"))
def add(symbols: Symbols, list_name: ListName = DEFAULT_LIST, as_json: AsJson = False) -> None:
    _change(lambda desk: desk.add_to_watchlist, symbols, list_name, as_json=as_json)


@watch.command("list", help=say("watch.help.show"))
def show(
    list_name: Annotated[str | None, option("watch.help.one", "--list", metavar="NAME")] = None,
    as_json: AsJson = False,
) -> None:
    on_desk(lambda desk: desk.watchlist(list_name), _show, as_json=as_json)


@watch.command("remove", help=say("watch.help.remove"))
def remove(symbols: Symbols, list_name: ListName = DEFAULT_LIST, as_json: AsJson = False) -> None:
    _change(lambda desk: desk.remove_from_watchlist, symbols, list_name, as_json=as_json)


def _change(
    how: Callable[["Moot"], Callable[..., Awaitable[Watchlist]]],
    symbols: list[str],
    name: str,
    *,
    as_json: bool,
) -> None:
    async def work(desk: "Moot") -> Watchlist:
        meant = [await name_share(desk, text, as_json=as_json) for text in list_typed(symbols)]
        return await how(desk)(*meant, list_name=name)

    on_desk(work, _show, as_json=as_json)


def _show(watched: Watchlist) -> None:
    """Which list only where there are several."""
    lists = {one.list_name for one in watched.items}
    print_table(
        watched.items,
        line_field("watch.column.symbol", lambda one: one.symbol),
        field("watch.column.name", _name),
        *([field("watch.column.list", lambda one: one.list_name)] if len(lists) > 1 else []),
        line_field("watch.column.last", lambda one: _tell(one.last)),
        line_field("watch.column.before", lambda one: _tell(one.before)),
        none="watch.none",
    )
    if any(one.last is None for one in watched.items):
        tell("watch.how")


def _name(one: Watched) -> str:
    return (one.name if environment_locale() == "zh-CN" else one.name_en or one.name) or "—"


def _tell(ruling: Ruling | None) -> str:
    if ruling is None:
        return "—"
    action = say(f"watch.action.{ruling.action or 'none'}")
    return f"{action} {ruling.as_of:%Y-%m-%d}"
