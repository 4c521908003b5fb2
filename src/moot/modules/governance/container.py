"""Assembles governance: the engine, the rules in force, the validator, the record, and the agent that has all."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from moot.modules.governance.application.circuit_breaker import Breakers
from moot.modules.governance.application.coordinator_agent import CoordinatorAgent
from moot.modules.governance.application.corrections import Corrections
from moot.modules.governance.application.decision_validator import DecisionValidator, Rules
from moot.modules.governance.application.enhanced_rule_repository import EnhancedRuleRepository
from moot.modules.governance.application.error_handler import ErrorHandler, ErrorHandlingPolicy
from moot.modules.governance.application.escalations import EscalationService
from moot.modules.governance.application.execution_monitor import ExecutionMonitor, WorkflowJournal
from moot.modules.governance.application.facts import payload_schema, unproven_argument
from moot.modules.governance.application.goal_alignment_checker import AlignmentOpinion, OpinionOnAlignment
from moot.modules.governance.application.rule_files import RuleReader
from moot.modules.governance.application.rule_generator import RuleGenerator
from moot.modules.governance.application.rulesets import Active, RulesetService
from moot.modules.governance.domain.conditions import Facts, Finding, ToolProfile
from moot.modules.governance.domain.decisions import DecisionLog, DecisionRequest, ValidationResult
from moot.modules.governance.domain.escalations import Escalation, EscalationQueue
from moot.modules.governance.domain.rules import ConditionEngine, EnhancedRule, NamedCondition, RewriteSql
from moot.modules.governance.infrastructure.alignment_measures import (
    EmbeddingOpinion,
    ModelOpinion,
    word_llama,
)
from moot.modules.governance.infrastructure.persistence.decision_log import (
    DECISION,
    ESCALATION,
    SqlDecisionLog,
    SqlEscalationQueue,
)
from moot.modules.governance.infrastructure.persistence.ruleset_store import SqlRulesetStore
from moot.modules.llm_platform.application.llm_service import LLMService
from moot.shared.domain.clock import Clock, SystemClock
from moot.shared.infrastructure.audit_trail import AuditTrail

__all__ = ["DECISION_KINDS", "GovernanceContainer", "RuleBook", "alignment_opinion"]

DECISION_KINDS = (DECISION, ESCALATION)

FOLDER = Path(__file__).parent / "infrastructure" / "rules"
PROFILES: dict[str, tuple[str, ...]] = {
    "presets": ("presets",),
    "tools": ("presets", "tools"),
    "research": ("presets", "research", "tools"),
    "default": ("presets", "research", "risk", "ashare", "tools"),
    "none": (),
}
"""The rules that come with Moot: a file each, put together to profiles."""
Columns = Mapping[str, list[str]]
"""Tables, and their columns."""


def load_cel() -> ConditionEngine:
    """CEL and the SQL parser take a quarter of a second to load: they are loaded when they are first used."""
    from moot.modules.governance.infrastructure.cel.index import CelConditions

    return CelConditions()


def guard_sql(facts: Facts, tables: Mapping[str, Columns]) -> Finding | None:
    from moot.modules.governance.infrastructure.sql.condition import sql_guard

    return sql_guard(facts, tables)


def correct_sql(sql: str, corrector: RewriteSql, columns: Columns) -> str | None:
    """The statement as a rule's corrector asks for it; None: that cannot be done."""
    from moot.modules.governance.infrastructure.sql.rewriting import rewrite

    return rewrite(sql, **corrector.model_dump(exclude={"kind", "path"}), columns=columns)


