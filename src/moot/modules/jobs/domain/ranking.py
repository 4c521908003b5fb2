"""Who stands where in a batch: by the verdict for those that were judged, by the screen for the rest."""

from collections.abc import Sequence

from moot.modules.jobs.domain.batches import (
    Answer,
    Batch,
    Before,
    Ranked,
    Ruled,
    State,
)
from moot.shared.domain.universe import Screened, Screening


def name_state(answer: Answer, batch: Batch) -> State:
    """What was left when the money was spent is not what somebody cancelled."""
    return "unpaid" if answer.state == "cancelled" and batch.over_limit else answer.state


def rank(screening: Screening, answers: Sequence[Answer], batch: Batch) -> list[Ranked]:
    """Judged shares first, those that lean most towards buying at the top; then the others as the screen has them; at
    the end those that it could not look at."""
    by_symbol = {answer.symbol: answer for answer in answers}
    rows = [_row(share, by_symbol.get(share.symbol), batch) for share in screening.shares]
    judged = sorted((row for row in rows if row.basis == "verdict"), key=_verdict_first)
    others = [row for row in rows if row.basis == "screen"]
    placed = [row.model_copy(update={"rank": place}) for place, row in enumerate([*judged, *others], 1)]
    return [*placed, *(row for row in rows if row.basis is None)]


def _verdict_first(row: Ranked) -> tuple[float, float, str]:
    return -(row.lean or 0.0), -(row.screen_lean or 0.0), row.symbol


def _row(share: Screened, answer: Answer | None, batch: Batch) -> Ranked:
    state: State = name_state(answer, batch) if answer else "screened" if share.rank else "set_aside"
    looked_at = "screen" if share.rank else None
    told = answer.model_dump(include=TOLD_OF_ANSWER) if answer else {}
    return Ranked(
        rank=None,
        symbol=share.symbol,
        name=share.name,
        basis="verdict" if state == "judged" else looked_at,
        state=state,
        screen_rank=share.rank,
        screen_lean=share.lean,
        scores=share.scores,
        data_until=share.newest,
        note=(answer and answer.reason) or " ".join(share.notes),
        **told,
    )


TOLD_OF_ANSWER = {*Ruled.model_fields, "cost", "session_id"} - {"state"}


def compare(rows: Sequence[Ranked], before: Sequence[Ranked]) -> tuple[list[Ranked], list[str]]:
    """Each with where it stood the last time; and who is not there any more."""
    then = {row.symbol: Before(rank=row.rank, action=row.action, lean=row.lean) for row in before}
    now = {row.symbol for row in rows}
    compared = [row.model_copy(update={"before": then.get(row.symbol)}) for row in rows]
    return compared, [row.symbol for row in before if row.symbol not in now]
