"""The text of an answer before it is dressed: what a model writes, and what each style leaves out of it."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from moot.modules.intake.domain.answer import Style
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.messages import Message
from moot.shared.domain.validation import invalid_input

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

PROBLEMS_TOLD = 5


class Said(Protocol):
    """What a model answered with, and why it stopped."""

    @property
    def content(self) -> str: ...

    @property
    def finish_reason(self) -> str | None: ...


class Draft(BaseModel):
    """The answer in the order in which it is written. `[n]` in a text cites source n."""

    model_config = ConfigDict(frozen=True)

    title: Text
    key_points: list[Text] = []
    overview: Text
    analysis: str = ""
    risks: list[Text] = []

    def parts(self) -> dict[str, str]:
        return {
            name: value if isinstance(value, str) else "\n".join(value)
            for name, value in self.model_dump().items()
        }


class Shape(NamedTuple):
    """What a style shows: how many key points at most, and whether it goes into the analysis."""

    key_points: int
    analysis: bool


SHAPES: Mapping[Style, Shape] = {
    "brief": Shape(key_points=3, analysis=False),
    "research": Shape(key_points=6, analysis=True),
    "academic": Shape(key_points=0, analysis=True),
    "news": Shape(key_points=0, analysis=True),
}


def shaped(draft: Draft, style: Style) -> Draft:
    """Without what the style leaves out. Risks are never left out."""
    shape = SHAPES[style]
    analysis = draft.analysis.strip() if shape.analysis else ""
    return draft.model_copy(update={"key_points": draft.key_points[: shape.key_points], "analysis": analysis})


def read_draft(reply: Said, style: Style) -> Draft | Message:
    """The draft in a model's reply, or what is wrong with it."""
    if reply.finish_reason == "length":
        return SAY("report.cut_off")
    text = reply.content.rpartition("</think>")[2]
    braced = text[max(text.find("{"), 0) : text.rfind("}") + 1]
    try:
        return shaped(Draft.model_validate_json(braced), style)
    except ValidationError as e:
        problems = invalid_input(e.errors(include_url=False)[:PROBLEMS_TOLD]).message
        return SAY("report.unreadable", problems=problems)
