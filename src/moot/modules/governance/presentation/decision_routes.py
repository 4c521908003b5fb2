"""How governance stands, over HTTP; and its decisions, asked for by any agent and looked back on."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID, uuid4

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field, field_validator

from moot.modules.governance.application.coordinator_agent import Decision, GovernanceStatus
from moot.modules.governance.application.decision_log import explain, make_record
from moot.modules.governance.domain.decisions import (
    DecisionFilter,
    DecisionPage,
    DecisionRecord,
    DecisionRequest,
    KnownType,
    Name,
    RecordedResult,
    ValidationStatus,
    plain,
)
from moot.modules.governance.domain.rules import RuleCategory, RuleSource
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.domain.workflow import WorkflowExecution
from moot.modules.governance.presentation.dependencies import (
    BAD_REQUEST,
    NOT_FOUND,
    NOT_KEPT,
    Decisions,
    Governance,
    JsonObject,
    Known,
    OwnSession,
)
from moot.modules.governance.presentation.rule_routes import RuleBody
from moot.shared.domain.errors import DecisionRejected, NotFound
from moot.shared.domain.messages import Locale
from moot.shared.domain.validation import Strict, refuse_field
from moot.shared.presentation.caller import Caller, Reader, Workspace
from moot.shared.presentation.errors import ErrorBody

status_router = APIRouter(prefix="/coordinator", tags=["governance"])
router = APIRouter(prefix="/coordinator", tags=["decisions"])

ANYBODY = "api"
LONGEST_GOAL = 20_000


class DecisionBody(Strict):
    """`payload` is what an agent proposes. `context` is trusted: it is for the framework around the agent to fill."""

    decision_type: KnownType = Field(examples=["tool_call"])
    payload: JsonObject
    context: Known = Field(default_factory=dict)
    decision_id: Name | None = Field(default=None, min_length=1, max_length=200)
    requester: Name | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="which agent asks; with a key: which of its own",
    )

    @field_validator("context")
    @classmethod
    def _goal_to_compare(cls, context: dict[str, Any]) -> dict[str, Any]:
        """Every word of it is compared with what is proposed."""
        if len(str(context.get("goal", ""))) > LONGEST_GOAL:
            raise refuse_field("string_too_long", "context.goal", None, max_length=LONGEST_GOAL)
        return context

    def of(self, caller: str | None, workspace: str, reader: Locale) -> DecisionRequest:
        """Whoever has a key asks in the name of that key."""
        names = [name for name in (caller, self.requester) if name]
        return DecisionRequest(
            self.decision_id or str(uuid4()),
            self.decision_type,
            self.payload,
            {"locale": reader, **self.context, "workspace": workspace},
            requester="/".join(names) or ANYBODY,
        )


class DecisionAnswer(RecordedResult):
    """`record_id` names it in the list of decisions; `escalation_id` is there when a person is asked."""

    status: ValidationStatus
    original_request: DecisionRequest
    ruleset: str
    timestamp: datetime
    explanation: str
    record_id: UUID | None = None
    escalation_id: UUID | None = None


class ExplainedDecision(DecisionRecord):
    explanation: str

    @classmethod
    def of(cls, record: DecisionRecord, reader: Locale) -> "ExplainedDecision":
        return cls(**dict(record), explanation=explain(record).in_locale(reader))


class ExplainedPage(DecisionPage):
    items: Sequence[ExplainedDecision]


DRY_RUN = Query(description="only say what the rules would: nothing is kept, and nobody is asked")


@router.post(
    "/decisions",
    summary="May an agent do this?",
    responses={
        **BAD_REQUEST,
        **NOT_KEPT,
        200: {"description": "yes; with `modified_payload` where the rules changed it"},
        202: {"model": DecisionAnswer, "description": "a person is asked; come back with the same request"},
        403: {
            "model": ErrorBody,
            "description": "no: `details` are the result; or the key has not the scope",
        },
    },
)
async def decide(
    request: Request,
    response: Response,
    body: DecisionBody,
    governance: Governance,
    workspace: Workspace,
    caller: Caller,
    reader: Reader,
    dry_run: Annotated[bool, DRY_RUN] = False,
) -> DecisionAnswer:
    """On the record before anybody acts on it. Judged in a thread: others do not wait for a long question."""
    asked, aside = body.of(caller, workspace, reader), governance.aside
    if dry_run:
        result = await governance.agent.validate(asked, workspace, aside=aside)
        record = make_record(asked, result, session_id=None, workspace=workspace)
        return _answer(Decision(result, record), reader)
    decision = await governance.agent.decide(asked, workspace=workspace, aside=aside)
    answer = _answer(decision, reader, record_id=decision.record.id if governance.decisions else None)
    if decision.escalation is not None:
        response.status_code = 202
        place = request.app.url_path_for("escalation", escalation_id=str(decision.escalation.id))
        response.headers["Location"] = str(place)
    elif not decision.may_proceed:
        raise DecisionRejected(explain(decision.record), **answer.model_dump(mode="json"))
    return answer


@router.get("/decisions", summary="List decisions, newest first", responses=BAD_REQUEST | NOT_KEPT)
async def decisions(
    kept: Decisions, workspace: Workspace, reader: Reader, asked: Annotated[DecisionFilter, Query()]
) -> ExplainedPage:
    page = await kept.page(workspace, asked)
    items = [ExplainedDecision.of(record, reader) for record in page.items]
    return ExplainedPage(**dict(page) | {"items": items})


@router.get(
    "/research/sessions/{session_id}/decisions",
    tags=["sessions"],
    summary="Every decision of a session, in order, each explained in a sentence",
    responses=BAD_REQUEST | NOT_FOUND | NOT_KEPT,
)
async def decisions_of_session(
    session_id: str, kept: Decisions, workspace: Workspace, reader: Reader, own_session: OwnSession
) -> list[ExplainedDecision]:
    session = await own_session(session_id)
    return [ExplainedDecision.of(record, reader) for record in await kept.of_session(session.id, workspace)]


def _answer(decision: Decision, reader: Locale, record_id: UUID | None = None) -> DecisionAnswer:
    known = plain(asdict(decision.result)) | {"tools_digest": decision.record.result.tools_digest}
    return DecisionAnswer(
        **known,
        explanation=explain(decision.record).in_locale(reader),
        record_id=record_id,
        escalation_id=decision.escalation.id if decision.escalation else None,
    )


class RulesInForce(BaseModel):
    """`ruleset` is null where nothing is stored."""

    ruleset: int | None
    digest: str
    rules: list[RuleBody]


class RuleQuery(Strict):
    category: RuleCategory | None = None
    source: RuleSource | None = None
    enabled: bool | None = None


@status_router.get("/status", summary="Decisions so far, workflows under way, circuit breakers")
async def status(governance: Governance, workspace: Workspace, reader: Reader) -> GovernanceStatus:
    return await governance.agent.status(workspace, reader)


@status_router.get(
    "/rules", summary="The rules in force, in the order of their priority", responses=BAD_REQUEST
)
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


@status_router.get(
    "/workflow/{workflow_id}/context",
    summary="How far a workflow is, node by node; its id is that of its session",
    responses=BAD_REQUEST | NOT_FOUND | NOT_KEPT,
)
async def workflow_context(
    workflow_id: UUID, governance: Governance, own_session: OwnSession
) -> WorkflowExecution:
    await own_session(str(workflow_id))
    found = await governance.agent.monitor.context_of(str(workflow_id))
    if found is None:
        said: dict[str, Any] = {"workflow_id": str(workflow_id)}
        raise NotFound(SAY("rest.no_such_workflow", **said), code="WORKFLOW_NOT_FOUND", **said)
    return found
