"""Puts calls on the record: a row before the call, completed after it. One door for model calls and all others."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, Self
from uuid import UUID, uuid4

import structlog
from pydantic_core import to_json
from sqlalchemy import ColumnElement, and_, or_, select

from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.texts import SAY
from moot.shared.infrastructure.audit_trail import AuditTrail, Kind
from moot.shared.infrastructure.database import patient
from moot.shared.infrastructure.execution_context import current_context
from moot.shared.infrastructure.tables import ExternalAPICallLog
from moot.shared.infrastructure.transactions import transaction

logger = structlog.get_logger(__name__)

INTENT = ("id", "session_id", "workspace_id", "created_at", "attempt", "request_digest", "origin")
OUTCOME = ("status", "latency_ms", "error_message")
LIVE: Mapping[str, Any] = {"origin": "live", "attempt": 1, "request_digest": None}

EXTERNAL_CALL = Kind(
    "external_call", ExternalAPICallLog, (*INTENT, "service_name", "operation", "request_params")
)
EXTERNAL_ANSWER = Kind("external_answer", ExternalAPICallLog, (*OUTCOME, "status_code", "response_data"))


class Bodies(NamedTuple):
    """The texts of a call log, and what is left in their columns. `kind` vouches for a row that lost them.

    It covers the empty columns too: a text that is put there afterwards is found.
    """

    kind: Kind
    emptied: Mapping[str, Any]

    @classmethod
    def of(cls, name: str, kinds: Sequence[Kind], **emptied: Any) -> Self:
        columns = dict.fromkeys(column for kind in kinds for column in kind.columns)
        replaced = frozenset(kind.name for kind in kinds)
        return cls(Kind(name, kinds[0].table, tuple(columns), replaces=replaced), emptied)

    def remain(self) -> ColumnElement[bool]:
        """Whether a row has texts to lose. A call that is under way, or looks like it, keeps them."""
        columns = self.kind.rows.c
        some = (
            columns[name].is_not(None) if empty is None else columns[name] != empty
            for name, empty in self.emptied.items()
        )
        return and_(columns.status != "started", or_(*some))

    def weigh(self, rows: Iterable[Mapping[Any, Any]]) -> int:
        """How many bytes of text these rows hold."""
        values = (row[name] for row in rows for name in self.emptied)
        return sum(len(to_json(value)) for value in values if value)


EXTERNAL_BODIES = Bodies.of("pruned_external_call", (EXTERNAL_CALL, EXTERNAL_ANSWER), response_data=None)
EXTERNAL_KINDS = (EXTERNAL_CALL, EXTERNAL_ANSWER, EXTERNAL_BODIES.kind)


class CallAudit:
    """Best effort: a row that cannot be written is logged and counted, and the call goes on. `strict` refuses it."""

    def __init__(self, trail: AuditTrail, clock: Clock, *, strict: bool = False) -> None:
        self.trail, self._clock, self._strict = trail, clock, strict
        self._database = trail.database
        trail.vouches_for(EXTERNAL_CALL, EXTERNAL_ANSWER)

    async def begin(self, kind: Kind, values: Mapping[str, Any]) -> UUID | None:
        """Commit the intent; None when it could not be kept."""
        row = {
            "id": uuid4(),
            "session_id": _session(),
            "workspace_id": current_context().workspace,
            "status": "started",
            "created_at": self._clock.now(),
            **values,
        }
        return row["id"] if await self._write(kind, row, "insert") else None

    async def end(self, kind: Kind, call_id: UUID | None, values: Mapping[str, Any]) -> None:
        """Complete the row; what `values` do not name is null."""
        if call_id is not None:
            await self._write(kind, {"id": call_id, **dict.fromkeys(kind.columns), **values}, "update")

    @patient
    async def close_abandoned(
        self, intent: Kind, outcome: Kind, *, before: datetime | None = None, session_id: UUID | None = None
    ) -> int:
        """Calls begun before that moment, or by that session, and never completed: nobody is left to say how."""
        table = intent.rows
        which = table.c.created_at < before if before else table.c.session_id == session_id
        left = select(table.c.id, table.c.session_id).where(table.c.status == "started", which)
        async with transaction(self._database.session) as db:
            abandoned = (await db.execute(left)).all()
        unknown = dict.fromkeys(outcome.columns) | {"status": "unknown"}
        for call_id, owner in abandoned:
            await self.trail.append(outcome, {"id": call_id, **unknown}, session_id=owner, write="update")
        return len(abandoned)

    async def _write(self, kind: Kind, row: dict[str, Any], how: Literal["insert", "update"]) -> bool:
        try:
            await self.trail.append(kind, row, session_id=_session(), write=how)
        except Exception as e:  # bulkhead: a lost record must not cost the answer, unless it was asked to
            current_context().tally.audit_gaps += 1
            logger.warning("call not recorded", kind=kind.name, call_id=str(row["id"]), exc_info=True)
            if self._strict:
                raise Unavailable(SAY("audit.not_written"), code="AUDIT_FAILED") from e
            return False
        return True


def _session() -> UUID | None:
    context = current_context()
    return UUID(context.session_id) if context.session_id else None


class ExternalCalls:
    """Calls to outside services that are no models. Without an audit nothing is kept."""

    def __init__(self, audit: CallAudit | None) -> None:
        self._audit = audit

    async def begin(
        self, service_name: str, operation: str, request_params: Mapping[str, Any], **also: Any
    ) -> UUID | None:
        """`also`: its `attempt`, `origin` and `request_digest`, where there is more to say than that it is live."""
        if self._audit is None:
            return None
        asked = {"service_name": service_name, "operation": operation, "request_params": request_params}
        return await self._audit.begin(EXTERNAL_CALL, {**LIVE, **asked, **also})

    async def end(self, call_id: UUID | None, **outcome: Any) -> None:
        """`outcome`: the `status`, `latency_ms`, and `status_code`, `response_data` or `error_message`."""
        if self._audit is not None:
            await self._audit.end(EXTERNAL_ANSWER, call_id, outcome)
