"""How governance stands, over HTTP; its decisions, asked for by any agent and looked back on; and what of them waits
for a person, with their answer.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID, uuid4

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field, field_validator

from moot.modules.governance.application.coordinator_agent import Decision, GovernanceStatus
from moot.modules.governance.application.decision_log import explain, make_record
from moot.modules.governance.application.facts import check_context
from moot.modules.governance.domain.decisions import (
    DecisionFilter,
    DecisionPage,
    DecisionRecord,
    DecisionRequest,
    KnownType,
    RecordedResult,
    ValidationStatus,
    plain,
)
from moot.modules.governance.domain.escalations import Escalation, EscalationPage, Wanted
from moot.modules.governance.domain.rules import RuleCategory, RuleSource
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.domain.workflow import WorkflowExecution
from moot.modules.governance.presentation.dependencies import (
    BAD_REQUEST,
    LOCAL,
    NOT_KEPT,
    NOT_THERE,
    Decisions,
    Escalations,
    Governance,
    JsonObject,
    Known,
    OwnSession,
)
from moot.modules.governance.presentation.rule_routes import RuleBody
from moot.shared.domain.errors import DecisionRejected, InvalidInput, NotFound
from moot.shared.domain.ids import LAST_PAGE, MOST_PER_PAGE
from moot.shared.domain.messages import Locale
from moot.shared.domain.validation import Name, Strict, refuse_field
from moot.shared.presentation.caller import Caller, Reader, Workspace
from moot.shared.presentation.errors import refusals

status_router = APIRouter(prefix="/coordinator", tags=["governance"])
router = APIRouter(prefix="/coordinator", tags=["decisions"])
escalation_router = APIRouter(prefix="/coordinator/escalations", tags=["escalations"])

ANYBODY = "api"
LONGEST_GOAL = 20_000
Who = Annotated[Name, Field(min_length=1, max_length=100)]


class DecisionBody(Strict):
    """`payload` is what an agent proposes. `context` is trusted: it is for the framework around the agent to fill."""

    decision_type: KnownType = Field(examples=["tool_call"])
    payload: JsonObject
    context: Known = Field(default_factory=dict)
    decision_id: Name | None = Field(default=None, min_length=1, max_length=200)
    requester: Who | None = Field(default=None, description="which agent asks; with a key: which of its own")

    @field_validator("context")
    @classmethod
    def _goal_to_compare(cls, context: dict[str, Any]) -> dict[str, Any]:
        """Every word of it is compared with what is proposed."""
        if len(str(context.get("goal", ""))) > LONGEST_GOAL:
            raise refuse_field("string_too_long", "context.goal", None, max_length=LONGEST_GOAL)
        return check_context(context)

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
        **refusals({403: "no: `details` are the result; or the key has not the scope"}),
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
    answer = _answer(decision, reader, record_id=decision.record.id if governance.decisions.lasting else None)
    if decision.escalation is not None:
        response.status_code = 202
        place = request.app.url_path_for("escalation", escalation_id=str(decision.escalation.id))
        response.headers["Location"] = str(place)
    elif not decision.result.may_proceed:
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
    responses=NOT_THERE,
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
    responses=NOT_THERE,
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


ANSWERED = NOT_THERE | refusals(
    {
        403: "who asked cannot answer; or the rules do not allow the edit",
        409: "somebody was quicker, or nobody was quick enough",
    }
)


class Listed(Strict):
    status: Wanted = Field(default="pending", description="`decided`: all that wait no more; `all`: all")
    page: int = Field(default=1, ge=1, le=LAST_PAGE)
    page_size: int = Field(default=20, ge=1, le=MOST_PER_PAGE)


class AnswerBody(Strict):
    reason: str = Field(min_length=1, max_length=2000)
    by: Who | None = Field(default=None, description="who decides, where no key says so; `local` by default")


class EditBody(AnswerBody):
    payload: JsonObject


@escalation_router.get(
    "", summary="List what waits for a person, oldest first", responses=BAD_REQUEST | NOT_KEPT
)
async def escalations(
    waiting: Escalations, workspace: Workspace, asked: Annotated[Listed, Query()]
) -> EscalationPage:
    """Or, by `status`, what was decided, the newest first."""
    return await waiting.list_waiting(workspace, asked.status, page=asked.page, page_size=asked.page_size)


@escalation_router.get("/{escalation_id}", summary="One of them", responses=NOT_THERE)
async def escalation(escalation_id: UUID, waiting: Escalations, workspace: Workspace) -> Escalation:
    return await waiting.get(escalation_id, workspace)


def sign(body: AnswerBody, caller: Caller) -> dict[str, str]:
    """By the holder of the key, if there is one."""
    if caller is not None and body.by not in (None, caller):
        raise InvalidInput(SAY("rest.by_is_the_key", by=body.by, name=caller))
    return {"by": caller or body.by or LOCAL, "reason": body.reason}


@escalation_router.post("/{escalation_id}/approve", summary="Let it be done, once", responses=ANSWERED)
async def approve(
    escalation_id: UUID, body: AnswerBody, waiting: Escalations, workspace: Workspace, caller: Caller
) -> Escalation:
    return await waiting.approve(escalation_id, workspace, **sign(body, caller))


@escalation_router.post("/{escalation_id}/reject", summary="Let it not be done", responses=ANSWERED)
async def reject(
    escalation_id: UUID, body: AnswerBody, waiting: Escalations, workspace: Workspace, caller: Caller
) -> Escalation:
    return await waiting.reject(escalation_id, workspace, **sign(body, caller))


@escalation_router.post(
    "/{escalation_id}/edit", summary="Let something else be done, once", responses=ANSWERED
)
async def edit(
    escalation_id: UUID, body: EditBody, waiting: Escalations, workspace: Workspace, caller: Caller
) -> Escalation:
    """The rules have a say in it; only what needs a person is taken as settled."""
    return await waiting.edit(escalation_id, workspace, payload=body.payload, **sign(body, caller))
