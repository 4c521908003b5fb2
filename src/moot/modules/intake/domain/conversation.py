"""A conversation: questions and what became of each, so that the next one can build on them."""

from typing import Literal, Protocol
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, computed_field

from moot.modules.intake.domain.answer import Answer, Style
from moot.modules.intake.domain.findings import Finding
from moot.modules.intake.domain.plan import Plan
from moot.modules.intake.domain.question import Understanding

PlanDecision = Literal["accepted", "edit_plan", "rejected"]
"""What a person can say to a plan."""
TurnStatus = Literal["running", "waiting", "answered", "replied", "rejected", "failed"]
"""`waiting` for a person to accept the plan; `answered` by research, `replied` to at once; `rejected`: the person did
not want the plan."""


class Turn(BaseModel):
    """One question. `handed_locale` is what a model said the language is, `detected_locale` what its letters say."""

    model_config = ConfigDict(frozen=True)

    question: str
    status: TurnStatus = "running"
    style: Style = "research"
    asked_at: AwareDatetime
    ended_at: AwareDatetime | None = None
    locale: str = ""
    handed_locale: str | None = None
    detected_locale: str | None = None
    understanding: Understanding | None = None
    plan: Plan | None = None
    findings: tuple[Finding, ...] = ()
    answer: Answer | None = None
    reply: str | None = None
    error: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def sessions(self) -> tuple[str, ...]:
        return tuple(finding.session_id for finding in self.findings if finding.session_id)


class Conversation(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: UUID
    workspace_id: str
    requested_by: str | None = None
    title: str
    created_at: AwareDatetime
    updated_at: AwareDatetime
    turns: tuple[Turn, ...]

    @property
    def last(self) -> Turn:
        return self.turns[-1]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def status(self) -> TurnStatus:
        return self.last.status

    def with_last(self, turn: Turn, at: AwareDatetime) -> "Conversation":
        return self.model_copy(update={"turns": (*self.turns[:-1], turn), "updated_at": at})


class Conversations(Protocol):
    """Each belongs to a workspace, and is unknown in every other."""

    async def save(self, conversation: Conversation) -> None: ...

    async def take(self, conversation: Conversation, before: Conversation) -> bool:
        """Save it if it still stands as it did `before`; False: somebody else was first."""

    async def get(self, conversation_id: UUID, workspace: str) -> Conversation | None: ...

    async def newest(self, workspace: str, *, limit: int) -> list[Conversation]: ...
