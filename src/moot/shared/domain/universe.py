"""How the bars of one of many shares stand at a moment."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Standing:
    """`newest`: the last day known of, and `suspended`: whether it was not traded then; `sessions_old`: how many have
    been held since; `too_old`: more than a judgement may rest on.
    """

    newest: date
    suspended: bool
    sessions_old: int
    too_old: bool
