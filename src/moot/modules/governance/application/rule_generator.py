"""Makes rules from what a user lays down and what a tool's registration says, without a model.

It only ever adds, and follows no instruction: of prose it knows a few words. The rules: `generated_rules.yaml`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field, StrictInt, StrictStr
from pydantic_core import to_json

from moot.modules.governance.application.lexicon import HAN, lexicon
from moot.modules.governance.application.rule_checks import NOON, TEXTS
from moot.modules.governance.domain.rules import EnhancedRule, RuleSource
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.messages import DEFAULT_LOCALE, LOCALES, Locale
from moot.shared.domain.validation import Strict, refuse, validate

DAYS = re.compile(r"(\d{4}-\d\d-\d\d)\s*(?:至|到|to|~)\s*(\d{4}-\d\d-\d\d)")
GAP = re.compile(r"<(\w+)>")
LIMITS = ("max_iterations", "max_tokens", "max_cost", "timeout_seconds", "max_retries")
Rules = list[EnhancedRule]
Wanted = Iterator[tuple[str, dict[str, Any]]]
"""Kinds of rules, each with what fills its gaps and its texts, `generated.<kind>`."""


def _check_period(text: str) -> str:
    if period_in(text, NOON.date()) is None:
        raise refuse("literal_error", got=text, allowed=[*lexicon()["periods"], "2024-01-01 to 2024-03-31"])
    return text


Name = Annotated[StrictStr, Field(min_length=1, max_length=200, pattern=r"\S")]
Count = Annotated[StrictInt, Field(ge=1, le=10**12)]
Amount = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0)]


class ToolConfig(Strict):
    """`forbidden_operations` are words that no text among the arguments may hold (DROP, DELETE)."""

    forbidden_operations: tuple[Name, ...] = ()
    rate_limit: StrictInt | None = Field(default=None, ge=1, le=10_000, description="calls in a minute")


class Constraints(Strict):
    """What a user may lay down besides the texts. Each becomes a rule."""

    max_tokens: Count | None = None
    max_cost: Amount | None = None
    max_iterations: Count | None = None
    max_retries: Count | None = None
    timeout_seconds: Amount | None = None
    allowed_tools: tuple[Name, ...] | None = Field(default=None, min_length=1)
    forbidden_tools: tuple[Name, ...] = ()
    mask_fields: tuple[Name, ...] = ()
    period: Annotated[Name, AfterValidator(_check_period)] | None = None
    time_column: StrictStr = Field("event_time", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)
    """The column by which statements are kept to the period; every table of the desk's database has this one."""
    output_format: Literal["report", "excel", "csv", "json", "pdf", "markdown", "html"] | None = None
    max_rows: Count | None = None
    alignment_threshold: Annotated[Amount, Field(le=1)] = 0.5


class Wish(Strict):
    """What a user has, wants, and says about it."""

    start: str = ""
    goal: str = Field(min_length=1, pattern=r"\S")
    description: str | None = None
    constraints: Constraints = Field(default_factory=Constraints)


class AgentConfig(Wish):
    """Without a goal or tools there are no rules about them. No call would keep to an empty list of tools."""

    goal: str = ""
    allowed_tools: tuple[Name, ...] | None = Field(default=None, min_length=1)
    tool_configs: dict[Name, ToolConfig] = Field(default_factory=dict)
    timeout_seconds: Amount = 60.0
    max_retries: Count = 3
    max_iterations: Count = 10
    max_tokens: Count = 10000


