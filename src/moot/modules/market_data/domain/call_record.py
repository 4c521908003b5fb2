"""The record of every call to a source outside: what was asked, what came back, how long it took."""

from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, field_validator

LONGEST_RESPONSE = 16_000
"""Characters of an answer that are kept; enough to see what it was, small enough to keep for every call."""


class ExternalCall(BaseModel):
    """One attempt. `request_params` hold no secrets; `status_code` is absent where no HTTP answer came back."""

    model_config = ConfigDict(frozen=True)

    service_name: str
    operation: str
    request_params: dict[str, Any]
    response_data: str | None = None
    status_code: int | None = None
    latency_ms: int
    status: Literal["success", "failed"]
    error_message: str | None = None

    @field_validator("response_data")
    @classmethod
    def _cut(cls, text: str | None) -> str | None:
        if text is None or len(text) <= LONGEST_RESPONSE:
            return text
        return f"{text[:LONGEST_RESPONSE]}… ({len(text)} characters)"


class CallRecorder(Protocol):
    """Keeps calls. What it raises is logged and goes no further: a lost record costs no answer."""

    async def record(self, call: ExternalCall) -> None: ...


class NoRecord:
    """Keeps nothing."""

    async def record(self, call: ExternalCall) -> None:
        return None


NO_RECORD = NoRecord()
