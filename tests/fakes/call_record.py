"""A record of outside calls that is kept in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from pydantic import BaseModel

from moot.shared.infrastructure.call_audit import ExternalCalls


class KeptCall(BaseModel):
    service_name: str
    operation: str
    request_params: dict[str, Any]
    response_data: str | None = None
    status_code: int | None = None
    latency_ms: int | None = None
    status: str = "started"
    error_message: str | None = None


@dataclass
class Record(ExternalCalls):
    """`calls` are those that came to an end, in that order; `begun` are all."""

    calls: list[KeptCall] = field(default_factory=list)
    begun: dict[UUID, KeptCall] = field(default_factory=dict)

    async def begin(
        self, service_name: str, operation: str, request_params: Mapping[str, Any], **_: Any
    ) -> UUID | None:
        call = KeptCall(service_name=service_name, operation=operation, request_params=dict(request_params))
        call_id = uuid4()
        self.begun[call_id] = call
        return call_id

    async def end(self, call_id: UUID | None, **outcome: Any) -> None:
        assert call_id is not None
        self.calls.append(self.begun[call_id].model_copy(update=outcome))
