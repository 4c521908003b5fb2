"""What a tool's registration may say about its use, and the rules that follow from it."""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, StrictStr, model_validator

from moot.modules.governance.application.rule_checks import NOON
from moot.modules.governance.application.rule_drafts import (
    Draft,
    breaks,
    either,
    listed,
    literal,
    matches,
    passes,
)
from moot.modules.governance.domain.correctors import Clamp
from moot.modules.governance.domain.rules import EnhancedRule, RuleAction, RuleCategory
from moot.shared.domain.validation import Strict, refuse

TOOL, EXECUTION = RuleCategory.TOOL, RuleCategory.EXECUTION
SUGGEST, REJECT = RuleAction.SUGGEST, RuleAction.REJECT

Name = Annotated[StrictStr, Field(min_length=1, max_length=200, pattern=r"\S")]
ArgumentName = Annotated[StrictStr, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Count = Annotated[StrictInt, Field(ge=1, le=10**12)]

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "秒": 1, "分": 60, "小": 3600, "时": 3600, "天": 86400}
"""By the first letter of the unit."""
RATES = ["10/min", "100/hour", "每分钟10次", '{"calls": 10, "per_seconds": 60}']


class RateLimit(Strict):
    calls: Annotated[StrictInt, Field(ge=1, le=10_000)]
    per_seconds: Count


def _rate(raw: Any) -> Any:
    """`10/min`, `100 per hour` and `每分钟最多10次` in words."""
    if not isinstance(raw, str):
        return raw
    if match := re.fullmatch(r"\s*(\d+)\s*(?:/|per)\s*(s|m|h|d)[a-z]*\s*", raw.lower()):
        return {"calls": int(match[1]), "per_seconds": SECONDS[match[2]]}
    if match := re.fullmatch(r"\s*每(秒|分|小|时|天)[钟时]*(?:最多)?(\d+)次?\s*", raw):
        return {"calls": int(match[2]), "per_seconds": SECONDS[match[1]]}
    raise refuse("literal_error", got=raw, allowed=RATES)


class ParameterLimit(Strict):
    """What one argument may be."""

    min: Number | None = None
    max: Number | None = None
    allowed: tuple[StrictStr | StrictBool | StrictInt | Number, ...] | None = Field(
        default=None, min_length=1
    )

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.min is None and self.max is None and self.allowed is None:
            raise refuse("literal_error", got={}, allowed=list(ParameterLimit.model_fields))
        if self.min is not None and self.max is not None and self.min > self.max:
            raise refuse("out_of_range", got=self.min, allowed=[f"<= {self.max}"])
        return self


class ToolConfig(Strict):
    """`forbidden_operations` are words that no text among the arguments may hold (DROP, DELETE).

    That is for tools in general; what a SQL statement may do, the SQL guard decides from its syntax.
    """

    params: dict[ArgumentName, ParameterLimit] = Field(default_factory=dict)
    forbidden_params: tuple[ArgumentName, ...] = ()
    forbidden_operations: tuple[Name, ...] = ()
    rate_limit: Annotated[RateLimit, BeforeValidator(_rate)] | None = None
    max_concurrent: Count | None = None


class ToolSettings(Strict):
    """Without `allowed_tools` any may be called. An empty list is refused: no call would keep to it."""

    allowed_tools: tuple[Name, ...] | None = Field(default=None, min_length=1)
    tool_configs: dict[Name, ToolConfig] = Field(default_factory=dict)


def tool_rules(draft: Draft, settings: ToolSettings) -> Iterator[EnhancedRule]:
    if settings.allowed_tools is not None:
        yield allowed_tools(draft, settings.allowed_tools)
    for tool, config in settings.tool_configs.items():
        for name, limit in config.params.items():
            yield from _parameter(draft, tool, name, limit)
        if config.forbidden_params:
            yield _forbidden_params(draft, tool, config.forbidden_params)
        if config.forbidden_operations:
            yield _forbidden_operations(draft, tool, config.forbidden_operations)
        if config.rate_limit:
            yield _rate_limit(draft, tool, config.rate_limit)
        if config.max_concurrent:
            yield _concurrency(draft, tool, config.max_concurrent)


def allowed_tools(draft: Draft, names: tuple[str, ...]) -> EnhancedRule:
    return draft.rule(
        "tool_whitelist",
        f"!(payload.tool in {listed(names)})",
        REJECT,
        TOOL,
        examples=[breaks(tool=_none_of(names)), passes(tool=names[0])],
        said={"tools": list(names)},
    )


def forbidden_tools(draft: Draft, names: tuple[str, ...]) -> EnhancedRule:
    return draft.rule(
        "tool_blacklist",
        f"payload.tool in {listed(names)}",
        REJECT,
        TOOL,
        examples=[breaks(tool=names[0]), passes(tool=_none_of(names))],
        said={"tools": list(names)},
    )


