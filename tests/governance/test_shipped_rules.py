"""The rules that come with Moot: tried on their examples, told in both languages, and biting where they should."""

from functools import cache
from typing import Any

import pytest

from moot.modules.governance.container import FOLDER, PROFILES, RuleBook
from moot.modules.governance.domain.conditions import ToolProfile
from moot.modules.governance.domain.decisions import ValidationResult, ValidationStatus
from moot.modules.governance.domain.rules import EnhancedRule, RuleSource
from tests.governance.factories import request

BOOK = RuleBook()
VERDICT = {
    "symbol": "900001.DEMO",
    "action": "BUY",
    "position_percent": 0.15,
    "confidence": 0.7,
    "stop_loss": "9.20",
    "take_profit": "12.00",
    "entry_strategy": "In two steps.",
    "time_horizon": "3-6 months",
    "risk_warnings": ["Margins", "Rates"],
    "reasoning": "Growth at a fair price.",
    "engine": "rubric",
    "levels": {"entry": 10.0, "stop": 9.2, "target": 12.0},
    "grounding": None,
}

OPEN = {"open_breakers": ["data:tushare"]}


@cache
def shipped(profile: str = "default") -> list[EnhancedRule]:
    return BOOK.read_shipped(profile)


ALL = shipped()


def decided(
    payload: dict[str, Any],
    decision_type: str,
    context: dict[str, Any] | None = None,
    profile: str = "default",
) -> ValidationResult:
    validator = BOOK.validator(BOOK.repository(shipped(profile)))
    return validator.validate(request(payload, decision_type, **context or {}))


def verdict(context: dict[str, Any] | None = None, **changes: Any) -> ValidationResult:
    return decided(VERDICT | changes, "verdict", context)


def node(profile: str = "presets", **context: Any) -> ValidationResult:
    payload = {"node": "judge", "symbol": "900001.DEMO", "options": {}}
    return decided(payload, "node", context, profile)


def broken(result: ValidationResult) -> list[str]:
    return [violation.rule_id for violation in result.violations]


class TestTheFiles:
    def test_each_belongs_to_the_default_profile(self) -> None:
        assert {file.stem for file in FOLDER.glob("*.yaml")} == set(PROFILES["default"])

    @pytest.mark.parametrize("profile", sorted(PROFILES.keys() - {"none"}))
    def test_no_rule_of_a_profile_is_a_draft(self, profile: str) -> None:
        rules = shipped(profile)
        assert [rule.id for rule in rules if not rule.enabled] == []
        assert {rule.source for rule in rules} == {RuleSource.SYSTEM}
        assert len({rule.id for rule in rules}) == len(rules)

    @pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.id)
    def test_a_rule_is_told_in_both_languages(self, rule: EnhancedRule) -> None:
        for text in ("name", "description", "suggestion"):
            assert set(rule.metadata[text]) == {"zh-CN", "en-US"}
            assert all(rule.metadata[text].values())
        assert rule.name == rule.metadata["name"]["en-US"]

    def test_every_rule_shows_decisions_that_break_it_and_others_that_do_not(self) -> None:
        assert [rule.id for rule in ALL if rule.is_draft] == []

    @pytest.mark.parametrize("tools", [(), ("database", "send_email")])
    def test_they_pass_every_check_of_rules_whatever_tools_a_desk_has(self, tools: tuple[str, ...]) -> None:
        book = RuleBook(
            {name: ToolProfile(name=name, sql="query" if name == "database" else None) for name in tools}
        )
        found = book.inspect_files({file.name: file.read_text("utf-8") for file in FOLDER.glob("*.yaml")})
        assert found.complaints == []
        assert {rule.id for rule in found.rules} >= {rule.id for rule in book.read_shipped()} != set()

    def test_limits_for_research_stand_in_the_place_of_those_they_replace(self) -> None:
        ids = {rule.id for rule in ALL}
        assert "research.token_budget" in ids
        assert "system.token_budget" not in ids
        assert "system.token_budget" in {rule.id for rule in shipped("presets")}


