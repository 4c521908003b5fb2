"""Plans without a model: what a question of each kind always takes."""

from typing import NamedTuple

from moot.modules.intake.application.plan_repair import LONGEST_TITLE
from moot.modules.intake.domain.plan import Plan, Step
from moot.modules.intake.domain.question import Limits, Understanding, reading_language
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.messages import Locale, Message

ANGLES = ("state", "news", "views")
"""From which sides a question is researched, in the order of how much is lost without it."""


class Drawn(NamedTuple):
    """`warnings` say what of the question found no place in the plan."""

    plan: Plan
    warnings: tuple[str, ...] = ()


def plan_by_rules(understanding: Understanding, limits: Limits) -> Drawn | None:
    """None where nothing is to be researched, or nobody can tell about whom."""
    if understanding.intent == "equity" and understanding.symbols:
        return _equity(understanding, limits)
    return _research(understanding, limits) if understanding.intent == "research" else None


def _equity(understanding: Understanding, limits: Limits) -> Drawn:
    """A step for each company, all at once, and then one that compares them. Companies come before comparing."""
    reader, most = reading_language(understanding.locale), limits.max_step_num
    researched, left_out = understanding.symbols[:most], understanding.symbols[most:]
    steps = [_company(symbol, at, understanding, reader) for at, symbol in enumerate(researched, 1)]
    if len(steps) > 1 and len(steps) < most:
        steps.append(_comparison(steps, understanding, reader))
    plan = _plan(understanding, "equity", tuple(steps), reader)
    if not left_out:
        return Drawn(plan)
    return Drawn(plan, (SAY("plan.left_out", symbols=left_out, most=most).in_locale(reader),))


def _company(symbol: str, number: int, understanding: Understanding, reader: Locale) -> Step:
    title = SAY("plan.equity.title", company=_called(symbol, understanding, reader))
    return Step(
        id=f"equity-{number}",
        type="equity",
        title=title.in_locale(reader)[:LONGEST_TITLE],
        description=_about(understanding),
        symbol=symbol,
        experts=understanding.aspects,
    )


def _comparison(steps: list[Step], understanding: Understanding, reader: Locale) -> Step:
    symbols = [step.symbol for step in steps]
    return Step(
        id="compare",
        type="processing",
        title=SAY("plan.comparison.title", symbols=symbols).in_locale(reader)[:LONGEST_TITLE],
        description=SAY("plan.comparison.description", question=_about(understanding)).in_locale(reader),
        after=tuple(step.id for step in steps),
    )


def _research(understanding: Understanding, limits: Limits) -> Drawn:
    reader = reading_language(understanding.locale)
    angles = enumerate(ANGLES[: limits.max_step_num], 1)
    steps = tuple(_angle(angle, number, understanding, reader) for number, angle in angles)
    return Drawn(_plan(understanding, "research", steps, reader))


def _angle(angle: str, number: int, understanding: Understanding, reader: Locale) -> Step:
    question = _about(understanding)
    return Step(
        id=f"research-{number}",
        type="research",
        title=SAY(f"plan.{angle}.title", question=question).in_locale(reader)[:LONGEST_TITLE],
        description=SAY(f"plan.{angle}.description", question=question).in_locale(reader),
        need_web_search=True,
    )


def _plan(understanding: Understanding, kind: str, steps: tuple[Step, ...], reader: Locale) -> Plan:
    thought = SAY(f"plan.{kind}.thought").in_locale(reader)
    return Plan(locale=understanding.locale, thought=thought, title=_about(understanding), steps=steps)


def _about(understanding: Understanding) -> str:
    reader = reading_language(understanding.locale)
    return understanding.title.strip()[:LONGEST_TITLE] or SAY("plan.untitled").in_locale(reader)


def _called(symbol: str, understanding: Understanding, reader: Locale) -> Message | str:
    """By a name the reader can read; where there is only a Chinese one, the code comes first for the others."""
    mention = next(each for each in understanding.mentions if each.certain and each.symbols[0] == symbol)
    english = reader != "zh-CN" and "".join(mention.names_en)
    name = english or "".join(mention.names)
    if not name:
        return symbol
    foreign = reader != "zh-CN" and not english
    return SAY("answer.code_first" if foreign else "plan.company", name=name, symbol=symbol)
