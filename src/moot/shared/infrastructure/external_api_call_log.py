"""Every call to an outside service, with what was asked and what came back."""

from typing import Any

from sqlalchemy import Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from moot.shared.infrastructure.tables import Base, CallLog


class ExternalAPICallLog(CallLog, Base):
    """`response_data` is null when nothing came back, `status_code` when no HTTP answer did."""

    __tablename__ = "external_api_call_logs"
    __table_args__ = (Index(None, "session_id", "created_at"),)

    service_name: Mapped[str] = mapped_column(String(50))
    operation: Mapped[str] = mapped_column(String(100))
    request_params: Mapped[dict[str, Any]]
    response_data: Mapped[str | None] = mapped_column(Text)
    status_code: Mapped[int | None]
