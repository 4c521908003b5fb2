"""Wires the debate."""

from moot.modules.debate.application.debate_service import DebateService
from moot.modules.debate.infrastructure.rubric_advocates import RubricBear, RubricBull
from moot.modules.debate.infrastructure.rubric_resolver import RubricResolver


class DebateContainer:
    def debate_service(self) -> DebateService:
        return DebateService(RubricBull(), RubricBear(), RubricResolver())
