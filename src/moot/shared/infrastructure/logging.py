"""Structured logs: readable in a terminal, one JSON object a line elsewhere. Never on stdout."""

import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor

from moot.shared.infrastructure.execution_context import current_execution_ctx
from moot.shared.infrastructure.redaction import REDACT


def configure_quietly(level: str) -> None:
    """For a program that uses the SDK and has not set up logs itself: what went wrong, a line each, on stderr."""
    if not structlog.is_configured():
        configure_logging("warning" if level == "info" else level, tracebacks=level == "debug")


def configure_logging(level: str, file: Path | None = None, *, tracebacks: bool = True) -> None:
    """Log to `file`, or to stderr when there is none."""
    stream: TextIO = sys.stderr
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        stream = file.open("a", encoding="utf-8", buffering=1)
    # Plain tracebacks: richer ones print local variables, and those may hold what must not be logged.
    render: list[Processor] = (
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if stream.isatty()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            add_session,
            *([] if tracebacks else [without_traceback]),
            *render,
            without_secrets,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, Unfailing(stream))),
        cache_logger_on_first_use=False,
    )


class Unfailing:
    """A log that cannot be written, on a full disk or a closed terminal, is lost. Nothing else is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()


def without_secrets(_logger: object, _method: str, line: Any) -> str:
    """The last to touch a line, when it is rendered, traceback and all."""
    return REDACT.text(line)


def without_traceback(_logger: object, _method: str, event: EventDict) -> EventDict:
    event.pop("exc_info", None)
    return event


def add_session(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Every line says which session it belongs to."""
    context = current_execution_ctx.get()
    if context is not None and context.session_id:
        event.setdefault("session_id", context.session_id)
    return event
