"""Makes rules from what a user lays down and what a tool's registration says, without a model.

It only ever adds, and of prose it knows a few words for fields to hide, a period and a format: no instruction in it
is followed. The rules themselves, with gaps: `generated_rules.yaml`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr
from pydantic_core import to_json

from moot.modules.governance.application.rule_files import NOON
from moot.modules.governance.domain.rules import EnhancedRule, RuleSource
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.messages import DEFAULT_LOCALE, LOCALES, Locale
from moot.shared.domain.validation import Strict, checked, refuse

HIDING = re.compile(
    r"(?i)脱敏|打码|掩码|屏蔽|隐藏|匿名|敏感|隐私|泄露|\b(?:mask|anonymi|redact|hid|sensitive)"
)
PRODUCED = re.compile(
    r"(?i)(?:生成|输出|导出|制作|generat\w*|export|produce|write|output|create|make)[^。；;.!?\n]*?"
    r"(excel|csv|json|pdf|markdown|html|report|报表|报告)"
)
PERIODS = {"本月|this month": (1, 0), "上个月|上月|last month": (1, 1), "本季度|this quarter": (3, 0),
           "今年|本年|this year": (12, 0), "去年|last year": (12, 1)}  # fmt: skip
"""How many months each is long, and how many of its length ago."""
DAYS = re.compile(r"(\d{4}-\d\d-\d\d)\s*(?:至|到|to|~)\s*(\d{4}-\d\d-\d\d)")
LIMITS = ("max_iterations", "max_tokens", "max_cost", "timeout_seconds", "max_retries")


def _period(text: str) -> str:
    allowed = [*"|".join(PERIODS).split("|"), "2024-01-01 to 2024-03-31"]
    if period_in(text, NOON.date()) is None:
        raise refuse("literal_error", got=text, allowed=allowed)
    return text


def _rate(raw: Any) -> Any:
    """`10/min`, `100 per hour`."""
    if not isinstance(raw, str):
        return raw
    if match := re.fullmatch(r"\s*(\d+)\s*(?:/|per)\s*([smhd])[a-z]*\s*", raw.lower()):
        return {"calls": int(match[1]), "per_seconds": {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]}
    raise refuse("literal_error", got=raw, allowed=["10/min", '{"calls": 10, "per_seconds": 60}'])


Name = Annotated[StrictStr, Field(min_length=1, max_length=200, pattern=r"\S")]
ArgumentName = Annotated[StrictStr, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Count = Annotated[StrictInt, Field(ge=1, le=10**12)]
Amount = Annotated[Number, Field(gt=0)]


class RateLimit(Strict):
    calls: Annotated[StrictInt, Field(ge=1, le=10_000)]
    per_seconds: Count


class ToolConfig(Strict):
    """`forbidden_operations` are words that no text among the arguments may hold (DROP, DELETE)."""

    forbidden_params: tuple[ArgumentName, ...] = ()
    forbidden_operations: tuple[Name, ...] = ()
    rate_limit: Annotated[RateLimit, BeforeValidator(_rate)] | None = None


class ToolSettings(Strict):
    """Without `allowed_tools` any may be called. An empty list is refused: no call would keep to it."""

    allowed_tools: tuple[Name, ...] | None = Field(default=None, min_length=1)
    tool_configs: dict[Name, ToolConfig] = Field(default_factory=dict)


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
    period: Annotated[Name, AfterValidator(_period)] | None = None
    time_column: ArgumentName = "event_time"
    """The column by which statements are kept to the period; every table of the desk's database has this one."""
    output_format: Literal["report", "excel", "csv", "json", "pdf", "markdown", "html"] | None = None
    max_rows: Count | None = None
    alignment_threshold: Annotated[Number, Field(gt=0, le=1)] = 0.5


class Wish(Strict):
    """What a user has, wants, and says about it."""

    start: str = ""
    goal: str = Field(min_length=1, pattern=r"\S")
    description: str | None = None
    constraints: Constraints = Field(default_factory=Constraints)


