"""`moot sessions export`, `verify` of a pack, and `prune`: sessions as files, and the room they take up."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from moot.cli.arguments import day, session_id_of
from moot.cli.on_desk import at_desk, on_desk
from moot.cli.outcome import command
from moot.cli.texts import SAY, environment_locale, say
from moot.desk import Moot
from moot.modules.coordinator.application.session_pack import SessionPack
from moot.modules.coordinator.application.session_pruning import CallTexts, Pruned
from moot.shared.domain.errors import AppError, InvalidInput, Unavailable
from moot.shared.domain.validation import refused
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

UNITS = ("B", "kB", "MB", "GB", "TB")


def export(session_id: str, path: Path, *, force: bool) -> None:
    async def work(desk: Moot) -> SessionPack:
        packs = desk.coordinator.session_packs()
        return await packs.pack(session_id_of(session_id), DEFAULT_WORKSPACE, environment_locale())

    with command() as settings:
        if path.exists() and not force:
            raise InvalidInput(SAY("session_files.exists", path=path))
        pack = at_desk(settings, work)
        _write(path, pack.data)
        typer.echo(say("session_files.packed", path=path, size=readable_size(len(pack.data))))
        typer.echo(pack.verification.explanation, err=not pack.verification.intact)
        typer.echo(say("session_files.head", head=pack.verification.head))


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as e:
        part.unlink(missing_ok=True)
        reason = e.strerror or e
        raise Unavailable(SAY("session_files.not_written", path=path, reason=reason)) from e


def is_pack(target: str) -> bool:
    return target.lower().endswith(".zip") or Path(target).is_file()


def verify_pack(path: Path) -> None:
    """Without settings, which this machine may not have. Exit code 0: the pack holds; 1: it does not."""
    from moot.modules.coordinator.application.session_pack import LARGEST
    from moot.modules.coordinator.container import check_session_pack

    locale = environment_locale()
    try:
        with path.open("rb") as file:
            found = check_session_pack(file.read(LARGEST + 1), locale)
    except OSError as e:
        reason = e.strerror or e
        raise _failed(Unavailable(SAY("session_files.not_read", path=path, reason=reason))) from None
    except AppError as e:
        raise _failed(e) from None
    typer.echo(found.explanation)
    typer.echo(say("session_files.head_of", session_id=found.session_id, head=found.head))


def _failed(error: AppError) -> typer.Exit:
    typer.echo(say("error", message=error.in_locale(environment_locale())), err=True)
    return typer.Exit(1)


def prune(before: str, workspace: str, *, sure: bool) -> None:
    async def work(desk: Moot) -> None:
        pruning = desk.coordinator.session_pruning()
        planned = await pruning.planned(last, workspace)
        if not planned.calls:
            typer.echo(say("session_files.nothing", day=last))
            return
        if not sure:
            _ask(planned, last)
        assert desk.database is not None, "there was something to prune in it"
        size = await desk.database.size()
        with _progress(planned) as watch:
            pruned = await pruning.prune(last, workspace, watch)
        _tell(pruned)
        await desk.database.reclaim()
        _tell_room(size, await desk.database.size())

    last = _day(before)
    on_desk(work)


def _day(before: str) -> date:
    with command():
        found = day("--before", before)
        if found is None:
            raise refused("date_malformed", "--before", before)
        return found


def _ask(planned: CallTexts, last: date) -> None:
    if not _somebody_is_there():
        raise InvalidInput(SAY("session_files.needs_yes"))
    question = say("session_files.sure", calls=planned.calls, sessions=planned.sessions, day=last)
    if not typer.confirm(question):
        typer.echo(say("session_files.kept"))
        raise typer.Exit(0)


def _somebody_is_there() -> bool:
    return sys.stdin.isatty()


def _tell(pruned: Pruned) -> None:
    gone = pruned.texts
    size = readable_size(gone.size)
    typer.echo(say("session_files.pruned", calls=gone.calls, sessions=gone.sessions, size=size))
    for session_id in pruned.broken:
        typer.echo(say("session_files.broken", session_id=session_id), err=True)


def _tell_room(before: int, after: int) -> None:
    key = "room" if after < before else "room_kept"
    typer.echo(say(f"session_files.{key}", before=readable_size(before), after=readable_size(after)))


@contextmanager
def _progress(planned: CallTexts) -> Iterator[Callable[[CallTexts], None]]:
    """A bar on a terminal, nothing anywhere else."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(say("session_files.pruning"), total=planned.calls)
        yield lambda gone: progress.update(task, completed=gone.calls)


def readable_size(size: int) -> str:
    """Bytes as people count them."""
    power = min((len(str(size)) - 1) // 3, len(UNITS) - 1)
    return f"{size / 1000**power:.1f} {UNITS[power]}" if power else f"{size} B"