class TestPresets:
    def test_a_node_within_all_limits_is_approved(self) -> None:
        within = {
            "iteration_count": 10,
            "token_used": 10_000,
            "execution_time": 60.0,
            "consecutive_failures": 4,
        }
        assert node(**within).status is ValidationStatus.APPROVED

    def test_where_the_framework_knows_nothing_no_rule_has_anything_to_say(self) -> None:
        assert node().status is ValidationStatus.APPROVED

    @pytest.mark.accepts("A3-29")
    def test_the_eleventh_iteration_ends_the_session(self) -> None:
        result = node(iteration_count=11)
        assert (result.status, result.terminates) == (ValidationStatus.REJECTED, True)
        assert broken(result) == ["system.max_iterations"]

    @pytest.mark.accepts("A3-30")
    def test_more_than_ten_thousand_tokens_end_the_session(self) -> None:
        result = node(token_used=10_001)
        assert (result.status, result.terminates) == (ValidationStatus.REJECTED, True)
        assert broken(result) == ["system.token_budget"]

    @pytest.mark.accepts("A3-30")
    @pytest.mark.parametrize("spent", [10_001, 400_000])
    def test_research_may_spend_more_than_other_tasks(self, spent: int) -> None:
        assert node("default", token_used=spent).status is ValidationStatus.APPROVED

    @pytest.mark.accepts("A3-30")
    def test_more_than_four_hundred_thousand_tokens_end_research(self) -> None:
        result = node("default", token_used=400_001)
        assert (result.status, result.terminates) == (ValidationStatus.REJECTED, True)
        assert broken(result) == ["research.token_budget"]

    @pytest.mark.accepts("A3-31")
    def test_more_than_sixty_seconds_end_the_session(self) -> None:
        result = node(execution_time=60.1)
        assert (result.status, result.terminates) == (ValidationStatus.REJECTED, True)
        assert broken(result) == ["system.timeout"]

    @pytest.mark.accepts("A3-32")
    def test_five_failures_in_a_row_are_put_before_a_person(self) -> None:
        result = node(consecutive_failures=5)
        assert result.status is ValidationStatus.ESCALATED
        assert broken(result) == ["system.circuit_breaker"]

    def test_a_tool_call_while_a_breaker_is_open_is_put_before_a_person(self) -> None:
        result = decided({"tool": "search", "args": {}}, "tool_call", OPEN, "presets")
        assert result.status is ValidationStatus.ESCALATED
        assert broken(result) == ["system.open_breaker"]

    def test_the_desks_own_work_goes_on_while_a_breaker_is_open(self) -> None:
        assert node(**OPEN).status is ValidationStatus.APPROVED
        assert "system.open_breaker" not in broken(verdict(OPEN))
        asked = {"symbol": "900001.DEMO", "experts": [], "options": {}, "skip_debate": True}
        assert "system.open_breaker" not in broken(decided(asked, "research_request", OPEN))

    @pytest.mark.parametrize(
        ("score", "rules"),
        [
            (0.5, []),
            (0.4, ["system.goal_alignment"]),
            (0.2, ["system.goal_deviation", "system.goal_alignment"]),
        ],
    )
    def test_what_departs_from_the_goal_is_not_done(self, score: float, rules: list[str]) -> None:
        result = node(alignment_score=score)
        assert broken(result) == rules
        assert result.status is (ValidationStatus.REJECTED if rules else ValidationStatus.APPROVED)

    def test_the_payload_cannot_speak_for_the_context(self) -> None:
        result = decided({"node": "judge", "token_used": 0}, "node", {"token_used": 10_001}, "presets")
        assert result.status is ValidationStatus.REJECTED

    def test_a_fact_of_the_wrong_type_counts_as_broken(self) -> None:
        result = node(token_used="none")
        assert result.status is ValidationStatus.REJECTED
        assert result.violations[0].error is not None

    def test_research_is_allowed_more(self) -> None:
        much = {"iteration_count": 12, "token_used": 150_000, "execution_time": 200.0, "cost": 3.0}
        assert node("default", **much).status is ValidationStatus.APPROVED
        assert broken(node("default", token_used=400_001)) == ["research.token_budget"]