def _parameter(draft: Draft, tool: str, name: str, limit: ParameterLimit) -> Iterator[EnhancedRule]:
    field = f"payload.args.{name}"
    if limit.min is not None or limit.max is not None:
        yield _range(draft, tool, name, limit.min, limit.max)
    if limit.allowed is not None:
        yield draft.rule(
            "allowed_values",
            f"has({field}) && !(dyn({field}) in {listed(limit.allowed)})",
            REJECT,
            TOOL,
            tools=(tool,),
            examples=[
                breaks({name: _another(limit.allowed)}, tool=tool),
                passes({name: limit.allowed[0]}, tool=tool),
            ],
            said={"tool": tool, "name": name, "values": list(limit.allowed)},
        )


def _another(values: tuple[str | bool | float, ...]) -> str | float:
    """A value like the first that is none of them."""
    first = values[0]
    if isinstance(first, str):
        return _none_of([value for value in values if isinstance(value, str)])
    return (not first) if isinstance(first, bool) else max(v for v in values if not isinstance(v, str)) + 1


def _none_of(names: Sequence[str]) -> str:
    return max(names, key=len) + "_"


def _range(draft: Draft, tool: str, name: str, low: float | None, high: float | None) -> EnhancedRule:
    """Asked the wrong way round, so that NaN, which is neither too small nor too large, does not pass."""
    field = f"payload.args.{name}"
    limits = {">=": low, "<=": high}
    bounds = [f"dyn({field}) {sign} {literal(float(to))}" for sign, to in limits.items() if to is not None]
    outside = _whole(high + 1 + abs(high) if high is not None else (low or 0) - 1 - abs(low or 0))
    inside = _whole(high if high is not None else low or 0)
    return draft.rule(
        "parameter_range",
        f"has({field}) && !({' && '.join(bounds)})",
        SUGGEST,
        TOOL,
        tools=(tool,),
        examples=[breaks({name: outside}, tool=tool), passes({name: inside}, tool=tool)],
        said={"tool": tool, "name": name, "low": _shown(low), "high": _shown(high)},
        corrector=Clamp(kind="clamp", path=field, at_least=low, at_most=high),
    )


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number


def _shown(bound: float | None) -> str:
    return "…" if bound is None else f"{_whole(bound)}"


def _forbidden_params(draft: Draft, tool: str, names: tuple[str, ...]) -> EnhancedRule:
    given = " || ".join(f"has(payload.args.{name})" for name in names)
    return draft.rule(
        "forbidden_parameters",
        f"payload.tool == {literal(tool)} && ({given})",
        REJECT,
        TOOL,
        examples=[breaks({names[0]: "x"}, tool=tool), passes(tool=tool)],
        said={"tool": tool, "names": list(names)},
    )


def _forbidden_operations(draft: Draft, tool: str, words: tuple[str, ...]) -> EnhancedRule:
    """Whole words in any case: `drop_rate` is no DROP."""
    pattern = rf"(?i)(?:^|[^\w]){either(words)}(?:$|[^\w])"
    text = "payload.args[a]"
    said_so = f"type({text}) == string && {matches(text, pattern)}"
    return draft.rule(
        "forbidden_operations",
        f"payload.tool == {literal(tool)} && payload.args.exists(a, {said_so})",
        REJECT,
        TOOL,
        examples=[breaks({"text": words[0]}, tool=tool), passes(tool=tool)],
        said={"tool": tool, "words": list(words)},
    )


def _rate_limit(draft: Draft, tool: str, rate: RateLimit) -> EnhancedRule:
    just_now, before = (
        {"tool": tool, "at": (NOON - timedelta(seconds=seconds)).isoformat()}
        for seconds in (0.5, rate.per_seconds + 1)
    )
    return draft.rule(
        "rate_limit",
        f"count({literal(tool)}, {literal(f'{rate.per_seconds}s')}) >= {rate.calls}",
        REJECT,
        EXECUTION,
        tools=(tool,),
        examples=[
            breaks(tool=tool, context={"history": [just_now] * rate.calls}),
            passes(tool=tool, context={"history": [before] + [just_now] * (rate.calls - 1)}),
        ],
        said={"tool": tool, "calls": rate.calls, "seconds": rate.per_seconds},
    )


def _concurrency(draft: Draft, tool: str, most: int) -> EnhancedRule:
    return draft.rule(
        "concurrency",
        f"has(context.running) && context.running >= {most}",
        REJECT,
        EXECUTION,
        tools=(tool,),
        examples=[
            breaks(tool=tool, context={"running": most}),
            passes(tool=tool, context={"running": most - 1}),
        ],
        said={"tool": tool, "most": most},
    )
