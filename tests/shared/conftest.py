"""A record in either database, and a session under way that it is of."""

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.call_audit import EXTERNAL_KINDS, CallAudit, ExternalCalls
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import ExecutionContext
from tests.fakes.clock import FixedClock


@pytest.fixture
def trail(database: Database) -> AuditTrail:
    trail = AuditTrail(database)
    trail.vouches_for(*EXTERNAL_KINDS)
    return trail


@pytest.fixture
def calls(trail: AuditTrail) -> ExternalCalls:
    return ExternalCalls(CallAudit(trail, FixedClock(datetime(2026, 6, 30, 10, 0, tzinfo=UTC))))


@pytest.fixture
def session() -> Iterator[ExecutionContext]:
    with ExecutionContext(session_id=str(uuid4())).active() as context:
        yield context


@pytest.fixture
def session_id(session: ExecutionContext) -> UUID:
    return UUID(session.session_id)
