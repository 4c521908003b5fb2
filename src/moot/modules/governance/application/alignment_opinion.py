"""How well an action serves its goal, asked of somebody who knows more than the words: embeddings, or a model.

Asked once, before the rules are, and put into the context: it is on the record with the decision, and whoever decides
it again has no need to ask. When no answer comes, the words decide as ever.
"""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

import structlog

from moot.modules.governance.application.decision_validator import ActiveRules
from moot.modules.governance.application.facts import to_align
from moot.modules.governance.application.goal_alignment_checker import bounded
from moot.modules.governance.domain.decisions import DecisionRequest
from moot.modules.governance.domain.rules import EnhancedRule, RuleCategory
from moot.shared.domain.errors import AppError
from moot.shared.infrastructure.execution_context import current_execution_ctx, on_behalf_of

logger = structlog.get_logger(__name__)

PATIENCE = 20.0
"""Seconds a decision waits for an opinion."""
DIGITS = 4


class AlignmentOpinion(Protocol):
    async def score(self, goal: str, action: str) -> float:
        """From 0 (has nothing to do with it) to 1; raises when there is no opinion to be had."""


class OpinionOnAlignment:
    """`patience`: after so many seconds, the words decide."""

    def __init__(self, opinion: AlignmentOpinion, *, patience: float = PATIENCE) -> None:
        self._opinion, self._patience = opinion, patience

    async def added_to(
        self, request: DecisionRequest, active: ActiveRules, workspace: str
    ) -> DecisionRequest:
        """With the opinion in its context, where a rule could look at it; else the request as it came."""
        unmeasured = to_align(request, request.payload)
        if unmeasured is None or not _looked_at(active, request.decision_type):
            return request
        score = await self._asked(*unmeasured, workspace)
        if score is None:
            return request
        return replace(request, context={**request.context, "alignment_score": score})

    async def _asked(self, goal: str, action: str, workspace: str) -> float | None:
        try:
            with _for(workspace):
                async with asyncio.timeout(self._patience):
                    score = await self._opinion.score(goal, action)
        except Exception as e:  # bulkhead: no decision fails for want of an opinion
            expected = isinstance(e, AppError | TimeoutError)
            logger.warning("no opinion on alignment, the words decide", error=repr(e), exc_info=not expected)
            return None
        if not math.isfinite(score):
            logger.warning("opinion on alignment is no number, the words decide", score=score)
            return None
        return round(bounded(score), DIGITS)


@contextmanager
def _for(workspace: str) -> Iterator[None]:
    """What an opinion costs is its workspace's, and its session's where one is under way."""
    context = current_execution_ctx.get()
    if context is not None and context.workspace == workspace:
        yield
    else:
        with on_behalf_of(workspace):
            yield


def _looked_at(active: ActiveRules, decision_type: str) -> bool:
    about = (rule for rule in active.rules if not rule.for_types or decision_type in rule.for_types)
    return any(rule.enabled and _reads(rule) for rule in about)


def _reads(rule: EnhancedRule) -> bool:
    """What code looks at cannot be seen; of code, only rules about the goal are expected to."""
    if isinstance(rule.condition, str):
        return "alignment_score" in rule.condition
    return rule.category is RuleCategory.GOAL
