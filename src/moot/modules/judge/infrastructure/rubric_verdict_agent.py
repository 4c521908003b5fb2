"""Judges by rule: the same debate always gets the same verdict, and the verdict says why."""

from moot.modules.judge.domain.texts import SAY
from moot.modules.judge.domain.verdict import Action, JudgeInput, Verdict, levels_for
from moot.shared.domain.experts import Direction
from moot.shared.domain.messages import Message

ACTIONS: dict[Direction, Action] = {"BULLISH": "BUY", "BEARISH": "SELL", "NEUTRAL": "HOLD"}
ENOUGH_TO_ACT = 0.6
EVEN_ODDS = 0.5
MAX_POSITION = 0.3
MIN_POSITION = 0.01
LEFT_BY_EACH_RISK = 0.95
FEWEST_WARNINGS = 2


class RubricVerdictAgent:
    async def judge(self, judge_input: JudgeInput) -> Verdict:
        action = _action(judge_input)
        position = _position(judge_input) if action == "BUY" else 0.0
        levels = levels_for(action, judge_input.evidence)
        warnings = _warnings(judge_input)
        said = {
            "entry_strategy": SAY(f"entry.{action}", position=position, at=_level("at", levels.entry)),
            "stop_loss": _level(f"stop.{action}", levels.stop),
            "take_profit": _level(f"target.{action}", levels.target),
            "time_horizon": SAY(f"horizon.{action}"),
            "reasoning": _reasoning(judge_input, action),
        }
        ruled = {"action": action, "position_percent": position, "confidence": judge_input.confidence}
        said["narrative_report"] = SAY(
            "narrative", symbol=judge_input.symbol, risks=_bullets(warnings), **ruled, **said
        )
        return Verdict(
            **ruled,
            **{field: message.in_locale(judge_input.locale) for field, message in said.items()},
            risk_warnings=warnings,
            levels=levels,
            engine="rubric",
        )


def _action(judge_input: JudgeInput) -> Action:
    return ACTIONS[judge_input.direction] if judge_input.confidence >= ENOUGH_TO_ACT else "HOLD"


def _position(judge_input: JudgeInput) -> float:
    """Grows with what the confidence has over even odds; every risk and open disagreement takes its share."""
    conviction = (judge_input.confidence - EVEN_ODDS) / (1 - EVEN_ODDS)
    risks = len(judge_input.risk_factors) + len(judge_input.key_disagreements)
    return max(MIN_POSITION, round(MAX_POSITION * conviction * LEFT_BY_EACH_RISK**risks, 2))


def _level(key: str, level: float | None) -> Message:
    return SAY("unpriced") if level is None else SAY(key, level=level)


def _reasoning(judge_input: JudgeInput, action: Action) -> Message:
    disagreements = judge_input.key_disagreements
    return SAY(
        "reasoning",
        direction=judge_input.direction,
        confidence=judge_input.confidence,
        why=SAY(f"why.{action}"),
        bull=judge_input.bull_thesis,
        bear=judge_input.bear_thesis,
        weighed=judge_input.conflict_resolution,
        disagreements=(
            SAY("disagreements", lines=_bullets(disagreements)) if disagreements else SAY("no_disagreements")
        ),
    )


def _warnings(judge_input: JudgeInput) -> list[str]:
    """The debate's risks and a missing expert, always; then, up to the fewest allowed, what limits any verdict."""
    heard, asked = judge_input.experts_heard, judge_input.experts_asked
    gap = [SAY("panel_incomplete", heard=heard, asked=asked)] if heard < asked else []
    disagreements = [SAY("disagreement_risk", disagreement=d) for d in judge_input.key_disagreements]
    limits = [*disagreements, SAY("data_limits"), SAY("unnamed_risks")]
    missing = max(0, FEWEST_WARNINGS - len(judge_input.risk_factors) - len(gap))
    added = [message.in_locale(judge_input.locale) for message in [*gap, *limits[:missing]]]
    return [*judge_input.risk_factors, *added]


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
