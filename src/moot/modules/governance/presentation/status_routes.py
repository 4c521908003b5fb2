"""How governance stands: what was decided, by which rules, and how far a workflow is."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel

from moot.modules.governance.application.coordinator_agent import GovernanceStatus
from moot.modules.governance.domain.rules import RuleCategory, RuleSource
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.domain.workflow import WorkflowExecution
from moot.modules.governance.presentation.asking import (
    BAD_REQUEST,
    NOT_FOUND,
    NOT_KEPT,
    Governance,
    OwnSession,
)
from moot.modules.governance.presentation.rule_routes import RuleBody
from moot.shared.domain.errors import NotFound
from moot.shared.domain.validation import Strict
from moot.shared.presentation.caller import Workspace

router = APIRouter(prefix="/coordinator", tags=["governance"])


class RulesInForce(BaseModel):
    """`ruleset` is null where nothing is stored."""

    ruleset: int | None
    digest: str
    rules: list[RuleBody]


class RuleQuery(Strict):
    category: RuleCategory | None = None
    source: RuleSource | None = None
    enabled: bool | None = None


@router.get("/status", summary="Decisions so far, workflows under way, circuit breakers")
async def status(governance: Governance, workspace: Workspace) -> GovernanceStatus:
    return await governance.agent.status(workspace)


@router.get("/rules", summary="The rules in force, in the order of their priority", responses=BAD_REQUEST)
async def rules(
    governance: Governance, workspace: Workspace, asked: Annotated[RuleQuery, Query()]
) -> RulesInForce:
    active = await governance.in_force(workspace)
    wanted = asked.model_dump(exclude_none=True)
    found = [
        RuleBody.of(rule)
        for rule in active.rules
        if all(getattr(rule, name) == value for name, value in wanted.items())
    ]
    return RulesInForce(ruleset=active.number, digest=active.digest, rules=found)


@router.get(
    "/workflow/{workflow_id}/context",
    summary="How far a workflow is, node by node; its id is that of its session",
    responses=BAD_REQUEST | NOT_FOUND | NOT_KEPT,
)
async def workflow_context(
    workflow_id: UUID, governance: Governance, own_session: OwnSession
) -> WorkflowExecution:
    await own_session(workflow_id)
    found = await governance.agent.monitor.context_of(str(workflow_id))
    if found is None:
        said: dict[str, Any] = {"workflow_id": str(workflow_id)}
        raise NotFound(SAY("rest.no_such_workflow", **said), code="WORKFLOW_NOT_FOUND", **said)
    return found
