"""Plans by rules: drawn up without a model, or read from whatever JSON a model gave, field by field."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, get_args

from pydantic_core import ErrorDetails

from moot.modules.intake.domain.question import Limits, Plan, Step, StepType, Understanding
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Locale, Message, reading_language
from moot.shared.domain.validation import invalid_input

STEP_TYPES: tuple[StepType, ...] = get_args(StepType)
LONGEST_ID, LONGEST_TITLE, LONGEST_TEXT = 40, 200, 4000
MOST_ALLOWED = 20
"""As many of the right values are told where one is wrong."""
UNSTORABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def draw_plan(
    understanding: Understanding, limits: Limits, *, can_search: bool = True
) -> tuple[Plan, tuple[str, ...]] | None:
    """What a question always takes, and what of it found no place; None where nobody can tell what it is about."""
    reader, title = reading_language(understanding.locale), understanding.title.strip()[:LONGEST_TITLE]
    title = title or SAY("plan.untitled").in_locale(reader)
    if understanding.intent == "equity" and understanding.symbols:
        kind, steps = "equity", _company_steps(understanding, title, limits)
    elif understanding.intent == "research" and can_search:
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
    named = _name_symbols(understanding, reader)[:most]
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


def _name_symbols(understanding: Understanding, reader: Locale) -> list[tuple[str, Message | str]]:
    """Each symbol by a name the reader can read; others than Chinese read the code before a Chinese name."""
    named: dict[str, Message | str] = {}
    for mention in understanding.mentions:
        if mention.researchable:
            symbol, name = mention.symbols[0], mention.name_for(reader)
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
    can_search: bool = True,
) -> Plan:
    """A plan within its limits; raises `InvalidInput` with all that keeps it from being one.

    What can only be meant in one way is filled in. More steps than may be are a problem and not cut: the last one is
    often what the others are for. The locale is the conversation's, whatever the model writes; `title` stands in for
    one that is missing. `ended` are steps of plans before: new ones may come after them, and have other ids.
    """
    given, reader = data if isinstance(data, Mapping) else {}, reading_language(locale)
    enough, most = _is_yes(given.get("has_enough_context"), False), limits.max_step_num
    listed = given["steps"] if isinstance(given.get("steps"), list) and not enough else []
    if not enough and not 0 < len(listed) <= most:
        raise invalid_input([_problem("steps", "out_of_range", len(listed), [f"1-{most}"])])
    steps, problems = list[dict[str, Any]](), list[ErrorDetails]()
    for place, each in enumerate(listed):
        before = [*ended, *(step["id"] for step in steps)]
        written = each if isinstance(each, Mapping) else {"type": repr(each)}
        step = _fill_in(written, before, known_symbols, reader, can_search)
        found = _check(step, before, known_symbols, can_search)
        problems += (_problem(f"steps[{place}].{name}", *wrong) for name, *wrong in found)
        steps.append(step)
    if problems:
        raise invalid_input(problems)
    titles = (given.get("title"), title, *(step["title"] for step in steps))
    return Plan(
        locale=locale,
        has_enough_context=enough,
        thought=_text(given.get("thought"), LONGEST_TEXT),
        title=_first(titles) or SAY("plan.untitled").in_locale(reader),
        steps=tuple(Step.model_validate(step) for step in steps),
    )


def symbols_in(data: Any) -> list[str]:
    """What steps name as their symbol, as it is written there."""
    steps = _as_list(data.get("steps")) if isinstance(data, Mapping) else ()
    given = [step.get("symbol") for step in steps if isinstance(step, Mapping)]
    return list(dict.fromkeys(text for each in given if (text := _text(each, LONGEST_ID))))


def find_symbol(text: str, known: Collection[str]) -> str | None:
    """The one known symbol that `text` is, with or without its exchange."""
    wanted = text.strip().upper()
    bare = {symbol for symbol in known if wanted.isdigit() and symbol.partition(".")[0] == wanted}
    found = bare | {symbol for symbol in known if symbol == wanted}
    return found.pop() if len(found) == 1 else None


def _fill_in(
    given: Mapping[str, Any], before: Sequence[str], known: Collection[str], reader: Locale, can_search: bool
) -> dict[str, Any]:
    """What computes with the findings of others comes after all before it, unless it says after which."""
    searches = given.get("need_web_search", given.get("need_search"))
    looks_like = "equity" if given.get("symbol") else "research" if _is_yes(searches, False) else "processing"
    kind = str(given.get("type") or given.get("step_type") or looks_like).strip().lower()
    written = _text(given.get("symbol"), LONGEST_ID)
    description = _text(given.get("description"), LONGEST_TEXT)
    symbol = find_symbol(written, known) or written
    free = next(name for number in count(len(before) + 1) if (name := f"step-{number}") not in before)
    unnamed = SAY("plan.unnamed_step", number=len(before) + 1).in_locale(reader)
    experts = {_name(each).lower() for each in _as_list(given.get("experts"))}
    after = list(dict.fromkeys(map(_name, _as_list(given.get("after")))))
    return {
        "id": _name(given.get("id")) or free,
        "type": kind,
        "title": _first((given.get("title"), description, symbol)) or unnamed,
        "description": description,
        "need_web_search": kind == "research" and _is_yes(searches, can_search),
        "symbol": symbol if kind == "equity" else None,
        "experts": sorted(experts, key=[*ExpertType, *experts].index) if kind == "equity" else (),
        "after": after or (before if kind == "processing" else ()),
    }


def _check(
    step: Mapping[str, Any], before: Sequence[str], known: Collection[str], can_search: bool
) -> Iterator[tuple[str, str, Any, Sequence[str]]]:
    """Of each field that cannot stay: what is wrong, what was found there, and what could stand there."""
    if step["need_web_search"] and not can_search:
        yield "need_web_search", "enum", True, ["false"]
    if step["id"] in before:
        yield "id", "taken", step["id"], ()
    if step["type"] not in STEP_TYPES:
        yield "type", "enum", step["type"], STEP_TYPES
    if step["type"] == "equity" and step["symbol"] not in known:
        yield "symbol", "enum", step["symbol"], sorted(known)
    if step["type"] == "processing" and not step["after"]:
        yield "after", "choose_some", "", ()
    for name, allowed in (("experts", list(ExpertType)), ("after", before)):
        yield from ((name, "enum", each, allowed) for each in step[name] if each not in allowed)


def _problem(field: str, kind: str, got: Any, allowed: Sequence[str]) -> ErrorDetails:
    told = {"got": got, "allowed": list(allowed[:MOST_ALLOWED])}
    return {"type": kind, "loc": (field,), "msg": kind, "input": got, "ctx": told}


def _name(given: Any) -> str:
    return "" if given is None else _text(str(given), LONGEST_ID)


def _is_yes(given: Any, left_out: bool) -> bool:
    return left_out if given is None else str(given).strip().lower() == "true"


def _as_list(given: Any) -> Sequence[Any]:
    if given is None or given == "":
        return ()
    return given if isinstance(given, list) else (given,)


def _first(given: Sequence[Any]) -> str:
    return next((text for each in given if (text := _text(each, LONGEST_TITLE))), "")


def _text(given: Any, longest: int) -> str:
    """Clipped, and without what no database stores."""
    return UNSTORABLE.sub("", given).strip()[:longest].strip() if isinstance(given, str) else ""
