"""Contesting a verdict: what it would be if a claim were struck, weighed otherwise, or answered.

The argument on record is weighed again and ruled on by the rules; no model is asked. What comes of it is a session of
its own, a what-if.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, Field

from moot.modules.coordinator.application.results import notices, past_result, request_what_if
from moot.modules.coordinator.application.sessions import Sessions
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.domain.exceptions import NothingToContest
from moot.modules.coordinator.domain.model.session import Past, VerdictAction, VerdictStatus
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.claims import Move
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.experts import Direction
from moot.shared.domain.messages import Locale, nearest
from moot.shared.domain.validation import Strict, validate

__all__ = ["Move", "NothingToContest"]

Reweigh = Callable[[Mapping[str, Any], Sequence[Move], Locale], dict[str, Any]]
"""The outcome of a debate as it is after these moves: debate, as the coordinator sees it here."""
Argument = Mapping[str, Any]
MOST_MOVES = 50
LOOSELY = 0.5
"""How alike a claim's id has to be to be named as what may have been meant."""
STILL = 1e-9


class ContestBody(Strict):
    """A claim may be named by the beginning of its id, if only one begins so."""

    moves: Annotated[list[Move], Field(min_length=1, max_length=MOST_MOVES)] = Field(
        examples=[[{"move": "strike", "claim": "technical.rsi"}]],
        description="strike a claim, give it another strength, or add one that attacks or supports it",
    )


class Standing(BaseModel, frozen=True):
    """Where a case stands: how far the motion to buy holds, and what was ruled; `action` None: nothing was."""

    session_id: UUID
    motion: float
    direction: Direction
    verdict_status: VerdictStatus | None
    action: VerdictAction | None = None
    confidence: float | None = None
    position_percent: float | None = None


class Shift(BaseModel, frozen=True):
    """Of a claim how strong it ended up, of a dimension how far it pulls; None where it is not there."""

    id: str
    says: str
    before: float | None
    after: float | None

    @property
    def size(self) -> float:
        return abs((self.after or 0.0) - (self.before or 0.0))


class ContestResult(BaseModel, frozen=True):
    """What moved, and by how much, what moved most first. `after.session_id` is the what-if; its whole answer is
    that session's."""

    symbol: str
    moves: list[Move]
    before: Standing
    after: Standing
    dimensions: list[Shift]
    claims: list[Shift]
    reason: str | None = None
    locale: Locale
    notices: list[str]


class ContestService:
    def __init__(self, sessions: Sessions, repository: IResearchSessionRepository, reweigh: Reweigh) -> None:
        self._sessions, self._repository, self._reweigh = sessions, repository, reweigh

    async def contest(
        self,
        session_id: UUID,
        moves: Sequence[Move | Mapping[str, Any]],
        *,
        workspace: str,
        requested_by: str | None = None,
    ) -> ContestResult:
        """Raises `SessionNotFound`, `SessionRunning`, `NothingToContest`, or `InvalidInput` for a move that cannot be
        made, before anything starts.
        """
        asked = validate(ContestBody, {"moves": list(moves)})
        past = await self._repository.past_session(session_id, workspace)
        before = _require_argued(past)
        debate = _debate_of(before)
        meant = list(_name_claims(asked.moves, debate["argument"]))
        moved = self._reweigh(debate, meant, past.session.locale)
        request = request_what_if(past, meant, moved).model_copy(update={"requested_by": requested_by})
        return _compare(before, await self._sessions.answer(request), meant)

    async def recall(self, session_id: UUID, workspace: str) -> ContestResult:
        """What a what-if came to, from its record; `NothingToContest` of a session that contests none."""
        now = await self._repository.past_session(session_id, workspace)
        parent, moves = now.session.parent_session_id, now.session.contest
        result = past_result(*now, (), "")
        if parent is None or not moves or not result.debate_outcome:
            raise NothingToContest(session_id)
        before = _require_argued(await self._repository.past_session(parent, workspace))
        return _compare(before, result, moves)


def _require_argued(past: Past) -> ResearchResult:
    result = past_result(*past, (), "")
    if not _debate_of(result).get("argument"):
        raise NothingToContest(past.session.id)
    return result


def _debate_of(result: ResearchResult) -> Mapping[str, Any]:
    return result.debate_outcome or {}


def _name_claims(moves: Iterable[Move], argument: Argument) -> Iterator[Move]:
    """The moves with whole ids. What is struck cannot be contested any further."""
    standing = [claim["id"] for claim in argument["claims"]]
    for move in moves:
        named = _find_claim(move.claim, standing)
        if move.move == "strike":
            standing.remove(named)
        yield move.model_copy(update={"claim": named})


def _find_claim(text: str, ids: Sequence[str]) -> str:
    wanted = text.strip().lower()
    begun = [id_ for id_ in ids if id_ == wanted] or [id_ for id_ in ids if id_.startswith(wanted)]
    if len(begun) == 1:
        return begun[0]
    near = begun or nearest(wanted, ids, LOOSELY) or list(ids)
    key = "contest.ambiguous" if begun else "contest.unknown"
    raise InvalidInput(SAY(key, claim=text, near=near), code="CLAIM_NOT_FOUND", claim=text, nearest=near)


def _stand(result: ResearchResult) -> Standing:
    debate = _debate_of(result)
    verdict: Mapping[str, Any] = result.verdict or {}
    return Standing(
        session_id=UUID(result.session_id),
        motion=debate["argument"]["motion"],
        direction=debate["direction"],
        verdict_status=result.verdict_status,
        **{name: verdict.get(name) for name in ("action", "confidence", "position_percent")},
    )


def _compare(before: ResearchResult, result: ResearchResult, moves: list[Move]) -> ContestResult:
    then, now = _debate_of(before)["argument"], _debate_of(result)["argument"]
    claims = {claim["id"]: claim["says"] for claim in (*then["claims"], *now["claims"])}
    says = {id_: text.get(result.locale) or next(iter(text.values())) for id_, text in claims.items()}
    places = {*then["dimensions"], *now["dimensions"]}
    named = {place: SAY(f"dimension.{place}").in_locale(result.locale) for place in places}
    return ContestResult(
        symbol=result.symbol,
        moves=moves,
        before=_stand(before),
        after=_stand(result),
        dimensions=_shifts(then["dimensions"], now["dimensions"], named),
        claims=_shifts(then["strengths"], now["strengths"], says),
        reason=result.reason,
        locale=result.locale,
        notices=notices(result.symbol, result.locale),
    )


def _shifts(then: Mapping[str, float], now: Mapping[str, float], says: Mapping[str, str]) -> list[Shift]:
    every = [Shift(id=id_, says=text, before=then.get(id_), after=now.get(id_)) for id_, text in says.items()]
    moved = [s for s in every if s.size > STILL or (s.before is None) is not (s.after is None)]
    return sorted(moved, key=lambda shift: (-shift.size, shift.id))
