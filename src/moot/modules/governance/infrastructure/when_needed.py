"""CEL and the SQL parser take a quarter of a second to load: what stands here loads them when it is first used."""

from collections.abc import Mapping, Sequence
from functools import cache

from moot.modules.governance.domain.conditions import Facts, Finding, Problem, ToolProfile
from moot.modules.governance.domain.rules import (
    ConditionEngine,
    EnhancedRule,
    NamedCondition,
    RewriteSql,
    RuleIndex,
)

Columns = Mapping[str, list[str]]
"""Tables, and their columns."""


class Cel(ConditionEngine):
    def problems(self, rule: EnhancedRule, tools: Mapping[str, ToolProfile]) -> list[Problem]:
        return _cel().problems(rule, tools)

    def index(self, rules: Sequence[EnhancedRule], tools: Mapping[str, ToolProfile]) -> RuleIndex:
        return _cel().index(rules, tools)


def sql_guard(tables: Mapping[str, Columns] | None) -> NamedCondition:
    """The condition of that name; `tables` are those a tool may read, by the name of the tool."""

    @cache
    def loaded() -> NamedCondition:
        from moot.modules.governance.infrastructure.sql.condition import sql_condition  # noqa: PLC0415

        return sql_condition(tables)

    def guarded(facts: Facts) -> bool | Finding | None:
        return loaded()(facts)

    return guarded


def corrected_sql(sql: str, corrector: RewriteSql, columns: Columns) -> str | None:
    """The statement as a rule's corrector asks for it; None: that cannot be done."""
    from moot.modules.governance.infrastructure.sql.rewriting import rewrite  # noqa: PLC0415

    return rewrite(sql, **corrector.model_dump(exclude={"kind", "path"}), columns=columns)


@cache
def _cel() -> ConditionEngine:
    from moot.modules.governance.infrastructure.cel.index import CelConditions  # noqa: PLC0415

    return CelConditions()
