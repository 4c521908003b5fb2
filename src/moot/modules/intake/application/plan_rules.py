"""Plans by rules: drawn up without a model, or read from whatever JSON a model gave, field by field."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Any, get_args

from moot.modules.intake.domain.plan import Plan, PlanProblem, Step, StepType
from moot.modules.intake.domain.question import Limits, Understanding, reading_language
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import LIST_SEPARATOR, Locale, Message

STEP_TYPES: tuple[StepType, ...] = get_args(StepType)
LONGEST_ID, LONGEST_TITLE, LONGEST_TEXT = 40, 200, 4000
SHOWN, MOST_ALLOWED = 60, 20
"""Characters of a wrong value that are told, and how many of the right ones."""
UNSTORABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def draw_plan(understanding: Understanding, limits: Limits) -> tuple[Plan, tuple[str, ...]] | None:
    """What a question always takes, and what of it found no place; None where nobody can tell what it is about."""
    reader, title = reading_language(understanding.locale), understanding.title.strip()[:LONGEST_TITLE]
    title = title or SAY("plan.untitled").in_locale(reader)
    if understanding.intent == "equity" and understanding.symbols:
        kind, steps = "equity", _company_steps(understanding, title, limits)
    elif understanding.intent == "research":
        step = Step(id="research", type="research", title=title, description=title, need_web_search=True)
        kind, steps = "research", [step]
    else:
        return None
    thought = SAY(f"plan.{kind}.thought").in_locale(reader)
    plan = Plan(locale=understanding.locale, thought=thought, title=title, steps=tuple(steps))
    left_out = understanding.symbols[limits.max_step_num :]
    told = SAY("plan.left_out", symbols=left_out, most=limits.max_step_num).in_locale(reader)
    return plan, (told,) if left_out else ()


def _company_steps(understanding: Understanding, question: str, limits: Limits) -> list[Step]:
    """A step for each company, all at once, and then one that compares them. Companies come before comparing."""
    reader, most = reading_language(understanding.locale), limits.max_step_num
    named = _named(understanding, reader)[:most]
    steps = [
        Step(
            id=f"equity-{number}",
            type="equity",
            title=SAY("plan.equity.title", company=company).in_locale(reader)[:LONGEST_TITLE],
            description=question,
            symbol=symbol,
            experts=understanding.aspects,
        )
        for number, (symbol, company) in enumerate(named, 1)
    ]
    if 1 < len(steps) < most:
        companies = [company for _, company in named]
        compare = Step(
            id="compare",
            type="processing",
            title=SAY("plan.comparison.title", companies=companies).in_locale(reader)[:LONGEST_TITLE],
            description=SAY("plan.comparison.description", question=question).in_locale(reader),
            after=tuple(step.id for step in steps),
        )
        return [*steps, compare]
    return steps


def _named(understanding: Understanding, reader: Locale) -> list[tuple[str, Message | str]]:
    """Each symbol by a name the reader can read; others than Chinese read the code before a Chinese name."""
    named: dict[str, Message | str] = {}
    for mention in understanding.mentions:
        if mention.certain:
            symbol, name = mention.symbols[0], mention.named_for(reader)
            foreign = reader != "zh-CN" and not "".join(mention.names_en)
            key = "answer.code_first" if foreign else "plan.company"
            named.setdefault(symbol, SAY(key, name=name, symbol=symbol) if name else symbol)
    return list(named.items())


def read_plan(
    data: Any,
    limits: Limits,
    *,
    locale: str,
    known_symbols: Collection[str],
    title: str = "",
    ended: Sequence[str] = (),
) -> tuple[Plan | None, list[PlanProblem]]:
    """A plan within its limits, or the problems that keep it from being one; never both, and nothing is raised.

    What can only be meant in one way is filled in. More steps than may be are a problem and not cut: the last one is
    often what the others are for. The locale is the conversation's, whatever the model writes; `title` stands in for
    one that is missing. `ended` are steps of plans before: new ones may come after them, and have other ids.
    """
    reading = _Reading(limits, locale, known_symbols, ended)
    plan = reading.plan(data, title)
    return (None, reading.problems) if reading.problems else (plan, [])


def symbols_in(data: Any) -> list[str]:
    """What steps name as their symbol, as it is written there."""
    steps = _listed(data.get("steps")) if isinstance(data, Mapping) else ()
    given = [step.get("symbol") for step in steps if isinstance(step, Mapping)]
    return list(dict.fromkeys(text for each in given if (text := _text(each, LONGEST_ID))))


def find_symbol(text: str, known: Collection[str]) -> str | None:
    """The one known symbol that `text` is, with or without its exchange."""
    wanted = text.strip().upper()
    found = {symbol for symbol in known if wanted in (symbol, _code(symbol))}
    return found.pop() if len(found) == 1 else None


class _Reading:
    """One look at one answer, and all that was wrong with it."""

    def __init__(
        self, limits: Limits, locale: str, known: Collection[str], ended: Sequence[str] = ()
    ) -> None:
        self.problems: list[PlanProblem] = []
        self._limits, self._locale, self._known = limits, locale, known
        self._ended = ended
        self._reader = reading_language(locale)

    def plan(self, data: Any, title: str) -> Plan | None:
        if not isinstance(data, Mapping):
            self._wrong("plan", "not_a_plan", allowed=["title", "thought", "has_enough_context", "steps"])
            return None
        enough = _yes(data.get("has_enough_context"), False)
        steps = () if enough else self._steps(data.get("steps"))
        titles = (data.get("title"), title, *(step.title for step in steps))
        return Plan(
            locale=self._locale,
            has_enough_context=enough,
            thought=_text(data.get("thought"), LONGEST_TEXT),
            title=_first(titles) or SAY("plan.untitled").in_locale(self._reader),
            steps=steps,
        )

    def _steps(self, given: Any) -> tuple[Step, ...]:
        most = self._limits.max_step_num
        if not isinstance(given, list) or not given:
            self._wrong("steps", "no_steps", allowed=[f"1-{most}"])
            return ()
        if len(given) > most:
            self._wrong("steps", "too_many_steps", got=len(given), allowed=[f"1-{most}"])
            return ()
        ids = self._ids(given)
        steps = (self._step(at, each, ids[at], ids[:at]) for at, each in enumerate(given))
        return tuple(step for step in steps if step is not None)

    def _ids(self, given: Sequence[Any]) -> list[str]:
        """As they were given; who has none is numbered."""
        ids = [_id(step) for step in given]
        for at, each in enumerate(ids):
            if each and each in (*self._ended, *ids[:at]):
                self._wrong(f"steps[{at}].id", "id_taken", got=each)
        taken = {*ids, *self._ended}
        free = (name for number in count(1) if (name := f"step-{number}") not in taken)
        return [each or next(free) for each in ids]

    def _step(self, at: int, given: Any, own_id: str, earlier: Sequence[str]) -> Step | None:
        where = f"steps[{at}]"
        if not isinstance(given, Mapping):
            self._wrong(where, "not_a_step", allowed=list(Step.model_fields))
            return None
        kind = self._type(where, given)
        if kind is None:
            return None
        symbol = self._symbol(where, given.get("symbol")) if kind == "equity" else None
        description = _text(given.get("description"), LONGEST_TEXT)
        unnamed = SAY("plan.unnamed_step", number=at + 1).in_locale(self._reader)
        return Step(
            id=own_id,
            type=kind,
            title=_first((given.get("title"), description, symbol)) or unnamed,
            description=description,
            need_web_search=kind == "research" and _yes(_searches(given), True),
            symbol=symbol,
            experts=self._experts(where, given.get("experts")) if kind == "equity" else (),
            after=self._after(where, given.get("after"), kind, earlier),
        )

    def _type(self, where: str, given: Mapping[str, Any]) -> StepType | None:
        said = given.get("type") or given.get("step_type")
        if not said:
            return _inferred(given)
        kind = _text(said, LONGEST_TITLE).lower()
        if kind in STEP_TYPES:
            return kind
        self._wrong(f"{where}.type", "unknown_type", got=said, allowed=STEP_TYPES)
        return None

    def _symbol(self, where: str, given: Any) -> str | None:
        symbol = find_symbol(_text(given, LONGEST_ID), self._known)
        if symbol is None:
            self._wrong(f"{where}.symbol", "unknown_symbol", got=given, allowed=sorted(self._known))
        return symbol

    def _experts(self, where: str, given: Any) -> tuple[str, ...]:
        named = [_text(each, SHOWN).lower() for each in _listed(given)]
        for each in named:
            if each not in list(ExpertType):
                self._wrong(f"{where}.experts", "unknown_expert", got=each, allowed=list(ExpertType))
        return tuple(expert.value for expert in ExpertType if expert in named)

    def _after(self, where: str, given: Any, kind: StepType, earlier: Sequence[str]) -> tuple[str, ...]:
        """What computes with the findings of others comes after all before it, unless it says after which."""
        named = [_id({"id": each}) or _shown(each) for each in _listed(given)]
        for each in named:
            if each not in (*self._ended, *earlier):
                self._wrong(f"{where}.after", "not_earlier", got=each, allowed=[*self._ended, *earlier])
        if kind != "processing" or named:
            return tuple(dict.fromkeys(named))
        if not earlier and not self._ended:
            self._wrong(f"{where}.after", "nothing_to_process")
        return (*self._ended, *earlier)

    def _wrong(self, field: str, key: str, *, got: Any = "", allowed: Sequence[str] = ()) -> None:
        message = SAY(f"plan.problem.{key}", got=_shown(got)).in_locale(self._reader)
        self.problems.append(
            PlanProblem(field, message, LIST_SEPARATOR[self._reader].join(allowed[:MOST_ALLOWED]))
        )


def _inferred(given: Mapping[str, Any]) -> StepType:
    if given.get("symbol"):
        return "equity"
    return "research" if _yes(_searches(given), False) else "processing"


def _searches(given: Mapping[str, Any]) -> Any:
    return given.get("need_web_search", given.get("need_search"))


def _id(step: Any) -> str:
    given = step.get("id") if isinstance(step, Mapping) else None
    return _text(str(given) if type(given) is int else given, LONGEST_ID)


def _yes(given: Any, left_out: bool) -> bool:
    if given is None:
        return left_out
    return given is True or (isinstance(given, str) and given.strip().lower() == "true")


def _listed(given: Any) -> Sequence[Any]:
    if given is None or given == "":
        return ()
    return given if isinstance(given, list) else (given,)


def _first(given: Sequence[Any]) -> str:
    return next((text for each in given if (text := _text(each, LONGEST_TITLE))), "")


def _text(given: Any, longest: int) -> str:
    """Clipped, and without what no database stores."""
    return UNSTORABLE.sub("", given).strip()[:longest].strip() if isinstance(given, str) else ""


def _shown(given: Any) -> str:
    """As the model wrote it."""
    return _text(given if isinstance(given, str) else json.dumps(given, ensure_ascii=False), SHOWN)


def _code(symbol: str) -> str:
    code = symbol.partition(".")[0]
    return code if code.isdigit() else symbol
