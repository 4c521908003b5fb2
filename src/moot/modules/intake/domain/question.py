"""A question: what somebody wants, the plan that they can accept or change, and what its steps bring back.

A step that failed has no findings, and is never read as one.
"""

from collections.abc import Collection
from datetime import date
from typing import Literal

from pydantic import BaseModel, Field

from moot.shared.domain.brief import Usage
from moot.shared.domain.messages import Locale

Intent = Literal["equity", "research", "unclear"]
"""`equity` is about companies somebody names, `research` about anything else that a model would have found out.
`unclear` is answered at once: which company is meant, or what can be asked."""

Tongue = Literal["zh-CN", "en-US", "ja-JP", "ko-KR"]
"""What a question is recognised to be written in. An answer may be in any language that a model hands over."""


class Mention(BaseModel, frozen=True):
    """Words of a question that name a company, and which it may be: one is certain, several ask back."""

    text: str
    symbols: tuple[str, ...]
    names: tuple[str, ...] = ()
    """What the companies are called, in the order of `symbols`."""
    names_en: tuple[str, ...] = ()
    """The same in English; empty where the directory has no English name."""
    delisted_on: date | None = None

    @property
    def certain(self) -> bool:
        return len(self.symbols) == 1

    @property
    def researchable(self) -> bool:
        return self.certain and self.delisted_on is None

    def name_for(self, reader: Locale) -> str:
        """What the company is called in the reader's language, or else at home; nothing where it has no name."""
        english = "" if reader == "zh-CN" else "".join(self.names_en[:1])
        return english or "".join(self.names[:1])

    def narrow(self, symbols: Collection[str]) -> "Mention":
        """The one of several companies that is among these; as it was, where none or more than one is."""
        meant = [place for place, symbol in enumerate(self.symbols) if symbol in symbols]
        if self.certain or len(meant) != 1:
            return self
        kept = {
            field: getattr(self, field)[meant[0] : meant[0] + 1] for field in ("symbols", "names", "names_en")
        }
        return self.model_copy(update=kept)


class Understanding(BaseModel, frozen=True):
    """`by` says who understood it: a model, or the rules that work without one."""

    intent: Intent
    locale: str
    title: str
    mentions: tuple[Mention, ...] = ()
    aspects: tuple[str, ...] = ()
    """Experts whose field the question names, as the research graph spells them; none: all of them."""
    follows: bool = False
    """It names no company itself: they are those of the question before."""
    reply: str | None = None
    """What is said at once, where there is nothing to research."""
    notes: tuple[str, ...] = ()
    """What whoever sees the plan has to know of the companies: that one is gone, or not covered here."""
    by: Literal["model", "rules"] = "rules"

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(mention.symbols[0] for mention in self.mentions if mention.researchable))

    @property
    def ambiguous(self) -> tuple[Mention, ...]:
        return tuple(mention for mention in self.mentions if not mention.certain)


class Limits(BaseModel, frozen=True):
    """How far a question may be taken. What a request leaves out has the value that is meant here, never zero."""

    max_plan_iterations: int = Field(default=1, ge=1, le=5)
    max_step_num: int = Field(default=3, ge=1, le=10)
    max_tool_calls: int = Field(default=8, ge=1, le=40)
    """Of one research step."""
    max_search_results: int = Field(default=5, ge=1, le=20)
    steps_at_once: int = Field(default=3, ge=1, le=10)
    step_timeout: float = Field(default=180.0, gt=0, le=900.0)


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


class Spent(Usage):
    """What models took. `cost` None: one of them has no price."""

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
