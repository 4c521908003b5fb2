"""A plan: what is to be found out, in steps that somebody can accept or change before anybody sets out."""

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
