"""The written answer to a question."""

from typing import Literal

from pydantic import BaseModel, Field

from moot.modules.intake.domain.findings import Citation

Style = Literal["brief", "research", "academic", "news"]


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
