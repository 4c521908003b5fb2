"""A conversation: questions and what became of each, so that the next one can build on them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID, uuid4

from pydantic import AwareDatetime, BaseModel, Field, computed_field

from moot.modules.intake.domain.question import Citation, Finding, Plan, Spent, Step, Understanding
from moot.shared.domain.ids import ALL_IDS
from moot.shared.domain.leases import Lease, Leases, Loss, Taken

Style = Literal["brief", "research", "academic", "news"]
PlanDecision = Literal["accepted", "edit_plan", "rejected"]
"""What a person can say to a plan."""
TurnStatus = Literal["running", "waiting", "answered", "nothing_found", "replied", "rejected", "failed"]
"""`waiting` for a person to accept the plan; `answered` by research, or `nothing_found` by it; `replied` to at once;
`rejected`: the person did not want the plan."""
SHORTEST = timedelta(microseconds=1)
"""What every database can tell apart."""


class Section(BaseModel, frozen=True):
    heading: str
    text: str


class Answer(BaseModel, frozen=True):
    """`engine` says who wrote it: a model, or the desk's rules. `markdown` is all of it, ready to read."""

    locale: str
    style: Style
    title: str
    key_points: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    """Overview, analysis, risks; what the style leaves out is not there."""
    citations: tuple[Citation, ...] = ()
    engine: Literal["llm", "rules"]
    disclaimer: str
    warnings: tuple[str, ...] = Field(default=())
    markdown: str


class StepProgress(NamedTuple):
    """How far a step is: as it ended, `running`, or `waiting` for others or for a person."""

    step: Step
    finding: Finding | None
    status: str


class Turn(BaseModel, frozen=True):
    """One question. `handed_locale` is what a model said the language is, `detected_locale` what its letters say.

    What is done for it is on the record under its `id`. `left`: whoever ran it has stopped before its end.
    `escalation_id`: the rules want somebody to approve its plan first. `estimate` is what models
    may take for the plan, and `spent` what they took beside its experts' sessions.
    """

    id: UUID = Field(default_factory=uuid4)
    question: str
    status: TurnStatus = "running"
    left: bool = False
    style: Style = "research"
    asked_at: AwareDatetime
    ended_at: AwareDatetime | None = None
    locale: str = ""
    handed_locale: str | None = None
    detected_locale: str | None = None
    understanding: Understanding | None = None
    plan: Plan | None = None
    estimate: Spent | None = None
    escalation_id: str | None = None
    findings: tuple[Finding, ...] = ()
    spent: Spent = Spent()
    answer: Answer | None = None
    reply: str | None = None
    error: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def sessions(self) -> tuple[str, ...]:
        return tuple(finding.session_id for finding in self.findings if finding.session_id)

    @property
    def progress(self) -> list[StepProgress]:
        """By what is stored, so that every process tells the same; a step that failed is known at the end."""
        found = {finding.step_id: finding for finding in self.findings}
        told = []
        for step in self.plan.steps if self.plan else ():
            at_work = self.status == "running" and not self.left and all(name in found for name in step.after)
            otherwise = "running" if at_work else "waiting"
            finding = found.get(step.id)
            told.append(StepProgress(step, finding, finding.status if finding else otherwise))
        return told


class Conversation(BaseModel, frozen=True):
    """`updated_at` is later after every change."""

    id: UUID
    workspace_id: str
    requested_by: str | None = None
    title: str
    created_at: AwareDatetime
    updated_at: AwareDatetime
    turns: tuple[Turn, ...]
    # Who reads it learns who held it then; it is stored by whoever holds it, and shown to nobody.
    lease_token: int = Field(default=0, exclude=True, repr=False)
    lease_expires_at: AwareDatetime | None = Field(default=None, exclude=True, repr=False)

    @property
    def last(self) -> Turn:
        return self.turns[-1]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def status(self) -> TurnStatus:
        return self.last.status

    def is_left(self, now: datetime) -> bool:
        """Whoever ran its last turn has stopped, or died, and somebody may go on with it."""
        late = self.lease_expires_at is not None and self.lease_expires_at <= now
        return self.status == "running" and (self.last.left or late)

    def with_last(self, turn: Turn, at: AwareDatetime) -> "Conversation":
        later = max(at, self.updated_at + SHORTEST)
        return self.model_copy(update={"turns": (*self.turns[:-1], turn), "updated_at": later})


class Conversations(Leases):
    """Each belongs to a workspace, and is unknown in every other; whoever works on a turn holds its lease.

    These here are for a desk that keeps nothing: gone with it, and nobody else's.
    """

    lasting = False
    """Whether they, and the record of what was done for them, outlive the process."""

    def __init__(self) -> None:
        self._kept: dict[UUID, Conversation] = {}
        self._held: set[UUID] = set()

    async def add(self, conversation: Conversation, lease: Lease) -> None:
        self._held.add(conversation.id)
        await self.save(conversation, lease.token)

    async def save(self, conversation: Conversation, token: int, *, release: bool = False) -> bool:
        """As whoever has this token leaves it; False: somebody else has taken it over. `release` ends the lease."""
        self._kept[conversation.id] = conversation.model_copy(update={"lease_token": token})
        if release:
            self._held.discard(conversation.id)
        return True

    async def get(self, conversation_id: UUID, workspace: str) -> Conversation | None:
        found = self._kept.get(conversation_id)
        return found if found and found.workspace_id == workspace else None

    async def newest(
        self, workspace: str, *, limit: int = 20, between: Sequence[UUID] = ALL_IDS
    ) -> list[Conversation]:
        """Those whose id is one of these, or between them."""
        named = (kept for kept in self._kept.values() if between[0] <= kept.id <= between[1])
        mine = [kept for kept in named if kept.workspace_id == workspace]
        return sorted(mine, key=lambda kept: kept.updated_at, reverse=True)[:limit]

    async def acquire(self, row_id: UUID, owner: str, now: datetime, until: datetime) -> Taken | None:
        if row_id in self._held:
            return None
        self._held.add(row_id)
        return Taken(Lease(owner, self._kept[row_id].lease_token + 1, until), False)

    async def renew(self, owner: str, rows: Sequence[UUID], until: datetime) -> dict[UUID, Loss]:
        return {}

    async def release(self, owner: str, now: datetime) -> None:
        self._held.clear()
