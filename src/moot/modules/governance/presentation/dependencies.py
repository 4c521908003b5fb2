"""What the routes of governance are given: its services, who asks, and in which language the answer is read."""

import math
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import Depends, Request
from pydantic import AfterValidator

from moot.modules.governance.application.escalations import EscalationService
from moot.modules.governance.application.rulesets import RulesetService
from moot.modules.governance.container import GovernanceContainer
from moot.modules.governance.domain.decisions import DecisionLog
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.errors import Unavailable
from moot.shared.presentation.caller import Caller, Workspace
from moot.shared.presentation.errors import ErrorBody

T = TypeVar("T")
Responses = dict[int | str, dict[str, Any]]

BAD_REQUEST: Responses = {
    400: {"model": ErrorBody, "description": "this cannot be accepted; nothing changed"}
}
NOT_FOUND: Responses = {404: {"model": ErrorBody, "description": "there is no such thing in this workspace"}}
NOT_KEPT: Responses = {503: {"model": ErrorBody, "description": "nothing is stored, or the database is away"}}

LOCAL = "local"
"""Who acts on this machine, where nobody needs a key."""
DEEPEST = 50
NO_TEXT = re.compile("[\x00\ud800-\udfff]")


def governance(request: Request) -> GovernanceContainer:
    found: GovernanceContainer = request.app.state.governance
    return found


Governance = Annotated[GovernanceContainer, Depends(governance)]


def require(part: T | None) -> T:
    """What is only there where decisions are stored."""
    if part is None:
        raise Unavailable(SAY("rest.persistence_off"), code="PERSISTENCE_OFF")
    return part


def _rulesets(governance: Governance) -> RulesetService:
    return require(governance.rulesets)


def _decisions(governance: Governance) -> DecisionLog:
    return require(governance.decisions)


def _escalations(governance: Governance) -> EscalationService:
    return require(governance.escalations)


Rulesets = Annotated[RulesetService, Depends(_rulesets)]
Decisions = Annotated[DecisionLog, Depends(_decisions)]
Escalations = Annotated[EscalationService, Depends(_escalations)]


async def own_session(request: Request, workspace: Workspace) -> Callable[[UUID], Any]:
    """Whoever calls it with the id of a session learns whether that is one of the workspace; `NotFound` if not."""
    history = request.app.state.coordinator.session_history()
    return lambda session_id: history.session(session_id, workspace)


OwnSession = Annotated[Callable[[UUID], Any], Depends(own_session)]


def name_actor(name: Caller) -> str:
    return name or LOCAL


By = Annotated[str, Depends(name_actor)]
"""In whose name the rules are changed."""


def json_only(value: T) -> T:
    """Refuse what JSON proper cannot say, what no database keeps as text, and what is nested without end."""
    for flaw in _flaws(value, 1):
        raise ValueError(flaw)
    return value


def _flaws(value: Any, level: int) -> Iterator[str]:
    if level > DEEPEST:
        yield f"is nested more than {DEEPEST} deep"
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _flaws(name, level + 1)
            yield from _flaws(member, level + 1)
    elif isinstance(value, list):
        for member in value:
            yield from _flaws(member, level + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        yield "holds a number that is none"
    elif isinstance(value, str) and NO_TEXT.search(value):
        yield "holds a character that is none"


JsonObject = Annotated[dict[str, Any], AfterValidator(json_only)]