class TestRiskPolicy:
    def test_an_ordinary_verdict_is_approved(self) -> None:
        result = verdict({"st": False, "suspended": False, "days_listed": 3000, "t_plus": 1, "lot_size": 100})
        assert (result.status, broken(result)) == (ValidationStatus.APPROVED, [])

    @pytest.mark.parametrize(
        ("locale", "sentence"),
        [
            ("zh-CN", "单只股票的仓位上限为 20%，因此把建议仓位降到 20%。"),
            (
                "en-US",
                "A single share may take 20 % of the capital at most, so the position was lowered to 20 %.",
            ),
        ],
    )
    def test_a_large_position_is_capped_and_one_sentence_says_why(self, locale: str, sentence: str) -> None:
        result = verdict({"locale": locale}, position_percent=0.3)
        assert result.status is ValidationStatus.MODIFIED
        assert result.payload == VERDICT | {"position_percent": 0.2}
        assert result.suggestions == (sentence,)

    def test_the_smallest_of_several_caps_holds(self) -> None:
        result = verdict({"days_listed": 30}, position_percent=0.3)
        assert result.status is ValidationStatus.MODIFIED
        assert result.payload["position_percent"] == 0.05

    @pytest.mark.parametrize(
        ("context", "changes", "rule"),
        [
            ({"st": True}, {}, "risk.no_st_purchase"),
            ({}, {"grounding": {"score": 0.5}}, "risk.grounding"),
            ({}, {"confidence": 0.5}, "risk.confidence"),
            ({}, {"levels": {"entry": 10.0, "stop": 11.0, "target": 12.0}}, "risk.stop_below_entry"),
            ({"suspended": True}, {}, "ashare.suspended"),
            ({"t_plus": 1}, {"time_horizon": "日内"}, "ashare.t_plus_one"),
        ],
    )
    def test_what_the_policy_forbids_is_rejected_and_never_turned_into_something_else(
        self, context: dict[str, Any], changes: dict[str, Any], rule: str
    ) -> None:
        result = verdict(context, **changes)
        assert result.status is ValidationStatus.REJECTED
        assert rule in broken(result)
        assert result.modified_payload is None

    def test_a_purchase_in_the_first_week_of_trading_is_put_before_a_person(self) -> None:
        assert verdict({"days_listed": 3}, position_percent=0.05).status is ValidationStatus.ESCALATED

    def test_a_share_at_its_limit_is_remarked_upon_only(self) -> None:
        result = verdict({"at_limit_up": True})
        assert (result.status, broken(result)) == (ValidationStatus.APPROVED, ["ashare.limit_up"])


class TestConditionsInCode:
    def test_sql_that_the_guard_finds_fault_with_is_rejected(self) -> None:
        result = decided({"tool": "database", "args": {"sql": "DROP TABLE bars"}}, "tool_call")
        assert (result.status, broken(result)) == (ValidationStatus.REJECTED, ["tools.sql_guard"])

    def test_an_argument_nobody_vouches_for_does_not_pass(self) -> None:
        goal = {"goal": "Send the report to ann@example.com"}
        for receiver, rules in (("rival@example.com", ["tools.unproven_argument"]), ("ann@example.com", [])):
            call = {"tool": "send_email", "args": {"to": receiver, "body": "The report"}}
            result = decided(call, "tool_call", goal)
            assert (result.may_proceed, broken(result)) == (not rules, rules)

    def test_a_payload_that_is_not_what_its_type_says_is_rejected(self) -> None:
        result = decided({"node": "judge", "symbol": 7, "options": {}}, "node")
        assert (result.status, broken(result)) == (ValidationStatus.REJECTED, ["tools.payload_schema"])
