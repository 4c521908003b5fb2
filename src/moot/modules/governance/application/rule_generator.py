"""Makes rules from what a user says and what a tool's registration says, without a model.

It only ever adds: each word it knows can make one more rule, and there is no word that takes one away, switches one
off or allows anything. So an instruction in a description does nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, StrictStr

from moot.modules.governance.application.data_rules import (
    format_rules,
    period_rules,
    privacy_rules,
    rewriting,
    row_rules,
)
from moot.modules.governance.application.generator_words import (
    FormatName,
    columns_named,
    demands,
    fields_to_mask,
    locale_of,
    output_formats,
)
from moot.modules.governance.application.periods import Period, period_in
from moot.modules.governance.application.rule_drafts import Draft, breaks, literal, passes
from moot.modules.governance.application.tool_limits import (
    Count,
    Name,
    Number,
    ToolConfig,
    ToolSettings,
    allowed_tools,
    forbidden_tools,
    tool_rules,
)
from moot.modules.governance.domain.rules import EnhancedRule, RuleAction, RuleCategory, RuleSource
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale
from moot.shared.domain.validation import Strict, checked

REJECT, TERMINATE = RuleAction.REJECT, RuleAction.TERMINATE
PERIODS = ["本月", "最近30天", "2024年Q1", "last month", "last 7 days", "2024-01-01 to 2024-03-31"]

Share = Annotated[Number, Field(gt=0, le=1)]
Amount = Annotated[Number, Field(gt=0)]
ColumnName = Annotated[StrictStr, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


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
    period: Name | None = None
    time_column: ColumnName = "event_time"
    """The column by which statements are kept to the period; every table of the desk's database has this one."""
    output_format: FormatName | None = None
    max_rows: Count | None = None
    alignment_threshold: Share = 0.5


class Wish(Strict):
    """What a user has, wants, and says about it."""

    start: str = ""
    goal: str = Field(min_length=1, pattern=r"\S")
    description: str | None = None
    constraints: Constraints = Field(default_factory=Constraints)


class AgentConfig(Strict):
    """What is known about an agent. Without a goal or tools there are no rules about them; the limits always hold."""

    start: str = ""
    goal: str | None = None
    description: str | None = None
    constraints: Constraints | None = None
    allowed_tools: tuple[Name, ...] | None = None
    tool_configs: dict[Name, ToolConfig] = Field(default_factory=dict)
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
        wish = checked(Wish, given)
        draft = Draft(locale_of(goal, description, start))
        return _each_once(self._of_wish(draft, wish))

    def generate_goal_rules(self, goal: str, threshold: float = 0.5) -> list[EnhancedRule]:
        wish = checked(Wish, {"goal": goal, "constraints": {"alignment_threshold": threshold}})
        return list(_goal_rules(Draft(locale_of(goal)), wish.goal, wish.constraints.alignment_threshold))

    def generate_tool_rules(
        self,
        allowed_tools: Sequence[str] | None,
        tool_configs: Mapping[str, Any] | None = None,
        locale: Locale = DEFAULT_LOCALE,
    ) -> list[EnhancedRule]:
        """From a registration, which is trusted: these hold at once."""
        settings = checked(ToolSettings, {"allowed_tools": allowed_tools, "tool_configs": tool_configs or {}})
        return _each_once(tool_rules(Draft(locale, RuleSource.TOOL, "enforce"), settings))

    def generate_execution_rules(
        self, timeout_seconds: float = 60, max_retries: int = 3, locale: Locale = DEFAULT_LOCALE
    ) -> list[EnhancedRule]:
        return self._limits(locale, timeout_seconds=timeout_seconds, max_retries=max_retries)

    def generate_behavior_rules(
        self, max_iterations: int = 10, max_tokens: int = 10000, locale: Locale = DEFAULT_LOCALE
    ) -> list[EnhancedRule]:
        return self._limits(locale, max_iterations=max_iterations, max_tokens=max_tokens)

    def generate_all_rules(self, agent_config: Mapping[str, Any]) -> list[EnhancedRule]:
        """Of everything in the configuration: texts, constraints, tools and limits."""
        agent = checked(AgentConfig, agent_config)
        locale = locale_of(agent.goal, agent.description, agent.start) if agent.goal else DEFAULT_LOCALE
        rules = self.generate_behavior_rules(agent.max_iterations, agent.max_tokens, locale)
        rules += self.generate_execution_rules(agent.timeout_seconds, agent.max_retries, locale)
        if agent.allowed_tools is not None or agent.tool_configs:
            rules += self.generate_tool_rules(agent.allowed_tools, agent.tool_configs, locale)
        if agent.goal:
            rules += self.generate_from_user_input(
                agent.start, agent.goal, agent.description, agent.constraints
            )
        return _each_once(rules)

    def _of_wish(self, draft: Draft, wish: Wish) -> Iterator[EnhancedRule]:
        asked = wish.constraints
        yield from _goal_rules(draft, wish.goal, asked.alignment_threshold)
        yield from self._data_rules(draft, wish)
        if formats := output_formats(wish.goal, wish.description, laid_down=asked.output_format):
            yield from format_rules(draft, formats)
        if asked.allowed_tools is not None:
            yield allowed_tools(draft, asked.allowed_tools)
        if asked.forbidden_tools:
            yield forbidden_tools(draft, asked.forbidden_tools)
        yield from _limit_rules(draft, asked)

    def _data_rules(self, draft: Draft, wish: Wish) -> Iterator[EnhancedRule]:
        asked, columns, period = wish.constraints, _hidden(wish), self._period(wish)
        statements = rewriting(columns, period, asked.time_column, asked.max_rows)
        if columns:
            yield from privacy_rules(draft, columns, statements)
        if period:
            yield from period_rules(draft, period, asked.time_column, statements)
        if asked.max_rows:
            yield from row_rules(draft, asked.max_rows, statements)

    def _period(self, wish: Wish) -> Period | None:
        """What is laid down, else what is said first; anything after that can only narrow it."""
        today = self._clock.now().date()
        said = [period for part in demands(wish.goal, wish.description) if (period := period_in(part, today))]
        if wish.constraints.period is not None:
            laid_down = period_in(wish.constraints.period, today)
            if laid_down is None:
                raise _no_period(wish.constraints.period)
            said.insert(0, laid_down)
        for later in said[1:]:
            said[0] = said[0].narrowed_to(later)
        return said[0] if said else None

    def _limits(self, locale: Locale, **limits: float) -> list[EnhancedRule]:
        return list(_limit_rules(Draft(locale), checked(Constraints, limits)))


