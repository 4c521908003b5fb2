"""What the experts' signals mean on one scale, from -1 (bear) to 1 (bull)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moot.modules.debate.domain.debate import ExpertSummary
from moot.modules.debate.domain.texts import SAY
from moot.shared.domain.errors import AppError
from moot.shared.domain.experts import STANCES
from moot.shared.domain.messages import Message


class UnknownSignal(AppError):
    """A signal outside the table has no meaning here, and a guess would be worse than none."""

    code = "UNKNOWN_SIGNAL"


@dataclass(frozen=True)
class Opinion:
    """An expert's finding, weighed."""

    expert: str
    stance: float
    summary: ExpertSummary

    @property
    def pull(self) -> float:
        """How far it moves the debate: positive towards the bull."""
        return self.stance * self.summary.confidence

    @property
    def name(self) -> Message:
        return SAY(f"node.{self.expert}")

    @property
    def label(self) -> Message:
        signal, confidence = self.summary.signal, self.summary.confidence
        return SAY("label", expert=self.name, signal=signal, confidence=confidence)

    @property
    def argues(self) -> Message:
        return SAY("says", who=self.label, text=self.summary.reasoning)

    @property
    def warns(self) -> Message:
        return SAY("says", who=self.name, text=self.summary.risk_warning)


def weigh(summaries: Mapping[str, ExpertSummary]) -> list[Opinion]:
    """Every expert's opinion, the strongest first; raises `UnknownSignal`."""
    opinions = [Opinion(expert, _stance(expert, s.signal), s) for expert, s in summaries.items()]
    return sorted(opinions, key=lambda o: (-abs(o.pull), -o.summary.confidence, o.expert))


def camps(opinions: Sequence[Opinion]) -> tuple[list[Opinion], list[Opinion]]:
    """Bulls and bears, the smaller camp first; the undecided are in neither."""
    bulls = [opinion for opinion in opinions if opinion.stance > 0]
    bears = [opinion for opinion in opinions if opinion.stance < 0]
    return (bulls, bears) if len(bulls) < len(bears) else (bears, bulls)


def _stance(expert: str, signal: str) -> float:
    if signal not in STANCES:
        raise UnknownSignal(
            SAY("unknown_signal", expert=SAY(f"node.{expert}"), signal=signal, known=list(STANCES)),
            expert=expert,
            signal=signal,
        )
    return STANCES[signal]
