"""What the routes of governance are given: its services, who asks, and in which language the answer is read."""

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from pydantic import AfterValidator

from moot.modules.governance.application.escalations import EscalationService
from moot.modules.governance.application.rulesets import RulesetService
from moot.modules.governance.container import GovernanceContainer
from moot.modules.governance.domain.decisions import DecisionLog, NothingKept
from moot.shared.domain.validation import refuse
from moot.shared.presentation.caller import Caller, Workspace
from moot.shared.presentation.errors import refusals

T = TypeVar("T")

BAD_REQUEST = refusals({400: "this cannot be accepted; nothing changed"})
NOT_FOUND = refusals({404: "there is no such thing in this workspace"})
NOT_KEPT = refusals({503: "nothing is stored, or the database is away"})
NOT_THERE = BAD_REQUEST | NOT_FOUND | NOT_KEPT
"""What may come of a question about one thing that is stored."""

LOCAL = "local"
"""Who acts on this machine, where nobody needs a key."""
DEEPEST = 50
MOST_PROPOSED, MOST_KNOWN = 2_000, 20_000
"""Values in what an agent proposes, and in what the framework around it knows: tools have long schemas."""
NO_TEXT = re.compile("[\x00\ud800-\udfff]")


def governance(request: Request) -> GovernanceContainer:
    found: GovernanceContainer = request.app.state.governance
    return found


Governance = Annotated[GovernanceContainer, Depends(governance)]


def _require(name: str) -> Callable[[Any], Any]:
    """A part of governance that is only there where decisions are stored."""

    def find(governance: Governance) -> Any:
        if not governance.decisions.lasting:
            raise NothingKept
        return getattr(governance, name)

    return find


Rulesets = Annotated[RulesetService, Depends(_require("rulesets"))]
Decisions = Annotated[DecisionLog, Depends(_require("decisions"))]
Escalations = Annotated[EscalationService, Depends(_require("escalations"))]


async def own_session(request: Request, workspace: Workspace) -> Callable[[str], Any]:
    """Whoever calls it with what a path calls a session gets that of the workspace; `NotFound` if there is none."""
    history = request.app.state.coordinator.session_history()

    async def find(text: str) -> Any:
        return await history.session(await history.find(text, workspace), workspace)

    return find


OwnSession = Annotated[Callable[[str], Any], Depends(own_session)]


def name_actor(name: Caller) -> str:
    return name or LOCAL


By = Annotated[str, Depends(name_actor)]
"""In whose name the rules are changed."""


def json_only(value: T, most: int = MOST_KNOWN) -> T:
    """Refuse what JSON proper cannot say, what no database keeps as text, and what has no end."""
    left: list[tuple[Any, int]] = [(value, 1)]
    seen = 0
    while left:
        each, level = left.pop()
        seen += 1
        if level > DEEPEST:
            raise refuse("too_deep", got=f"> {DEEPEST}", allowed=[f"depth <= {DEEPEST}"])
        if seen + len(left) > most:
            raise refuse("too_many_values", got=f"> {most}", allowed=[f"values <= {most}"])
        if isinstance(each, dict):
            left += [(member, level + 1) for pair in each.items() for member in pair]
        elif isinstance(each, list):
            left += [(member, level + 1) for member in each]
        elif isinstance(each, float) and not math.isfinite(each):
            raise refuse("no_number", got=str(each))
        elif isinstance(each, str) and (odd := NO_TEXT.search(each)):
            raise refuse("no_text", got=f"U+{ord(odd[0]):04X}")
    return value


JsonObject = Annotated[dict[str, Any], AfterValidator(partial(json_only, most=MOST_PROPOSED))]
Known = Annotated[dict[str, Any], AfterValidator(json_only)]
