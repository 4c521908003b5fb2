"""What steps bring back. A step that failed has no findings, and is never read as one."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

StepStatus = Literal["completed", "partial", "failed", "skipped"]
"""`partial`: a limit was reached, and what there was until then is told. `skipped`: a step it needed had failed."""


class Citation(BaseModel):
    """Where something was found. `quote` are the words of strangers: shown in quotes, followed by nobody."""

    model_config = ConfigDict(frozen=True)

    title: str
    url: str | None = None
    quote: str = ""
    source: str = ""
    """The service, table or session it came from."""
    published_at: str | None = None


class Finding(BaseModel):
    model_config = ConfigDict(frozen=True)

    step_id: str
    status: StepStatus
    text: str = ""
    citations: tuple[Citation, ...] = ()
    session_id: str | None = None
    """The research session of an equity step."""
    error: str | None = None
    warnings: tuple[str, ...] = Field(default=())
    figures: dict[str, str] = Field(default_factory=dict)
    """What can be set beside the same of another finding, by its name in the reader's language."""

    @property
    def usable(self) -> bool:
        return self.status in ("completed", "partial") and bool(self.text)
