"""What a session tells while it runs: kept, so that whoever joins late, or comes back, hears all of it."""

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

EventType = Literal[
    "session",
    "node_started",
    "node_retrying",
    "node_finished",
    "node_failed",
    "decision",
    "debate",
    "verdict",
    "done",
]
Told = tuple[EventType, dict[str, Any]]
"""What is told, before it has its number."""


class SessionEvent(BaseModel):
    """`seq` counts within the session, from 1; where one is missing, it could not be stored. `done` is the last.

    `data` of each type: `session` {status, symbol, experts, resumed}; `node_started` {node}; `node_retrying` {node,
    reason, attempt}; `node_finished` {node, status: success | skipped, duration_ms, signal, confidence, reused}, with
    the debate's direction or the judge's action for a signal;
    `node_failed` {node, error, duration_ms}; `decision` {node, verdict, reason}; `debate` {direction, confidence};
    `verdict` {action, position_percent, confidence}; `done` {status, verdict_status, verdict_action, reason}.
    """

    model_config = ConfigDict(frozen=True)

    seq: int
    type: EventType
    at: AwareDatetime
    data: dict[str, Any]