class RuleGenerator:
    """Periods such as "this month" are those of the moment of generation."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def generate_from_user_input(
        self, start: str, goal: str, description: str | None = None, constraints: dict[str, Any] | None = None
    ) -> Rules:
        """In shadow until somebody accepts them (`accept`); named in the language of the texts."""
        given = {"start": start, "goal": goal, "description": description, "constraints": constraints or {}}
        wish = validate(Wish, given)
        locale: Locale = "zh-CN" if HAN.search(f"{start} {goal} {description}") else "en-US"
        return _make(_of_wish(wish, self._clock.now().date()), locale)

    def generate_goal_rules(self, goal: str, threshold: float = 0.5) -> Rules:
        rules = self.generate_from_user_input("", goal, None, {"alignment_threshold": threshold})
        return [rule for rule in rules if rule.category == "goal"]

    def generate_tool_rules(
        self, allowed_tools: Sequence[str] | None, tool_configs: Mapping[str, Any] | None = None
    ) -> Rules:
        """From a registration, which is trusted: these hold at once."""
        agent = validate(AgentConfig, {"allowed_tools": allowed_tools, "tool_configs": tool_configs or {}})
        return accept(_make(_of_tools(agent), source=RuleSource.TOOL))

    def generate_execution_rules(self, timeout_seconds: float = 60, max_retries: int = 3) -> Rules:
        return _limit(timeout_seconds=timeout_seconds, max_retries=max_retries)

    def generate_behavior_rules(self, max_iterations: int = 10, max_tokens: int = 10000) -> Rules:
        return _limit(max_iterations=max_iterations, max_tokens=max_tokens)

    def generate_all_rules(self, agent_config: Mapping[str, Any]) -> Rules:
        """Of everything in the configuration: limits, tools, texts and constraints."""
        agent = validate(AgentConfig, agent_config)
        rules = self.generate_behavior_rules(agent.max_iterations, agent.max_tokens)
        rules += self.generate_execution_rules(agent.timeout_seconds, agent.max_retries)
        rules += self.generate_tool_rules(agent.allowed_tools, agent.tool_configs)
        wish = agent.model_dump(include=set(Wish.model_fields))
        rules += self.generate_from_user_input(**wish) if agent.goal else []
        return list({rule.id: rule for rule in rules}.values())


def accept(rules: Iterable[EnhancedRule]) -> Rules:
    """The same rules, as somebody who has read them wants them: in force."""
    return [rule.model_copy(update={"mode": "enforce"}) for rule in rules]


def _limit(**limits: float) -> Rules:
    return _make(_of_limits(validate(Constraints, limits)))


def _make(
    wanted: Wanted, locale: Locale = DEFAULT_LOCALE, source: RuleSource = RuleSource.GENERATED
) -> Rules:
    made = []
    for kind, said in wanted:
        for template in ({**_templates()["usual"], **each} for each in _templates()["rules"][kind]):
            for argument, only_if in template.pop("arguments").items():
                gaps = {**said, "argument": argument, "field": f"payload.args.{argument}"}
                gaps["if"] = Template(only_if).safe_substitute(gaps)
                rule = {**_fill(template, gaps), "source": source, "mode": "shadow"}
                made.append(validate(EnhancedRule, _finish(kind, rule, gaps, locale)))
    return made


def _finish(kind: str, rule: dict[str, Any], gaps: Mapping[str, Any], locale: Locale) -> dict[str, Any]:
    said = {text: SAY(f"generated.{kind}.{text}", **gaps) for text in TEXTS}
    texts = {text: {each: message.in_locale(each) for each in LOCALES} for text, message in said.items()}
    rule["id"] = f"gen_{kind}_{sha256(to_json([rule, texts])).hexdigest()[:8]}"
    for violates, payload in zip((True, False), rule.pop("tries"), strict=True):
        example = {"violates": violates, "decision_type": "tool_call", "context": payload.pop("context", {})}
        rule.setdefault("examples", []).append({**example, "payload": {"tool": "any", "args": {}, **payload}})
    return {**rule, "name": texts["name"][locale][:200], "metadata": {"kind": kind, **texts}}


@cache
def _templates() -> Mapping[str, Any]:
    return dict(yaml.safe_load(Path(__file__).with_name("generated_rules.yaml").read_text(encoding="utf-8")))


def _fill(part: Any, gaps: Mapping[str, Any]) -> Any:
    """What a user wrote goes in last, and into a text as a literal: it is never read as a gap."""
    if isinstance(part, dict):
        return {_fill(name, gaps): _fill(value, gaps) for name, value in part.items()}
    if isinstance(part, list):
        return [_fill(each, gaps) for each in part]
    if not isinstance(part, str):
        return part
    if gap := GAP.fullmatch(part):
        return gaps[gap[1]]
    return GAP.sub(lambda gap: to_json(gaps[gap[1]]).decode(), Template(part).safe_substitute(gaps))


def _of_wish(wish: Wish, today: date) -> Wanted:
    asked = wish.constraints
    yield "goal_alignment", {"goal": wish.goal, "bound": asked.alignment_threshold}
    yield "goal_deviation", {"goal": wish.goal, "bound": asked.alignment_threshold / 2}
    yield from _of_data(wish, today)
    said = re.search(lexicon()["wishes"]["producing"], f"{wish.goal}\n{wish.description}".lower())
    if name := asked.output_format or (said and (said[1] if said[1].isascii() else "report")):
        values = lexicon()["formats"][name]
        ways = {"whole": rf"(?i)^\.?(?:{'|'.join(values)})$", "ending": rf"(?i)\.(?:{'|'.join(values)})$"}
        yield "output_format", {"formats": [name], "values": values, "usual": values[0], **ways}
    for kind, tools in (("tool_whitelist", asked.allowed_tools), ("tool_blacklist", asked.forbidden_tools)):
        if tools:
            yield kind, {"tools": tools, "tool": tools[0]}
    yield from _of_limits(asked)


def _of_data(wish: Wish, today: date) -> Wanted:
    asked, kinds, known = wish.constraints, _private(wish), lexicon()["private"]
    mask = [column for kind in kinds for column in known.get(kind, [kind])]
    gaps = {"mask": mask, "limit": asked.max_rows, **dict.fromkeys(("column", "since", "until"))}
    texts = [asked.period] if asked.period else [wish.description or "", wish.goal]
    since, until = next(filter(None, (period_in(text, today) for text in texts)), (None, None))
    if since and until:
        gaps |= {"column": asked.time_column, "since": str(since), "until": str(until)}
        gaps |= {"last": str(until - timedelta(days=1)), "first": f"{since:%Y%m%d}", "end": f"{until:%Y%m%d}"}
        yield from (("time_filter", gaps), ("time_range", gaps))
    if mask:
        named = [SAY(f"generated.field.{kind}") if kind in known else kind for kind in kinds]
        yield "privacy", {**gaps, "fields": named, "hidden": mask[0]}
    if asked.max_rows:
        yield "max_rows", {**gaps, "most": asked.max_rows, "beyond": asked.max_rows + 1}


def _of_limits(asked: Constraints) -> Wanted:
    for kind in LIMITS:
        if (limit := getattr(asked, kind)) is not None:
            yield kind, {"limit": limit, "beyond": limit + 1, "most": f"{limit:.15g}"}


def _of_tools(agent: AgentConfig) -> Wanted:
    if tools := agent.allowed_tools:
        yield "tool_whitelist", {"tools": tools, "tool": tools[0]}
    for tool, config in agent.tool_configs.items():
        if words := config.forbidden_operations:
            pattern = rf"(?i)(?:^|[^\w])(?:{'|'.join(map(re.escape, words))})(?:$|[^\w])"
            yield "forbidden_operations", {"tool": tool, "words": words, "word": words[0], "in": pattern}
        if calls := config.rate_limit:
            past = [{"tool": tool, "at": NOON.isoformat()}] * calls
            yield "rate_limit", {"tool": tool, "calls": calls, "past": past, "fewer": past[1:]}


def period_in(text: str, today: date) -> tuple[date, date] | None:
    """The first period a text names: its first day, and the day after its last."""
    if match := DAYS.search(text):
        try:
            return date.fromisoformat(match[1]), date.fromisoformat(match[2]) + timedelta(days=1)
        except ValueError:
            return None
    places = [(text.lower().find(words), span) for words, span in lexicon()["periods"].items()]
    if not (named := [place for place in places if place[0] >= 0]):
        return None
    months, ago = min(named)[1]
    first = today.year * 12 + (today.month - 1) // months * months - ago * months
    return date(first // 12, first % 12 + 1, 1), date((first + months) // 12, (first + months) % 12 + 1, 1)


def _private(wish: Wish) -> list[str]:
    """What the columns to hide are about; all, when a text asks for hiding and does not say of what."""
    known, hiding = lexicon()["private"], re.compile(lexicon()["wishes"]["hiding"])
    said = re.split(r"[。；;！!？?\n]|\.\s", f"{wish.start}\n{wish.goal}\n{wish.description or ''}".lower())
    parts = list(filter(hiding.search, said))
    kinds = [field.lower() for field in wish.constraints.mask_fields]
    for kind, names in known.items():
        written = "|".join(names).replace("_", "[_ ]?")
        kinds += [kind for part in parts if re.search(rf"(?<![a-z])(?:{written})", part)]
    return list(dict.fromkeys(kinds)) or (list(known) if parts else [])
