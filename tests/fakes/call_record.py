"""Records of outside calls: one that keeps them in memory, one that cannot keep anything."""

from dataclasses import dataclass, field

from moot.modules.market_data.domain.call_record import ExternalCall


@dataclass
class Record:
    calls: list[ExternalCall] = field(default_factory=list)

    async def record(self, call: ExternalCall) -> None:
        self.calls.append(call)


class BrokenRecord:
    async def record(self, call: ExternalCall) -> None:
        raise RuntimeError("disk full")
