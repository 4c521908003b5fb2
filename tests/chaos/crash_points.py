"""Where a worker can be made to die: the real seams of the desk, patched in the worker's own process."""

import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple, NoReturn

from sqlalchemy import Connection

from moot.modules.coordinator.infrastructure.session_repository import NODE, SESSION, SESSION_END
from moot.modules.llm_platform.infrastructure.call_journal import MODEL_ANSWER, MODEL_CALL
from moot.modules.llm_platform.infrastructure.openai_client import OpenAIChatModel
from moot.shared.infrastructure.audit_trail import AuditTrail, Kind
from moot.shared.infrastructure.database import Database

When = Literal["before", "inside", "after"]
"""`inside`: the rows are written, their transaction is not committed."""

REQUEST = None
"""No row: the request to the model itself."""
EXPERT, LAST_EXPERT, ADVOCATE, RESOLUTION, VERDICT = 1, 5, 6, 8, 9
"""Whose model call it is: five experts at once, bull and bear at once, then one after the other."""
DEBATE, JUDGE = 6, 7
"""Whose row in the journal it is, after those of the experts."""


class CrashPoint(NamedTuple):
    """The `nth` time that a row of this kind is written, or that a model is asked."""

    when: When
    what: Kind | None
    nth: int = 1


POINTS = {
    "before the session is stored": CrashPoint("before", SESSION),
    "while the session is stored": CrashPoint("inside", SESSION),
    "after the session is stored": CrashPoint("after", SESSION),
    "before the first intent": CrashPoint("before", MODEL_CALL, EXPERT),
    "while an intent is committed": CrashPoint("inside", MODEL_CALL, 3),
    "after the first intent": CrashPoint("after", MODEL_CALL, EXPERT),
    "before the first request": CrashPoint("before", REQUEST, EXPERT),
    "before the last expert's request": CrashPoint("before", REQUEST, LAST_EXPERT),
    "after the first answer": CrashPoint("after", REQUEST, EXPERT),
    "before the first outcome": CrashPoint("before", MODEL_ANSWER, EXPERT),
    "while an outcome is committed": CrashPoint("inside", MODEL_ANSWER, 2),
    "after the first outcome": CrashPoint("after", MODEL_ANSWER, EXPERT),
    "before the first node's row": CrashPoint("before", NODE, EXPERT),
    "while an expert's row is committed": CrashPoint("inside", NODE, 3),
    "after the first node's row": CrashPoint("after", NODE, EXPERT),
    "before the last expert's row": CrashPoint("before", NODE, LAST_EXPERT),
    "after the last expert's row": CrashPoint("after", NODE, LAST_EXPERT),
    "after an advocate's outcome": CrashPoint("after", MODEL_ANSWER, ADVOCATE),
    "before the resolution's request": CrashPoint("before", REQUEST, RESOLUTION),
    "after the resolution's answer": CrashPoint("after", REQUEST, RESOLUTION),
    "before the debate's row": CrashPoint("before", NODE, DEBATE),
    "after the debate's row": CrashPoint("after", NODE, DEBATE),
    "after the verdict's intent": CrashPoint("after", MODEL_CALL, VERDICT),
    "after the verdict's outcome": CrashPoint("after", MODEL_ANSWER, VERDICT),
    "before the judge's row": CrashPoint("before", NODE, JUDGE),
    "after the judge's row": CrashPoint("after", NODE, JUDGE),
    "before the session's end": CrashPoint("before", SESSION_END),
    "while the session's end is committed": CrashPoint("inside", SESSION_END),
    "after the session's end": CrashPoint("after", SESSION_END),
}


def die() -> NoReturn:
    """At once, with nothing tidied up."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def die_at(point: CrashPoint) -> None:
    """From here on this process is doomed, if it ever gets there."""
    if point.what is REQUEST:
        _die_around_requests(point)
    else:
        _die_around_rows(point)


def _die_around_requests(point: CrashPoint) -> None:
    complete, asked = OpenAIChatModel.complete, _Count(point)

    async def doomed(model: OpenAIChatModel, *about: Any) -> Any:
        return await asked.around(lambda: complete(model, *about))

    OpenAIChatModel.complete = doomed  # type: ignore[method-assign]


def _die_around_rows(point: CrashPoint) -> None:
    append, write, written = AuditTrail.append, Database.write, _Count(point)

    async def doomed(trail: AuditTrail, kind: Kind, *values: Any, **how: Any) -> None:
        if kind is not point.what:
            await append(trail, kind, *values, **how)
        else:
            await written.around(lambda: append(trail, kind, *values, **how))

    async def write_and_die(database: Database, work: Callable[[Connection], Any]) -> Any:
        def doomed_work(db: Connection) -> Any:
            done = work(db)
            if written.inside:
                die()
            return done

        return await write(database, doomed_work)

    AuditTrail.append = doomed  # type: ignore[method-assign, assignment]
    Database.write = write_and_die  # type: ignore[method-assign]


class _Count:
    def __init__(self, point: CrashPoint) -> None:
        self._point, self._begun, self._done = point, 0, 0
        self.inside = False
        """Whether the transaction that is written next must not come to its end."""

    async def around(self, act: Callable[[], Awaitable[Any]]) -> Any:
        when, nth = self._point.when, self._point.nth
        self._begun += 1
        if self._begun == nth:
            if when == "before":
                die()
            self.inside = when == "inside"
        answer = await act()
        self._done += 1
        if when == "after" and self._done == nth:
            die()
        return answer
