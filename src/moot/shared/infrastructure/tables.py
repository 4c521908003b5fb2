"""What every table is built from, and the tables of no context: calls to the outside, limits, the audit chain."""

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, Dialect, Float, Index, LargeBinary, MetaData, String, Text, false, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.kept_texts import JSON_DATA, KeptText

CONSTRAINT_NAMES = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}


class UtcDateTime(TypeDecorator[datetime]):
    """A moment, in UTC. Refuses naive values; returns aware ones from SQLite too, which keeps no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None or value.tzinfo is UTC:  # as nearly all are
            return value
        if value.utcoffset() is None:
            raise ValueError(f"a naive datetime is no moment: {value!r}; give it a time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None or value.tzinfo is not None:
            return value and value.astimezone(UTC)
        return value.replace(tzinfo=UTC)


class HexDigest(TypeDecorator[str]):
    """A SHA-256 in hexadecimal, in the 32 bytes that it is. What somebody else put there is returned as it reads."""

    impl = LargeBinary(32)
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        return None if value is None else bytes.fromhex(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        return _read_digest


def _read_digest(found: str | bytes | None) -> str | None:
    if isinstance(found, bytes):
        return found.hex() if len(found) == sha256().digest_size else found.decode(errors="replace")
    return found


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=CONSTRAINT_NAMES)
    type_annotation_map = {  # noqa: RUF012 (SQLAlchemy's own name, read once)
        datetime: UtcDateTime,
        dict[str, Any]: JSON_DATA,
        list[str]: JSON_DATA,
        list[dict[str, Any]]: JSON_DATA,
    }


class CallLog:
    """The columns of every call log. No foreign key: a call is on the record even where its session is not.

    A row is committed before the call, as `started`, and completed after it: success, failed, or unknown when
    nobody was left to say. `origin` tells a live call from one answered by a cache or by the record.
    """

    id: Mapped[UUID] = mapped_column(primary_key=True)
    session_id: Mapped[UUID | None]
    workspace_id: Mapped[str] = mapped_column(String(64), server_default=DEFAULT_WORKSPACE)
    latency_ms: Mapped[int | None]
    status: Mapped[str] = mapped_column(String(20))
    error_message: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    cost: Mapped[float | None] = mapped_column(Float)
    attempt: Mapped[int] = mapped_column(server_default=text("1"))
    request_digest: Mapped[str | None] = mapped_column(String(64))
    origin: Mapped[str] = mapped_column(String(10), server_default="live")


class ExternalAPICallLog(CallLog, Base):
    """Every call to an outside service, with what was asked and what came back.

    `response_data` is null when nothing came back, `status_code` when no HTTP answer did.
    """

    __tablename__ = "external_api_call_logs"
    __table_args__ = (Index(None, "session_id", "created_at"),)

    service_name: Mapped[str] = mapped_column(String(50))
    operation: Mapped[str] = mapped_column(String(100))
    request_params: Mapped[dict[str, Any]]
    response_data: Mapped[str | None] = mapped_column(KeptText)
    status_code: Mapped[int | None]


class RateLimitRow(Base):
    """What was used of a limit within its span: `uses` are lists of moment (ms), requests and tokens."""

    __tablename__ = "rate_limits"

    key: Mapped[str] = mapped_column(String(150), primary_key=True)
    uses: Mapped[list[Any]] = mapped_column(JSON_DATA)


class TextRow(Base):
    """Squeezed: the long texts of a session that has ended, or one that many rows have. Cells say what is theirs."""

    __tablename__ = "texts"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary)


class AuditEntryRow(Base):
    """One link of a session's chain: `digest` is of the row it vouches for, `hash` of the link and all before it."""

    __tablename__ = "audit_chain"
    __table_args__ = {"sqlite_with_rowid": False}  # noqa: RUF012 (SQLAlchemy's own name, read once)

    session_id: Mapped[UUID] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(30))
    row_id: Mapped[UUID]
    digest: Mapped[str] = mapped_column(HexDigest)
    previous_hash: Mapped[str] = mapped_column(HexDigest)
    hash: Mapped[str] = mapped_column(HexDigest)


class AuditHeadRow(Base):
    """Where a session's chain ends. Kept apart from the chain, so that a tail that was cut off is missed.

    `ledger` is the chain over the heads of its workspace, which lists it; once it is `closed`, with its end.
    """

    __tablename__ = "audit_heads"

    session_id: Mapped[UUID] = mapped_column(primary_key=True)
    length: Mapped[int]
    hash: Mapped[str] = mapped_column(String(64))
    ledger: Mapped[UUID | None] = mapped_column(index=True)
    closed: Mapped[bool] = mapped_column(server_default=false())
    signature: Mapped[str | None] = mapped_column(String(64))
