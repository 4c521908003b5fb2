"""What the coordinator asks before it acts: may this be researched, may this node run, may this verdict stand?"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple
from uuid import UUID

from moot.modules.coordinator.domain.dtos.research_dtos import ResearchRequest
from moot.modules.coordinator.domain.exceptions import ApprovalNeeded


class AfterError(NamedTuple):
    """What follows when a node's work has raised: again after `delay` seconds, again knowing `feedback`, or not."""

    action: Literal["retry", "skip", "feedback", "escalate", "abort"]
    delay: float = 0.0
    feedback: dict[str, Any] | None = None


class NodePolicy:
    """The rules, as a session meets them; as they stand here, none.

    Each question raises `DecisionRejected` for no, `SessionStopped` where that ends the whole session, and
    `ApprovalNeeded` when a person has to answer it; the refusal of a node is recorded as its failure.
    """

    async def admit(self, request: ResearchRequest) -> ResearchRequest:
        """`request` as it may be run."""
        return request

    async def authorise(self, node_type: str, symbol: str, options: dict[str, Any]) -> dict[str, Any] | None:
        """Return to let the node run: nothing, or the options it has to run with instead."""
        return None

    async def review(self, node_type: str, result: dict[str, Any]) -> dict[str, Any]:
        """What a node came to, as it may stand."""
        return result

    async def waits_for(self, session_id: UUID, workspace: str) -> ApprovalNeeded | None:
        """What a session that waits was put before a person for."""
        return None

    async def is_answered(self, needed: ApprovalNeeded, workspace: str) -> bool:
        """Whether a person has decided it already, or no one will."""
        return False

    async def session_begins(self, nodes: Sequence[str]) -> None:
        """The session under way begins, or goes on, with these nodes."""

    async def node_begins(self, node_type: str, inputs: dict[str, Any]) -> None:
        """The node is given `inputs`; one that is on the record already, too."""

    async def node_ends(self, node_type: str, outputs: dict[str, Any] | None) -> None:
        """What it came to: nothing when it was skipped, None when it failed."""

    async def after_error(self, node_type: str, error: Exception) -> AfterError:
        return AfterError("abort")

    async def session_ends(self) -> None:
        return None

    async def upkeep(self) -> None:
        """Called from time to time while the desk is open."""
