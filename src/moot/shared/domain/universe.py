"""Many shares at a moment: how the bars of each stand, and how a screen of all of them leaves each."""

from dataclasses import dataclass
from datetime import date

from pydantic import BaseModel


@dataclass(frozen=True)
class Standing:
    """`newest`: the last day known of, and `suspended`: whether it was not traded then; `sessions_old`: how many have
    been held since; `too_old`: more than a judgement may rest on.
    """

    newest: date
    suspended: bool
    sessions_old: int
    too_old: bool


class Screened(BaseModel, frozen=True, allow_inf_nan=False):
    """A share as the screen leaves it; without a rank it could not be looked at, and `notes` say why.

    `scores` are the experts' own by dimension (`technical.trend`), from -1 to 1, None where nothing was marked;
    `lean` is what all rules together come to. `newest` is the day of its last bar.
    """

    symbol: str
    name: str
    rank: int | None = None
    lean: float | None = None
    scores: dict[str, float | None] = {}
    newest: date | None = None
    notes: tuple[str, ...] = ()


class Screening(BaseModel, frozen=True):
    """`shares` are in the order of their ranks, then those without one by symbol; `left_out` the experts who were
    wanted and whom no screen can ask.
    """

    shares: tuple[Screened, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def choose(self, top: int) -> list[str]:
        return [share.symbol for share in self.shares if share.rank is not None][:top]
