"""Every model call, with its full prompt and completion."""

from sqlalchemy import Float, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from moot.shared.infrastructure.tables import Base, CallLog


class LLMCallLog(CallLog, Base):
    """`completion_text` is null when the call failed; tokens are null when the vendor did not say."""

    __tablename__ = "llm_call_logs"
    __table_args__ = (Index(None, "session_id", "created_at"),)

    caller_module: Mapped[str] = mapped_column(String(50))
    caller_agent: Mapped[str | None] = mapped_column(String(50))
    model_name: Mapped[str] = mapped_column(String(100))
    vendor: Mapped[str] = mapped_column(String(50))
    prompt_text: Mapped[str] = mapped_column(Text)
    system_message: Mapped[str | None] = mapped_column(Text)
    completion_text: Mapped[str | None] = mapped_column(Text)
    prompt_tokens: Mapped[int | None]
    completion_tokens: Mapped[int | None]
    total_tokens: Mapped[int | None]
    temperature: Mapped[float] = mapped_column(Float)
