"""Judges by rule, or by a model: what it is shown, what it must answer, and that rules speak when it cannot.

By rule, the same debate always gets the same verdict, and the verdict says why. The price levels are computed for
every action before a model is asked, so that it can quote but not make them.
"""

from functools import partial
from pathlib import Path
from typing import get_args

from moot.modules.judge.domain.verdict import (
    SAY,
    Action,
    JudgeInput,
    Ruling,
    Verdict,
    levels_for,
    list_lines,
    narrate,
    word_ruling,
)
from moot.modules.llm_platform.application.speaker import Brief, EngineChoice, Prompts, Speaker
from moot.shared.domain.experts import Direction
from moot.shared.domain.messages import Message

ACTION_FOR: dict[Direction, Action] = {"BULLISH": "BUY", "BEARISH": "SELL", "NEUTRAL": "HOLD"}
ENOUGH_TO_ACT = 0.6
EVEN_ODDS = 0.5
MAX_POSITION = 0.3
MIN_POSITION = 0.01
LEFT_BY_EACH_RISK = 0.95
FEWEST_WARNINGS = 2


async def rule_by_rubric(judge_input: JudgeInput) -> Verdict:
    action = ACTION_FOR[judge_input.direction] if judge_input.confidence >= ENOUGH_TO_ACT else "HOLD"
    position = _position(judge_input) if action == "BUY" else 0.0
    levels = levels_for(action, judge_input.evidence)
    warnings = _warnings(judge_input)
    ruled = {"action": action, "position_percent": position, "confidence": judge_input.confidence}
    said = word_ruling(action, position, levels) | {"reasoning": _reasoning(judge_input, action)}
    told = {"symbol": judge_input.symbol, "risk_warnings": warnings, **ruled, **said}
    said["narrative_report"] = narrate(told)
    return Verdict(
        **ruled,
        **{field: message.in_locale(judge_input.locale) for field, message in said.items()},
        risk_warnings=warnings,
        levels=levels,
        engine="rubric",
    )


def _position(judge_input: JudgeInput) -> float:
    """Grows with what the confidence has over even odds; every risk and open disagreement takes its share."""
    conviction = (judge_input.confidence - EVEN_ODDS) / (1 - EVEN_ODDS)
    risks = len(judge_input.risk_factors) + len(judge_input.key_disagreements)
    return max(MIN_POSITION, round(MAX_POSITION * conviction * LEFT_BY_EACH_RISK**risks, 2))


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
            SAY("disagreements", lines=list_lines(disagreements))
            if disagreements
            else SAY("no_disagreements")
        ),
    )


def _warnings(judge_input: JudgeInput) -> list[str]:
    """The debate's risks and a missing expert, always; then, up to the fewest allowed, what limits any verdict."""
    gap = _gap(judge_input)
    disagreements = [SAY("disagreement_risk", disagreement=d) for d in judge_input.key_disagreements]
    limits = [*disagreements, SAY("data_limits"), SAY("unnamed_risks")]
    missing = max(0, FEWEST_WARNINGS - len(judge_input.risk_factors) - len(gap))
    added = [message.in_locale(judge_input.locale) for message in limits[:missing]]
    return [*judge_input.risk_factors, *gap, *added]


PROMPTS = Prompts(Path(__file__).parent / "prompts")
AGENT = "verdict"
ACTIONS: tuple[Action, ...] = get_args(Action)


class DebateJudge:
    """Rules by rule where the desk has no model, or where rules stand in for one that failed."""

    def __init__(self, choice: EngineChoice, speaker: Speaker) -> None:
        self._choice, self._speaker = choice, speaker

    async def judge(self, judge_input: JudgeInput) -> Verdict:
        by_rule = partial(rule_by_rubric, judge_input)
        return await self._choice.make(AGENT, partial(self._rule, judge_input), by_rule)

    async def _rule(self, judge_input: JudgeInput) -> Verdict:
        spoken = await self._speaker.ask(
            Brief(
                module="judge",
                agent=AGENT,
                system=PROMPTS.text(AGENT, judge_input.locale),
                case=_case(judge_input).in_locale(judge_input.locale),
                evidence=judge_input.evidence,
                answer=Ruling,
                locale=judge_input.locale,
                as_of=judge_input.as_of,
                temperature=0.2,
                own=frozenset({"confidence", "position_percent"}),
            )
        )
        ruling = spoken.answer
        return Verdict(
            **ruling.model_dump(exclude={"risk_warnings"}),
            risk_warnings=[*ruling.risk_warnings, *_gap(judge_input)],
            levels=levels_for(ruling.action, judge_input.evidence),
            engine="llm",
            grounding=spoken.grounding,
            warnings=spoken.warnings,
        )


def _case(judge_input: JudgeInput) -> Message:
    heard, asked = judge_input.experts_heard, judge_input.experts_asked
    levels = [_levels(action, judge_input).in_locale(judge_input.locale) for action in ACTIONS]
    return SAY(
        "case.debate",
        symbol=judge_input.symbol,
        direction=judge_input.direction,
        confidence=judge_input.confidence,
        panel=SAY("case.panel", heard=heard, asked=asked) if asked else SAY("case.panel_unknown"),
        bull=judge_input.bull_thesis,
        bear=judge_input.bear_thesis,
        weighed=judge_input.conflict_resolution,
        disagreements=list_lines(judge_input.key_disagreements),
        risks=list_lines(judge_input.risk_factors),
        levels="\n".join(levels),
    )


def _levels(action: Action, judge_input: JudgeInput) -> Message:
    levels = levels_for(action, judge_input.evidence).model_dump()
    said = {name: SAY("case.no_level") if level is None else f"{level:.2f}" for name, level in levels.items()}
    return SAY(f"case.levels.{action}", **said)


def _gap(judge_input: JudgeInput) -> list[str]:
    """A missing expert is a warning whether or not the model thought of it."""
    heard, asked = judge_input.experts_heard, judge_input.experts_asked
    if heard >= asked:
        return []
    return [SAY("panel_incomplete", heard=heard, asked=asked).in_locale(judge_input.locale)]
