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
    Departure,
    JudgeInput,
    Ruling,
    Verdict,
    levels_for,
    list_lines,
    narrate,
    word_ruling,
)
from moot.modules.llm_platform.application.speaker import Brief, EngineChoice, Prompts, Speaker, Spoken
from moot.shared.domain.claims import Holder
from moot.shared.domain.exhibits import Exhibits
from moot.shared.domain.experts import EXPERT_TEXTS, Direction
from moot.shared.domain.messages import Catalogue, Message

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
CASE = Catalogue(Path(__file__).parent / "texts", EXPERT_TEXTS)
ACTIONS: tuple[Action, ...] = get_args(Action)
MOST_ABOVE_THE_ARGUMENT = 0.1


class DebateJudge:
    """Rules by rule where the desk has no model, or where rules stand in for one that failed."""

    def __init__(self, choice: EngineChoice, speaker: Speaker) -> None:
        self._choice, self._speaker = choice, speaker

    async def judge(self, judge_input: JudgeInput) -> Verdict:
        by_rule = partial(rule_by_rubric, judge_input)
        return await self._choice.make(AGENT, partial(self._rule, judge_input), by_rule)

    async def _rule(self, judge_input: JudgeInput) -> Verdict:
        graph = judge_input.argument
        exhibits = Exhibits(graph, judge_input.evidence, judge_input.locale) if graph else None
        spoken = await self._speaker.ask(
            Brief(
                module="judge",
                agent=AGENT,
                system=PROMPTS.text(AGENT, judge_input.locale),
                case=_case(judge_input, exhibits).in_locale(judge_input.locale),
                evidence=exhibits.figures if exhibits else [],
                answer=Ruling,
                locale=judge_input.locale,
                as_of=judge_input.as_of,
                temperature=0.2,
                own=frozenset({"confidence", "position_percent"}),
            )
        )
        return _bind(spoken, judge_input, await rule_by_rubric(judge_input))


def _bind(spoken: Spoken[Ruling], judge_input: JudgeInput, by_rule: Verdict) -> Verdict:
    """A model is hardly surer than the argument; where it acts and the rule would not, the rule's word goes along."""
    ruling, graph = spoken.answer, judge_input.argument
    most = round((graph.confidence if graph else judge_input.confidence) + MOST_ABOVE_THE_ARGUMENT, 2)
    held = min(ruling.confidence, most)
    cut = [] if held == ruling.confidence else [CASE("bounded", said=ruling.confidence, held=held)]
    departs = ruling.action not in (by_rule.action, "HOLD")
    return Verdict(
        **ruling.model_dump(exclude={"risk_warnings", "confidence"}),
        confidence=held,
        risk_warnings=[*ruling.risk_warnings, *_gap(judge_input)],
        levels=levels_for(ruling.action, judge_input.evidence),
        departs=Departure(**by_rule.model_dump(include={"action", "confidence"})) if departs else None,
        engine="llm",
        grounding=spoken.grounding,
        warnings=[*spoken.warnings, *(message.in_locale(judge_input.locale) for message in cut)],
    )


def _case(judge_input: JudgeInput, exhibits: Exhibits | None) -> Message:
    heard, asked, before = judge_input.experts_heard, judge_input.experts_asked, judge_input.previous
    levels = [_levels(action, judge_input).in_locale(judge_input.locale) for action in ACTIONS]
    return CASE(
        "debate",
        symbol=judge_input.symbol,
        direction=CASE(f"literal.{judge_input.direction}"),
        confidence=judge_input.confidence,
        panel=CASE("panel", heard=heard, asked=asked) if asked else CASE("panel_unknown"),
        claims=exhibits.claims if exhibits else CASE("none"),
        relations=exhibits.relations if exhibits else CASE("none"),
        previous=CASE("previous", day=before.as_of.date(), **dict(before)) if before else CASE("none"),
        holder=_tell_holder(judge_input.holder) if judge_input.holder else CASE("none"),
        levels="\n".join(levels),
    )


def _tell_holder(holder: Holder) -> Message:
    holding = "no" if not holder.holding else "yes" if holder.cost is None else "at_cost"
    return CASE(
        "holder",
        holding=CASE(f"holding.{holding}", cost=holder.cost),
        horizon=CASE(f"horizon.{holder.horizon}"),
        risk=CASE(f"risk.{holder.risk}"),
    )


def _levels(action: Action, judge_input: JudgeInput) -> Message:
    levels = levels_for(action, judge_input.evidence).model_dump()
    said = {name: CASE("no_level") if level is None else f"{level:.2f}" for name, level in levels.items()}
    return CASE(f"levels.{action}", **said)


def _gap(judge_input: JudgeInput) -> list[str]:
    """A missing expert is a warning whether or not the model thought of it."""
    heard, asked = judge_input.experts_heard, judge_input.experts_asked
    if heard >= asked:
        return []
    return [SAY("panel_incomplete", heard=heard, asked=asked).in_locale(judge_input.locale)]
