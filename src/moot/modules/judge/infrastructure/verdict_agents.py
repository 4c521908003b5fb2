"""Judges by rule, or by a model: what it is shown, what it must answer, and that rules speak when it cannot.

By rule, the same debate always gets the same verdict, and the verdict says why. The price levels are computed for
every action before a model is asked, so that it can quote but not make them.
"""

from functools import partial
from pathlib import Path
from typing import get_args

from moot.modules.judge.domain.levels import levels_for
from moot.modules.judge.domain.ruling import SMALLEST, Decision, decide, size
from moot.modules.judge.domain.verdict import Departure, JudgeInput, Ruling, Verdict
from moot.modules.judge.domain.wording import name_gap, narrate, reason, warn, word_ruling
from moot.modules.llm_platform.application.speaker import Brief, EngineChoice, Prompts, Speaker, Spoken
from moot.shared.domain.claims import Action, Holder
from moot.shared.domain.exhibits import Exhibits
from moot.shared.domain.experts import EXPERT_TEXTS
from moot.shared.domain.messages import Catalogue, Message


async def rule_by_rubric(judge_input: JudgeInput) -> Verdict:
    ruled = decide(judge_input)
    words = word_ruling(ruled, judge_input.argument)
    said = {field: text.in_locale(judge_input.locale) for field, text in words.items()}
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
                claims=graph.claims if graph else (),
            )
        )
        return _bind(spoken, judge_input, await rule_by_rubric(judge_input))


def _bind(spoken: Spoken[Ruling], judge_input: JudgeInput, by_rule: Verdict) -> Verdict:
    """A model is hardly surer than the argument, and buys no more than the formula; where it acts and the rule would
    not, the rule's word goes along.
    """
    ruling, graph = spoken.answer, judge_input.argument
    levels = levels_for(ruling.action, judge_input.evidence)
    most = round((graph.confidence if graph else judge_input.confidence) + MOST_ABOVE_THE_ARGUMENT, 2)
    held, wanted, words = min(ruling.confidence, most), ruling.position_percent, {}
    cut = [] if held == ruling.confidence else [CASE("bounded", said=ruling.confidence, held=held)]
    sizing, position = size(judge_input, wanted) if ruling.action == "BUY" else (None, 0.0)
    # where the rule would not buy, a person is asked about the least
    position = max(position, min(SMALLEST, wanted))
    if position < wanted:
        cut.append(CASE("resized", said=wanted, held=position))
        words = {"entry_strategy": word_ruling(Decision("BUY", levels, position, sizing))["entry_strategy"]}
    departs = ruling.action not in (by_rule.action, "HOLD")
    return Verdict(
        **ruling.model_dump(exclude={"risk_warnings", "confidence", "position_percent", *words}),
        **{name: said.in_locale(judge_input.locale) for name, said in words.items()},
        confidence=held,
        position_percent=position,
        sizing=sizing,
        risk_warnings=[*ruling.risk_warnings, *name_gap(judge_input)],
        levels=levels,
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
    return CASE(f"levels.{action}", position=size(judge_input)[1], **said)