def accept(rules: Iterable[EnhancedRule]) -> list[EnhancedRule]:
    """The same rules, as somebody who has read them wants them: in force."""
    return [rule.model_copy(update={"mode": "enforce"}) for rule in rules]


def _each_once(rules: Iterable[EnhancedRule]) -> list[EnhancedRule]:
    return list({rule.id: rule for rule in rules}.values())


def _hidden(wish: Wish) -> tuple[str, ...]:
    named = [column for field in wish.constraints.mask_fields for column in columns_named(field) or [field]]
    return tuple(dict.fromkeys([*named, *fields_to_mask(wish.start, wish.goal, wish.description)]))


def _no_period(got: str) -> InvalidInput:
    message = SAY("generated.period_unknown", got=got, allowed=PERIODS)
    problem = {"field": "constraints.period", "problem": "period_unknown", "got": got, "allowed": PERIODS}
    return InvalidInput(message, errors=[problem | {"hint": str(message)}])


def _goal_rules(draft: Draft, goal: str, threshold: float) -> Iterator[EnhancedRule]:
    """Below the threshold a decision strays from the goal; below half of it, it has nothing to do with it."""
    for kind, action, bound in (
        ("goal_alignment", RuleAction.SUGGEST, threshold),
        ("goal_deviation", REJECT, threshold / 2),
    ):
        yield draft.rule(
            kind,
            "has(context.goal) && has(context.alignment_score) && "
            f"!(context.alignment_score >= {literal(float(bound))})",
            action,
            RuleCategory.GOAL,
            decision_types=(),
            examples=[
                breaks(context={"goal": goal, "alignment_score": 0.0}),
                passes(context={"goal": goal, "alignment_score": 1.0}),
                passes(),
            ],
            said={"goal": goal if len(goal) <= 60 else goal[:59] + "…", "bound": bound},
        )


LIMITS: dict[str, tuple[str, RuleAction, RuleCategory]] = {
    "max_iterations": ("iteration_count", TERMINATE, RuleCategory.BEHAVIOR),
    "max_tokens": ("token_used", TERMINATE, RuleCategory.BEHAVIOR),
    "max_cost": ("cost", TERMINATE, RuleCategory.BEHAVIOR),
    "timeout_seconds": ("execution_time", TERMINATE, RuleCategory.EXECUTION),
    "max_retries": ("consecutive_failures", REJECT, RuleCategory.EXECUTION),
}
"""Which trusted figure each limit is about, and what follows when it is passed."""


def _limit_rules(draft: Draft, limits: Constraints) -> Iterator[EnhancedRule]:
    """They bite exactly where the framework knows the figure."""
    for kind, (fact, action, category) in LIMITS.items():
        most = getattr(limits, kind)
        if most is not None:
            yield draft.rule(
                kind,
                f"has(context.{fact}) && context.{fact} > {literal(most)}",
                action,
                category,
                decision_types=(),
                examples=[breaks(context={fact: most + 1}), passes(context={fact: most}), passes()],
                said={"most": int(most) if most == int(most) else most},
            )