class AgentConfig(ToolSettings):
    """What is known about an agent. Without a goal or tools there are no rules about them; the limits always hold."""

    start: str = ""
    goal: str | None = None
    description: str | None = None
    constraints: Constraints | None = None
    timeout_seconds: Amount = 60
    max_retries: Count = 3
    max_iterations: Count = 10
    max_tokens: Count = 10000


class RuleGenerator:
    """Periods such as "this month" are those of the moment of generation."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def generate_from_user_input(
        self,
        start: str,
        goal: str,
        description: str | None = None,
        constraints: Mapping[str, Any] | Constraints | None = None,
    ) -> list[EnhancedRule]:
        """In shadow until somebody accepts them (`accept`)."""
        given = {"start": start, "goal": goal, "description": description, "constraints": constraints or {}}
        return list(_of_wish(checked(Wish, given), self._clock.now().date()))

    def generate_goal_rules(self, goal: str, threshold: float = 0.5) -> list[EnhancedRule]:
        wish = checked(Wish, {"goal": goal, "constraints": {"alignment_threshold": threshold}})
        return [rule for rule in _of_wish(wish, self._clock.now().date()) if rule.category == "goal"]

    def generate_tool_rules(
        self,
        allowed_tools: Sequence[str] | None,
        tool_configs: Mapping[str, Any] | None = None,
        locale: Locale = DEFAULT_LOCALE,
    ) -> list[EnhancedRule]:
        """From a registration, which is trusted: these hold at once."""
        settings = checked(ToolSettings, {"allowed_tools": allowed_tools, "tool_configs": tool_configs or {}})
        draft = Draft(locale, RuleSource.TOOL, "enforce")
        rules = list(draft.about_tools("tool_whitelist", settings.allowed_tools))
        for name, config in settings.tool_configs.items():
            rules += _of_tool(draft, name, config)
        return rules

    def generate_execution_rules(
        self, timeout_seconds: float = 60, max_retries: int = 3, locale: Locale = DEFAULT_LOCALE
    ) -> list[EnhancedRule]:
        asked = checked(Constraints, {"timeout_seconds": timeout_seconds, "max_retries": max_retries})
        return list(_of_limits(Draft(locale), asked))

    def generate_behavior_rules(
        self, max_iterations: int = 10, max_tokens: int = 10000, locale: Locale = DEFAULT_LOCALE
    ) -> list[EnhancedRule]:
        asked = checked(Constraints, {"max_iterations": max_iterations, "max_tokens": max_tokens})
        return list(_of_limits(Draft(locale), asked))

    def generate_all_rules(self, agent_config: Mapping[str, Any]) -> list[EnhancedRule]:
        """Of everything in the configuration: texts, constraints, tools and limits."""
        agent = checked(AgentConfig, agent_config)
        said = (agent.start, agent.goal or "", agent.description)
        locale = _locale_of(*said) if agent.goal else DEFAULT_LOCALE
        rules = self.generate_behavior_rules(agent.max_iterations, agent.max_tokens, locale)
        rules += self.generate_execution_rules(agent.timeout_seconds, agent.max_retries, locale)
        rules += self.generate_tool_rules(agent.allowed_tools, agent.tool_configs, locale)
        rules += self.generate_from_user_input(*said, agent.constraints) if agent.goal else []
        return list({rule.id: rule for rule in rules}.values())


def accept(rules: Iterable[EnhancedRule]) -> list[EnhancedRule]:
    """The same rules, as somebody who has read them wants them: in force."""
    return [rule.model_copy(update={"mode": "enforce"}) for rule in rules]


@dataclass(frozen=True)
class Draft:
    """What all rules of one generation share. `locale` is the language of their names."""

    locale: Locale
    source: RuleSource = RuleSource.GENERATED
    mode: Literal["enforce", "shadow"] = "shadow"

    def rules(self, kind: str, **said: Any) -> Iterator[EnhancedRule]:
        """Of one kind. `said` fills the gaps and the texts `generated.<kind>`."""
        for template in _data()["rules"][kind]:
            for argument in template.get("arguments", [""]):
                gaps = {**said, "argument": argument, "field": f"payload.args.{argument}"}
                gaps["if_sql"] = _data()["if_sql"].get(argument, "")
                yield self._rule(kind, template, gaps | _filled(template.get("gaps", {}), gaps))

    def about_tools(self, kind: str, names: Sequence[str] | None) -> Iterator[EnhancedRule]:
        if names:
            yield from self.rules(kind, tools=list(names), tool=names[0], other=max(names, key=len) + "_")

    def _rule(self, kind: str, template: Mapping[str, Any], gaps: Mapping[str, Any]) -> EnhancedRule:
        texts = {
            text: {locale: SAY(f"generated.{kind}.{text}", **gaps).in_locale(locale) for locale in LOCALES}
            for text in ("name", "description", "suggestion")
        }
        parts = ("category", "action", "tools", "decision_types", "corrector", "breaks", "keeps")
        filled = {part: _filled(template[part], gaps) for part in parts if part in template}
        filled["condition"] = _expression(template["condition"], gaps)
        examples = [(True, filled.pop("breaks")), (False, filled.pop("keeps"))]
        rule = {
            "id": f"gen_{kind}_{sha256(to_json([filled, texts])).hexdigest()[:8]}",
            "name": texts["name"][self.locale][:200],
            "description": texts["description"][self.locale],
            "source": self.source,
            "mode": self.mode,
            "decision_types": ("tool_call",),
            "examples": [{"violates": is_one, "decision_type": "tool_call", **of} for is_one, of in examples],
            "metadata": {"kind": kind, "name": texts["name"], "suggestion": texts["suggestion"]},
        }
        return checked(EnhancedRule, rule | filled)


@cache
def _data() -> Mapping[str, Any]:
    text = (Path(__file__).parent / "generated_rules.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def _filled(part: Any, gaps: Mapping[str, Any]) -> Any:
    if isinstance(part, dict):
        return {_filled(name, gaps): _filled(value, gaps) for name, value in part.items()}
    if isinstance(part, list):
        return [_filled(each, gaps) for each in part]
    if not isinstance(part, str):
        return part
    gap = re.fullmatch(r"<(\w+)>", part)
    return gaps[gap[1]] if gap else Template(part).safe_substitute(gaps)


def _expression(condition: str, gaps: Mapping[str, Any]) -> str:
    """What a user wrote goes in last and as a literal: it is never read as a gap."""
    told = Template(condition).safe_substitute(gaps)
    return re.sub(r"<(\w+)>", lambda gap: to_json(gaps[gap[1]]).decode(), told)


def _of_wish(wish: Wish, today: date) -> Iterator[EnhancedRule]:
    draft, asked = Draft(_locale_of(wish.goal, wish.description, wish.start)), wish.constraints
    goal = wish.goal if len(wish.goal) <= 60 else wish.goal[:59] + "…"
    yield from draft.rules("goal_alignment", goal=goal, bound=asked.alignment_threshold)
    yield from draft.rules("goal_deviation", goal=goal, bound=asked.alignment_threshold / 2)
    yield from _of_data(draft, wish, today)
    said = PRODUCED.search(f"{wish.goal}\n{wish.description}")
    if name := asked.output_format or (said and (said[1].lower() if said[1].isascii() else "report")):
        values = _data()["formats"][name].split()
        any_of = "|".join(values)
        ways = {"whole": rf"(?i)^\.?(?:{any_of})$", "ending": rf"(?i)\.(?:{any_of})$", "usual": values[0]}
        yield from draft.rules("output_format", formats=[name], values=values, **ways)
    yield from draft.about_tools("tool_whitelist", asked.allowed_tools)
    yield from draft.about_tools("tool_blacklist", asked.forbidden_tools)
    yield from _of_limits(draft, asked)


def _of_limits(draft: Draft, asked: Constraints) -> Iterator[EnhancedRule]:
    """They bite exactly where the framework knows the figure."""
    for kind in LIMITS:
        if (limit := getattr(asked, kind)) is not None:
            yield from draft.rules(kind, limit=limit, beyond=limit + 1, most=f"{limit:.15g}")


def _of_data(draft: Draft, wish: Wish, today: date) -> Iterator[EnhancedRule]:
    asked, fields = wish.constraints, _hidden(wish)
    texts = [wish.description or "", wish.goal] if asked.period is None else [asked.period]
    since, until = next(filter(None, (period_in(text, today) for text in texts)), (None, None))
    known: Mapping[str, str] = _data()["fields"]
    mask = [column for kind in fields for column in (known[kind].split() if kind in known else [kind])]
    gaps = {"mask": mask, "limit": asked.max_rows, **dict.fromkeys(("column", "since", "until"))}
    if since and until:
        gaps |= {"column": asked.time_column, "since": str(since), "until": str(until)}
        gaps |= {"last": str(until - timedelta(days=1)), "first": f"{since:%Y%m%d}", "end": f"{until:%Y%m%d}"}
    if mask:
        named = [SAY(f"generated.field.{kind}") if kind in known else kind for kind in fields]
        yield from draft.rules("privacy", **gaps, fields=named, hidden=mask[0])
    if since:
        yield from draft.rules("time_filter", **gaps)
        yield from draft.rules("time_range", **gaps)
    if asked.max_rows:
        yield from draft.rules("max_rows", **gaps, most=asked.max_rows, beyond=asked.max_rows + 1)


def _of_tool(draft: Draft, tool: str, config: ToolConfig) -> Iterator[EnhancedRule]:
    if names := config.forbidden_params:
        yield from draft.rules("forbidden_parameters", tool=tool, names=list(names), first=names[0])
    if words := config.forbidden_operations:
        pattern = rf"(?i)(?:^|[^\w])(?:{'|'.join(map(re.escape, words))})(?:$|[^\w])"
        yield from draft.rules(
            "forbidden_operations", tool=tool, words=words, first=words[0], pattern=pattern
        )
    if rate := config.rate_limit:
        calls, seconds = rate.calls, rate.per_seconds
        past = [{"tool": tool, "at": (NOON - timedelta(seconds=0.5)).isoformat()}] * calls
        examples = {"past": past, "fewer": past[1:]}
        period = f"{seconds}s"
        yield from draft.rules(
            "rate_limit", tool=tool, calls=calls, seconds=seconds, period=period, **examples
        )


def period_in(text: str, today: date) -> tuple[date, date] | None:
    """The first period a text names: its first day, and the day after its last."""
    if match := DAYS.search(text):
        try:
            return date.fromisoformat(match[1]), date.fromisoformat(match[2]) + timedelta(days=1)
        except ValueError:
            return None
    said = [(match, span) for words, span in PERIODS.items() if (match := re.search(words, text.lower()))]
    if not said:
        return None
    months, ago = min(said, key=lambda found: found[0].start())[1]
    first = today.year * 12 + (today.month - 1) // months * months - ago * months
    since, until = (date(month // 12, month % 12 + 1, 1) for month in (first, first + months))
    return since, until


def _hidden(wish: Wish) -> list[str]:
    """What the columns to hide are about; all, when a text asks for hiding and does not say of what."""
    known: Mapping[str, str] = _data()["fields"]
    text = "\n".join([wish.start, wish.goal, wish.description or ""]).lower()
    hiding = [part for part in re.split(r"[。；;！!？?\n]|\.(?=\s|$)", text) if HIDING.search(part)]
    laid_down = [field.lower() for field in wish.constraints.mask_fields]
    kinds = [next((k for k, names in known.items() if field in names.split()), field) for field in laid_down]
    kinds += [kind for kind, names in known.items() if any(_mentions(part, names) for part in hiding)]
    return list(dict.fromkeys(kinds)) or (list(known) if hiding else [])


def _mentions(text: str, names: str) -> bool:
    written = (rf"\b{name.replace('_', '[_ ]?')}s?\b" if name.isascii() else name for name in names.split())
    return any(re.search(each, text) for each in written)


def _locale_of(*texts: str | None) -> Locale:
    return "zh-CN" if re.search(r"[一-鿿]", " ".join(filter(None, texts))) else "en-US"
