"""How well an action serves a goal: a score, and what to say when it does not.

The words decide: concepts that both languages share, and acts nobody asked for. Who knows more, embeddings or a
model, is asked before the rules are: `alignment_opinion`.
"""

import asyncio
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol

import structlog

from moot.modules.governance.application.lexicon import HAN, base_forms, lexicon, plain, says
from moot.modules.governance.domain.decisions import DecisionRequest
from moot.modules.governance.domain.rules import RuleCategory
from moot.modules.governance.domain.rulesets import Active
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale

UNDECIDED = 0.5
"""Where goal or action say nothing that could be compared."""
HAZARD_FACTOR = 0.4
"""For each kind of act that the goal does not have."""
ENOUGH_SHARED = 3
"""An action need not be about everything the goal is about."""

PIECES = re.compile(r"[a-z][a-z0-9'-]*|[\u4e00-\u9fff]+")


class GoalAlignmentChecker:
    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def check_alignment(
        self,
        goal: str,
        action_description: str,
        keywords: Sequence[str] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> float:
        """From 0 to 1. `keywords` and the texts of `context` count as words of the goal."""
        more = [*(keywords or ()), *(value for value in (context or {}).values() if isinstance(value, str))]
        return compare("\n".join([goal, *more]), action_description).score

    def is_aligned(self, goal: str, action_description: str) -> bool:
        return self.check_alignment(goal, action_description) >= self.threshold

    def get_deviation_reason(
        self, goal: str, action_description: str, locale: Locale = DEFAULT_LOCALE
    ) -> str:
        """Empty when aligned."""
        found = compare(goal, action_description)
        if found.score >= self.threshold:
            return ""
        about = "off_goal" if found.shared and found.strange else "nothing_in_common"
        said = found._asdict() | {"score": f"{found.score:.2f}", "action": action_description}
        return SAY(f"alignment.{'hazard' if found.hazards else about}", **said).in_locale(locale)


class Compared(NamedTuple):
    score: float
    shared: frozenset[str]
    strange: tuple[str, ...]
    """What only the action is about."""
    hazards: tuple[str, ...]
    """Words of acts that the goal does not have."""


@lru_cache(maxsize=1024)
def compare(goal: str, action: str) -> Compared:
    wanted, done = _topics(plain(goal)), _topics(plain(action))
    facets = lexicon()["comparing"]["facets"]
    done = {topic: said for topic, said in done.items() if topic in wanted or topic not in facets}
    shared = wanted.keys() & done.keys()
    hazards = tuple(_hazards(plain(goal), plain(action)))
    alike = UNDECIDED
    if wanted and done:
        to_the_point = len(shared) / len(done)
        covered = len(shared) / min(len(wanted), ENOUGH_SHARED)
        alike = 0.6 * to_the_point + 0.4 * min(1.0, covered)
    strange = tuple(said for topic, said in done.items() if topic not in wanted)
    return Compared(bound(alike * HAZARD_FACTOR ** len(hazards)), frozenset(shared), strange, hazards)


def _topics(text: str) -> dict[str, str]:
    """What a text is about, each with the word that says so."""
    topics: dict[str, str] = {}
    for piece in PIECES.findall(text):
        pairs = _chinese(piece) if HAN.match(piece) else _english(piece)
        topics.update((topic, said) for topic, said in pairs if topic not in topics)
    return topics


def _english(word: str) -> Iterable[tuple[str, str]]:
    forms = list(base_forms(word))
    if any(form in _ignored_words() for form in forms):
        return
    known = (_concepts()[form] for form in forms if form in _concepts())
    yield next(known, min(forms, key=len)), word


def _chinese(run: str) -> Iterable[tuple[str, str]]:
    """Known words first, the longest that fits; what is left between them as pairs of characters."""
    rest = ""
    while run:
        begins = (run[:size] for size in range(min(len(run), 5), 0, -1))
        known = next((word for word in begins if word in _concepts() or word in _ignored_words()), "")
        if known:
            yield from _pairs(rest)
            rest = ""
            if known in _concepts():
                yield _concepts()[known], known
        else:
            rest += run[0]
        run = run[len(known) or 1 :]
    yield from _pairs(rest)


def _pairs(rest: str) -> Iterable[tuple[str, str]]:
    if len(rest) == 1:
        yield rest, rest
    yield from ((rest[at : at + 2], rest[at : at + 2]) for at in range(len(rest) - 1))


def _hazards(goal: str, action: str) -> Iterable[str]:
    for listed in lexicon()["hazards"].values():
        found = next((word for word in listed if says(action, word)), None)
        if found and not any(says(goal, word) for word in listed):
            yield found


@cache
def _concepts() -> Mapping[str, str]:
    return {word: concept for concept, listed in lexicon()["concepts"].items() for word in listed}


@cache
def _ignored_words() -> frozenset[str]:
    return frozenset(lexicon()["comparing"]["neutral"])


def bound(score: float) -> float:
    return min(1.0, max(0.0, score))


def describe(request: DecisionRequest, payload: Mapping[str, Any]) -> str:
    """What the action is said to be. The arguments of a tool call are not a description of it."""
    said = request.context.get("action_description")
    if isinstance(said, str):
        return said
    texts = (payload.get(name) for name in DESCRIBED_IN)
    return next((text for text in texts if isinstance(text, str)), "") if "tool" not in payload else ""


logger = structlog.get_logger(__name__)

DESCRIBED_IN = ("action_description", "description", "title")
PATIENCE = 20.0
"""Seconds a decision waits for an opinion."""
DIGITS = 4


class AlignmentOpinion(Protocol):
    async def score(self, goal: str, action: str, workspace: str) -> float:
        """From 0 (has nothing to do with it) to 1; raises when there is no opinion to be had.

        What an opinion costs is the workspace's.
        """


class OpinionOnAlignment:
    """`patience`: after so many seconds, the words decide."""

    def __init__(self, opinion: AlignmentOpinion, *, patience: float = PATIENCE) -> None:
        self._opinion, self._patience = opinion, patience

    async def add_to(self, request: DecisionRequest, active: Active, workspace: str) -> DecisionRequest:
        """With the opinion in its context, where a rule could look at it; else the request as it came."""
        goal, action = request.context.get("goal"), describe(request, request.payload)
        known = not goal or not action or "alignment_score" in request.context
        if known or not _looked_at(active, request.decision_type):
            return request
        score = await self._ask(str(goal), action, workspace)
        if score is None:
            return request
        return replace(request, context={**request.context, "alignment_score": score})

    async def _ask(self, goal: str, action: str, workspace: str) -> float | None:
        try:
            async with asyncio.timeout(self._patience):
                score = await self._opinion.score(goal, action, workspace)
        except Exception as e:  # bulkhead: no decision fails for want of an opinion
            expected = isinstance(e, AppError | TimeoutError)
            logger.warning("no opinion on alignment, the words decide", error=repr(e), exc_info=not expected)
            return None
        if not math.isfinite(score):
            logger.warning("opinion on alignment is no number, the words decide", score=score)
            return None
        return round(bound(score), DIGITS)


def _looked_at(active: Active, decision_type: str) -> bool:
    """What code looks at cannot be seen; of code, only rules about the goal are expected to."""
    about = (rule for rule in active.rules if not rule.for_types or decision_type in rule.for_types)
    return any(
        "alignment_score" in rule.condition
        if isinstance(rule.condition, str)
        else rule.category is RuleCategory.GOAL
        for rule in about
        if rule.enabled
    )
