"""How a command runs, asks back, and ends: 0 a result, 1 failed, 2 asked for something impossible."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
import typer

from moot.cli.options import somebody_is_there
from moot.cli.printing import print_json
from moot.cli.texts import SAY, environment_locale, say
from moot.shared.domain.errors import AppError, InvalidInput, Unavailable
from moot.shared.domain.messages import LOCALES, Locale, shorten
from moot.shared.infrastructure.home import write_private
from moot.shared.infrastructure.logging import configure_logging
from moot.shared.infrastructure.redaction import REDACT
from moot.shared.infrastructure.settings import Settings, load_settings

if TYPE_CHECKING:
    from moot.desk import Moot
    from moot.shared.presentation.errors import ErrorBody

logger = structlog.get_logger(__name__)

T = TypeVar("T")
Work = Callable[["Moot"], Awaitable[T]]


def on_desk(
    work: Work[T],
    show: Callable[[T], None] | None = None,
    *,
    as_json: bool = False,
    body: Callable[[T], Any] = lambda done: done,
) -> T:
    """What `work` gives on a desk made from the settings, shown, or its `body` printed as JSON."""
    with command(as_json=as_json) as settings:
        done = at_desk(settings, work)
        if as_json:
            print_json(body(done))
        elif show is not None:
            show(done)
        return done


def at_desk(settings: Settings, work: Work[T]) -> T:
    from moot.desk import Moot

    async def run() -> T:
        alone = settings.model_copy(update={"worker": False})  # gone too soon to take sessions from the queue
        async with Moot(alone, trigger_source="cli") as desk:
            return await work(desk)

    return asyncio.run(run())


async def name_share(desk: "Moot", text: str, *, as_json: bool = False) -> str:
    """The symbol that what was typed means. Whoever sits at a terminal chooses where it may mean several."""
    try:
        return (await desk.market_data.market_data().symbol(text)).text
    except InvalidInput as e:
        candidates = e.details.get("candidates")
        if not candidates or as_json or not somebody_is_there():
            raise
        chosen = _choose(text, [f"{one['symbol']}  {one['name']}" for one in candidates])
        if not chosen:
            raise
        return str(candidates[chosen - 1]["symbol"])


def _choose(text: str, choices: Sequence[str]) -> int:
    """The number of the line that is chosen; 0 for none. What is asked is no part of what is answered."""
    typer.echo(say("which.share", text=shorten(text)), err=True)
    for number, choice in enumerate(choices, 1):
        typer.echo(f"  {number}  {choice}", err=True)
    while answer := str(typer.prompt(say("which.number"), default="", show_default=False, err=True)).strip():
        number = int(answer) if answer.isdecimal() else 0
        if 0 < number <= len(choices):
            return number
        typer.echo(say("init.not_a_choice", answer=answer), err=True)
    return 0


@contextmanager
def command(locale: str | None = None, *, as_json: bool = False) -> Iterator[Settings]:
    """Settings for the block; whatever it raises ends the command with a sentence and the right exit code."""
    reader = next((known for known in LOCALES if known == locale), None) or environment_locale()
    log = Path("moot.log")
    try:
        settings = load_settings()
        log = log_file(settings)
        configure_logging(settings.log_level, log)
        yield settings
    except typer.Exit:
        raise
    except AppError as e:
        if as_json:
            print_json(error_body(e, reader))
        else:
            typer.echo(SAY("error", message=e.in_locale(reader)).in_locale(reader), err=True)
        raise typer.Exit(2 if isinstance(e, InvalidInput) else 1) from None
    except (KeyboardInterrupt, typer.Abort):  # a question nobody answers ends like Ctrl-C
        typer.echo(SAY("interrupted").in_locale(reader), err=True)
        raise typer.Exit(1) from None
    except BrokenPipeError:  # whoever read along has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except Exception as e:  # bulkhead: a defect ends one command, and says where to look
        logger.error("command failed", exc_info=True)
        error = REDACT.text(repr(e))
        typer.echo(SAY("crashed", error=error, log=log).in_locale(reader), err=True)
        raise typer.Exit(1) from None


def log_file(settings: Settings) -> Path:
    return settings.home.expanduser() / "logs" / "moot.log"


def refuse_existing(path: Path, *, force: bool) -> None:
    if path.exists() and not force:
        raise InvalidInput(SAY("session_files.exists", path=path))


def write_file(path: Path, data: bytes | str) -> None:
    """Whole or not at all, and for nobody else to read: who may is for its owner to say."""
    try:
        write_private(path, data)
    except OSError as e:
        raise Unavailable(SAY("session_files.not_written", path=path, reason=e.strerror or e)) from e


def error_body(error: AppError, locale: Locale) -> "ErrorBody":
    """What REST would have answered."""
    from moot.shared.presentation.errors import ErrorBody

    return ErrorBody(code=error.code, message=error.in_locale(locale), details=error.details)
