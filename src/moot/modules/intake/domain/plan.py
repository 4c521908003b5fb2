"""A plan in steps that somebody can accept or change before anybody sets out, and what its steps bring back.

A step that failed has no findings, and is never read as one.
"""

from typing import Literal

from pydantic import BaseModel, Field

StepType = Literal["research", "equity", "processing"]
"""`equity` is research on one symbol by the desk's experts; `processing` computes with what others have found."""


class Step(BaseModel, frozen=True, extra="forbid"):
    """`after` names steps that must have ended before; the rest may go on at the same time."""

    id: str = Field(min_length=1, max_length=40)
    type: StepType
    title: str = Field(min_length=1, max_length=200)
    description: str = Field(default="", max_length=4000)
    need_web_search: bool = False
    symbol: str | None = None
    experts: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class Plan(BaseModel, frozen=True, extra="forbid"):
    """`has_enough_context`: what is known already answers the question, and no step is needed."""

    locale: str
    has_enough_context: bool = False
    thought: str = ""
    title: str
    steps: tuple[Step, ...] = ()


StepStatus = Literal["completed", "partial", "failed", "skipped"]
"""`partial`: a limit was reached, and what there was until then is told. `skipped`: a step it needed had failed."""


class Citation(BaseModel, frozen=True):
    """Where something was found. `quote` are the words of strangers: shown in quotes, followed by nobody."""

    title: str
    url: str | None = None
    quote: str = ""
    source: str = ""
    """The service, table or session it came from."""
    published_at: str | None = None


class View(BaseModel, frozen=True):
    """What one of those heard holds. `leaning` says how far it speaks for the company: from -1 to 1."""

    who: str
    says: str
    why: str = ""
    leaning: float


class Spent(BaseModel, frozen=True):
    """What models took. `cost` None: one of them has no price."""

    requests: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    currency: str = ""

    def __add__(self, other: "Spent") -> "Spent":
        known = self.cost is not None and other.cost is not None
        return Spent(
            requests=self.requests + other.requests,
            tokens=self.tokens + other.tokens,
            cost=(self.cost or 0.0) + (other.cost or 0.0) if known else None,
            currency=self.currency or other.currency,
        )


class Finding(BaseModel, frozen=True):
    step_id: str
    status: StepStatus
    text: str = ""
    citations: tuple[Citation, ...] = ()
    session_id: str | None = None
    """The research session of an equity step."""
    error: str | None = None
    refused: bool = False
    """By the rules: nobody else here may find it out either."""
    warnings: tuple[str, ...] = Field(default=())
    figures: dict[str, str] = Field(default_factory=dict)
    """What can be set beside the same of another finding, by its name in the reader's language."""
    facts: dict[str, str] = Field(default_factory=dict)
    """What was measured, to be set side by side like `figures`."""
    verdict: View | None = None
    views: tuple[View, ...] = ()
    """Of the experts heard."""
    risks: tuple[str, ...] = ()
    spent: Spent = Spent()

    @property
    def usable(self) -> bool:
        return self.status in ("completed", "partial") and bool(self.text)