class RuleBook(RuleReader):
    """What is needed to read rules and to decide by them: no database, no desk.

    `tables` are those that SQL may read, by the tool it is for.
    """

    def __init__(
        self,
        tools: Mapping[str, ToolProfile | Mapping[str, Any]] | None = None,
        *,
        tables: Mapping[str, Columns] | None = None,
    ) -> None:
        profiles = {name: ToolProfile.model_validate(tool) for name, tool in (tools or {}).items()}
        tables = tables or {}
        conditions: dict[str, NamedCondition] = {
            "payload_schema@1": payload_schema,
            "sql_guard@1": partial(guard_sql, tables=tables),
            "unproven_argument@1": unproven_argument,
        }
        known = {name: columns for each in tables.values() for name, columns in each.items()}
        corrections = Corrections(lambda sql, corrector: correct_sql(sql, corrector, known))
        super().__init__(load_cel, profiles, conditions, corrections, self._replaceable)
        self._files: dict[str, list[EnhancedRule]] = {}

    def read_shipped(
        self, profile: str = "default", beside: Sequence[EnhancedRule] = ()
    ) -> list[EnhancedRule]:
        """The rules of a profile, but for those that others of them, or the ones they are to stand `beside`, replace.

        What only tightens replaces nothing.
        """
        rules = [rule for name in PROFILES[profile] for rule in self._read_file(name)]
        replaced = {rule.metadata.get("replaces") for rule in (*rules, *beside) if not rule.tightens}
        return [rule for rule in rules if rule.id not in replaced]

    def _read_file(self, name: str) -> list[EnhancedRule]:
        """As they were tried before Moot was released."""
        if name not in self._files:
            text = (FOLDER / f"{name}.yaml").read_text("utf-8")
            self._files[name] = self.read(text, f"{name}.yaml", tried=True)
        return self._files[name]

    def _replaceable(self) -> list[str]:
        return [rule.id for name in PROFILES["default"] for rule in self._read_file(name)]

    def repository(self, rules: Sequence[EnhancedRule] = ()) -> EnhancedRuleRepository:
        return EnhancedRuleRepository(rules, reader=self, defaults=self.read_shipped("presets"))

    def validator(self, repository: Rules, *, clock: Clock | None = None) -> DecisionValidator:
        return DecisionValidator(repository, self.tools, self.corrections, clock or SystemClock())


class GovernanceContainer:
    """`trail` None: nothing is kept, the shipped rules decide, and nobody can be asked.

    `on_answer` is told when a person has decided what something waits for. `opinion` is asked how well an action
    serves its goal; None: the words decide.
    """

    def __init__(
        self,
        *,
        trail: AuditTrail | None,
        clock: Clock,
        strict: bool = False,
        book: RuleBook | None = None,
        policy: ErrorHandlingPolicy | None = None,
        journal: WorkflowJournal | None = None,
        on_answer: Callable[[Escalation], Awaitable[None]] | None = None,
        breakers: Breakers | None = None,
        opinion: AlignmentOpinion | None = None,
    ) -> None:
        self.book = book or RuleBook()
        self._clock = clock
        validator = self.book.validator(self, clock=clock)
        handler = ErrorHandler(policy or ErrorHandlingPolicy())
        store = SqlRulesetStore(trail.database) if trail else None
        self.rulesets = (
            RulesetService(store, self.book, clock=clock, shipped=self.book.read_shipped) if store else None
        )
        self.decisions = SqlDecisionLog(trail, strict=strict) if trail else DecisionLog()
        queue = SqlEscalationQueue(trail) if trail else EscalationQueue()
        self.escalations = EscalationService(queue, clock, self._waive, on_answer)
        self.agent = CoordinatorAgent(
            validator,
            ExecutionMonitor(handler, SystemClock(), journal=journal),
            handler,
            breakers or Breakers(SystemClock()),
            rules=self.in_force,
            log=self.decisions,
            escalations=self.escalations,
            alignment=OpinionOnAlignment(opinion) if opinion else None,
        )

    @property
    def rule_generator(self) -> RuleGenerator:
        return RuleGenerator(self._clock)

    @cached_property
    def aside(self) -> ThreadPoolExecutor:
        """Where decisions of any size are judged while the event loop goes on; its threads begin with the first."""
        return ThreadPoolExecutor(2, thread_name_prefix="moot-decisions")

    @cached_property
    def active(self) -> Active:
        """The rules that come with Moot, made ready when the first decision is made by them."""
        return self.book.repository(self.book.read_shipped()).active

    async def in_force(self, workspace: str) -> Active:
        """The rules of the workspace; where nothing is stored, those that came with the package."""
        return await self.rulesets.active(workspace) if self.rulesets else self.active

    async def _waive(self, request: DecisionRequest, workspace: str) -> ValidationResult:
        return await self.agent.validate(request, workspace, waived=True)


def alignment_opinion(
    measure: Literal["words", "embeddings", "model"], llm: LLMService
) -> AlignmentOpinion | None:
    """Who is asked how well an action serves its goal. Raises `InvalidInput` when `embeddings` are not installed."""
    if measure == "embeddings":
        return EmbeddingOpinion(word_llama())
    return ModelOpinion(llm) if measure == "model" else None
