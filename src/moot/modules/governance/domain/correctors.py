"""What a rule may change in a decision so that it is no longer broken. What they do: `application.corrections`."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from moot.shared.domain.validation import Strict, refuse

Path = Annotated[str, Field(pattern=r"^payload(\.[A-Za-z0-9_-]+)+$")]
"""A field as a condition names it: `payload.args.limit`."""


class Mask(Strict):
    """Replaces the values of these fields, wherever they are below `path`, by `replacement`."""

    kind: Literal["mask"]
    path: Path | None = None
    fields: tuple[str, ...] = Field(min_length=1)
    replacement: str = "***"


class Drop(Strict):
    """Takes fields out: keys of these names below `path`, or members of a list at `path` that are called so."""

    kind: Literal["drop"]
    path: Path | None = None
    fields: tuple[str, ...] = Field(min_length=1)


class Clamp(Strict):
    """Brings a number into its bounds."""

    kind: Literal["clamp"]
    path: Path
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _has_a_bound(self) -> "Clamp":
        if self.at_least is None and self.at_most is None:
            raise refuse("no_bound")
        return self


class SetValue(Strict):
    """Puts a value in the place of whatever is there."""

    kind: Literal["set"]
    path: Path
    value: Any


class RewriteSql(Strict):
    """Rewrites the statement at `path`: columns masked or left out, a limit, a time filter, `*` spelt out."""

    kind: Literal["sql"]
    path: Path
    mask: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    limit: int | None = Field(default=None, ge=1)
    time_column: str | None = None
    since: str | None = None
    """ISO date or time; with `until`, what `time_column` must lie between (since included, until not)."""
    until: str | None = None


Corrector = Annotated[Mask | Drop | Clamp | SetValue | RewriteSql, Field(discriminator="kind")]
