"""What a screen tells of many shares at a moment: a ranked table, and those that could not be ranked."""

from datetime import date
from typing import Literal

from pydantic import AwareDatetime, BaseModel

from moot.shared.domain.claims import Horizon

Status = Literal["ranked", "suspended", "too_old", "too_little", "no_data", "damaged", "not_listed"]


class ScreenedShare(BaseModel, frozen=True, allow_inf_nan=False):
    """`scores` are the expert's own by dimension (`technical.trend`), from -1 to 1, None where nothing was marked;
    `lean` is what all rules together come to by the weights of the debate, before they answer each other. `newest` is
    the day of its last bar, `missing` are the rules that had no data; `notes` say it in words.
    """

    symbol: str
    name: str
    status: Status
    rank: int | None = None
    lean: float | None = None
    scores: dict[str, float | None] = {}
    newest: date | None = None
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Screen(BaseModel, frozen=True):
    """`shares` are in the order of their ranks, then those without one by symbol. `covered` are the rules asked,
    `left_out` the experts, or the dimensions, that were wanted and that no screen can ask. `weights` is the version
    of the table.
    """

    as_of: AwareDatetime
    horizon: Horizon
    weights: str
    shares: tuple[ScreenedShare, ...]
    covered: tuple[str, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...] = ()
