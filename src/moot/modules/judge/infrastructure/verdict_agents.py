"""Judges by rule, or by a model: what it is shown, what it must answer, and that rules speak when it cannot.

By rule, the same debate always gets the same verdict, and the verdict says why. The price levels are computed for
every action before a model is asked, so that it can quote but not make them.
"""

from functools import partial
from pathlib import Path
from typing import get_args

from moot.modules.judge.domain.levels import Action, levels_for
from moot.modules.judge.domain.ruling import decide
from moot.modules.judge.domain.verdict import SAY, JudgeInput, Ruling, Verdict
from moot.modules.judge.domain.wording import list_lines, name_gap, narrate, reason, warn, word_ruling
from moot.modules.llm_platform.application.speaker import Brief, EngineChoice, Prompts, Speaker
from moot.shared.domain.messages import Message


async def rule_by_rubric(judge_input: JudgeInput) -> Verdict:
    ruled = decide(judge_input)
    said = {field: text.in_locale(judge_input.locale) for field, text in word_ruling(ruled).items()}
    return Verdict(
        **said,
        action=ruled.action,
        position_percent=ruled.position,
        confidence=judge_input.confidence,
        levels=ruled.levels,
        sizing=ruled.sizing,
        reasoning=reason(judge_input, ruled),
        risk_warnings=warn(judge_input, ruled),
        narrative_report=narrate(judge_input, ruled),
        engine="rubric",
    )


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
            risk_warnings=[*ruling.risk_warnings, *name_gap(judge_input)],
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
