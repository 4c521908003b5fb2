"""The record of every call to a source outside: what was asked, what came back, how long it took."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol
from uuid import UUID

LONGEST_RESPONSE = 16_000
"""Characters of an answer that are kept; enough to see what it was, small enough to keep for every call."""


def cut(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST_RESPONSE:
        return text
    return f"{text[:LONGEST_RESPONSE]}… ({len(text)} characters)"


class CallRecorder(Protocol):
    """Keeps attempts: the intent before, the outcome after. `request_params` hold no secrets.

    `status_code` is absent where no HTTP answer came back. `begin` raises only where no call may be made unrecorded.
    """

    async def begin(
        self, service_name: str, operation: str, request_params: Mapping[str, Any], *, attempt: int = 1
    ) -> UUID | None: ...

    async def end(
        self,
        call_id: UUID | None,
        *,
        status: Literal["success", "failed"],
        latency_ms: int,
        status_code: int | None = None,
        response_data: str | None = None,
        error_message: str | None = None,
    ) -> None: ...
