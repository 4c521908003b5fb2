"""The pieces generated rules are made of: expressions, examples, and a rule that is named for what it says."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from moot.modules.governance.domain.correctors import Corrector
from moot.modules.governance.domain.rules import EnhancedRule, Example, RuleAction, RuleCategory, RuleSource
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import LOCALES, Locale
from moot.shared.domain.validation import checked

TOOL_CALL = ("tool_call",)


@dataclass(frozen=True)
class Draft:
    """What all rules of one generation share. `locale` is the language of their names."""

    locale: Locale
    source: RuleSource = RuleSource.GENERATED
    mode: Literal["enforce", "shadow"] = "shadow"

    def rule(
        self,
        kind: str,
        condition: str,
        action: RuleAction,
        category: RuleCategory,
        *,
        examples: Iterable[Example],
        said: Mapping[str, Any],
        decision_types: tuple[str, ...] = TOOL_CALL,
        tools: tuple[str, ...] = (),
        corrector: Corrector | None = None,
    ) -> EnhancedRule:
        """`said` fills in the texts `generated.<kind>`, and tells apart two rules that decide alike."""
        made_from = [kind, condition, action, tools, corrector and corrector.model_dump(), dict(said)]
        texts = _texts(kind, said)
        rule = {
            "id": f"gen_{kind}_{_digest(made_from)}",
            "name": texts["name"][self.locale][:200],
            "description": texts["description"][self.locale],
            "condition": condition,
            "action": action,
            "category": category,
            "source": self.source,
            "mode": self.mode,
            "decision_types": decision_types,
            "tools": tools,
            "corrector": corrector,
            "examples": tuple(examples),
            "metadata": {"kind": kind, "name": texts["name"], "suggestion": texts["suggestion"]},
        }
        return checked(EnhancedRule, rule)


def _texts(kind: str, said: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    return {
        text: {locale: SAY(f"generated.{kind}.{text}", **said).in_locale(locale) for locale in LOCALES}
        for text in ("name", "description", "suggestion")
    }


def _digest(made_from: Any) -> str:
    return sha256(json.dumps(made_from, sort_keys=True, default=str).encode()).hexdigest()[:8]


def literal(value: str | float | bool) -> str:
    """A value as an expression writes it."""
    return json.dumps(value, ensure_ascii=False)


def listed(values: Iterable[str | float | bool]) -> str:
    return "[" + ", ".join(map(literal, values)) + "]"


def matches(field: str, pattern: str) -> str:
    return f"{field}.matches({literal(pattern)})"


def either(words: Iterable[str]) -> str:
    return "(?:" + "|".join(map(re.escape, words)) + ")"


def breaks(
    arguments: Mapping[str, Any] | None = None,
    *,
    tool: str = "any_tool",
    context: Mapping[str, Any] | None = None,
) -> Example:
    """A tool call that breaks the rule."""
    payload = {"tool": tool, "args": dict(arguments or {})}
    return Example(violates=True, payload=payload, context=dict(context or {}), decision_type="tool_call")


def passes(
    arguments: Mapping[str, Any] | None = None,
    *,
    tool: str = "any_tool",
    context: Mapping[str, Any] | None = None,
) -> Example:
    return breaks(arguments, tool=tool, context=context).model_copy(update={"violates": False})
