"""Pleads by rule: each side speaks from the experts who lean its way, and says so when nobody does."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from moot.modules.debate.domain.debate import Argument, DebateInput, Side
from moot.modules.debate.domain.opinions import Opinion, weigh
from moot.modules.debate.domain.texts import SAY, bullets
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Message

Opinions = Sequence[Opinion]


class RubricAdvocate(ABC):
    """What bull and bear share. They differ in what they borrow when nobody backs them, grant and wait for."""

    direction: Side
    sign: int

    async def advocate(self, debate_input: DebateInput) -> Argument:
        opinions = weigh(debate_input.expert_summaries)
        backers = [opinion for opinion in opinions if opinion.stance * self.sign > 0]
        others = [opinion for opinion in opinions if opinion not in backers]
        pleas = {
            "supporting_arguments": [backer.argues for backer in backers] or self._borrows(others),
            "acknowledged": self._grants(backers, others),
            "triggers": self._awaits(backers, others),
        }
        locale = debate_input.locale
        lines = {part: [message.in_locale(locale) for message in said] for part, said in pleas.items()}
        thesis = self._thesis(backers).in_locale(locale)
        weight = round(sum(abs(backer.pull) for backer in backers) / len(opinions), 2)
        listed = {part: bullets(said, locale) for part, said in lines.items()}
        narrative = SAY(f"plea.{self.direction}", thesis=thesis, weight=weight, **listed)
        return Argument(
            direction=self.direction,
            confidence=weight,
            core_thesis=thesis,
            narrative_report=narrative.in_locale(locale),
            **lines,
        )

    def _thesis(self, backers: Opinions) -> Message:
        if not backers:
            return SAY(f"unbacked.{self.direction}")
        return SAY(f"thesis.{self.direction}", lead=backers[0].argues)

    @abstractmethod
    def _borrows(self, others: Opinions) -> list[Message]: ...

    @abstractmethod
    def _grants(self, backers: Opinions, others: Opinions) -> list[Message]: ...

    @abstractmethod
    def _awaits(self, backers: Opinions, others: Opinions) -> list[Message]: ...


class RubricBull(RubricAdvocate):
    direction: Side = "BULLISH"
    sign = 1

    def _borrows(self, others: Opinions) -> list[Message]:
        return [undecided.argues for undecided in others if undecided.stance == 0]

    def _grants(self, backers: Opinions, others: Opinions) -> list[Message]:
        return _warnings(others or backers)

    def _awaits(self, backers: Opinions, others: Opinions) -> list[Message]:
        return [backer.argues for backer in backers if ExpertType(backer.expert).sees_events]


class RubricBear(RubricAdvocate):
    direction: Side = "BEARISH"
    sign = -1

    def _borrows(self, others: Opinions) -> list[Message]:
        return _warnings(others)

    def _grants(self, backers: Opinions, others: Opinions) -> list[Message]:
        return [bull.argues for bull in others if bull.stance > 0]

    def _awaits(self, backers: Opinions, others: Opinions) -> list[Message]:
        return _warnings([*backers, *others])


def _warnings(opinions: Opinions) -> list[Message]:
    return [opinion.warns for opinion in opinions if opinion.summary.risk_warning.strip()]
