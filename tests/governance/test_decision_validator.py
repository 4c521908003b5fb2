"""What the rules make of a decision: the lattice, the corrections, and everything that must not get past them."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from moot.modules.governance.application.decision_log import explain, make_record
from moot.modules.governance.application.decision_validator import DecisionValidator
from moot.modules.governance.container import RuleBook
from moot.modules.governance.domain.conditions import Finding, ToolProfile
from moot.modules.governance.domain.decisions import DecisionRequest, ValidationResult, ValidationStatus
from moot.modules.governance.domain.rules import EnhancedRule
from tests.governance.factories import request, rule

APPROVED, MODIFIED = ValidationStatus.APPROVED, ValidationStatus.MODIFIED
ESCALATED, REJECTED = ValidationStatus.ESCALATED, ValidationStatus.REJECTED
HTTP = ToolProfile(
    name="http",
    parameters={
        "properties": {"limit": {"type": "integer"}, "url": {"type": "string"}},
        "required": ["limit"],
    },
    side_effects=False,
)


def validator(*rules: EnhancedRule) -> DecisionValidator:
    book = RuleBook({"http": HTTP})
    return book.validator(book.repository(rules))


def call(tool: str = "http", context: dict[str, Any] | None = None, **args: Any) -> DecisionRequest:
    return request({"tool": tool, "args": args}, **(context or {}))


def decided(asked: DecisionRequest, *rules: EnhancedRule) -> ValidationResult:
    return validator(*rules).validate(asked)


def clamp(at_most: int, rule_id: str = "limit.clamp", **changes: Any) -> EnhancedRule:
    corrector = {"kind": "clamp", "path": "payload.args.limit", "at_most": at_most}
    condition = f"payload.args.limit > {at_most}"
    return rule(condition, id=rule_id, tools=("http",), action="suggest", corrector=corrector, **changes)


@pytest.mark.accepts("A3-05", "A3-33", "A3-37")
def test_validate_should_approve_valid_decision():
    asked = call(limit=10)
    result = decided(asked, rule("!(payload.tool in ['http', 'database'])"), clamp(100))
    assert (result.status, result.violations, result.modified_payload) == (APPROVED, (), None)
    assert result.original_request is asked
    assert result.payload == asked.payload
    assert result.may_proceed


@pytest.mark.accepts("A3-06", "A3-36", "A3-37")
def test_validate_should_reject_tool_not_allowed():
    allowed = rule(
        "!(payload.tool in ['http'])",
        id="tools.allowed",
        name="Allowed tools",
        metadata={"suggestion": {"en-US": "Use http.", "zh-CN": "请使用 http。"}},
    )
    result = decided(call("shell", command="ls"), allowed)
    assert (result.status, result.modified_payload, result.may_proceed) == (REJECTED, None, False)
    (violation,) = result.violations
    assert (violation.rule, violation.because) == ("tools.allowed@1", "!(payload.tool in ['http'])")
    assert violation.values == {"payload.tool": "shell"}
    assert result.suggestions == ("请使用 http。",)
    english = decided(call("shell", {"locale": "en-US"}), allowed)
    assert english.suggestions == ("Use http.",)
    on_the_list = decided(call("http", url="https://example.com"), allowed)
    assert (on_the_list.status, on_the_list.violations) == (APPROVED, ())


@pytest.mark.accepts("A3-07", "A3-35", "W32")
def test_validate_should_modify_sensitive_data_query():
    private = rule(
        "has(payload.args.sql) && exposes(payload.args.sql, ['customer_name'])",
        id="privacy.customer",
        category="data",
        action="suggest",
        corrector={"kind": "sql", "path": "payload.args.sql", "mask": ["customer_name"]},
    )
    book = RuleBook(tables={"database": {"sales": ["day", "customer_name", "amount"]}})
    checked = book.validator(book.repository([private, *book.read_shipped("tools")]))
    asked = call("database", sql="SELECT day, customer_name, amount FROM sales")
    result = checked.validate(asked)
    assert result.status is MODIFIED
    assert result.modified_payload is not None
    assert "'***' AS customer_name" in result.modified_payload["args"]["sql"]
    assert [(change.op, change.path, change.rule) for change in result.changes] == [
        ("replace", "/args/sql", "privacy.customer@1")
    ]
    assert checked.validate(replace(asked, payload=result.modified_payload)).status is APPROVED
    star = checked.validate(call("database", sql="SELECT * FROM sales"))
    assert "'***' AS customer_name" in star.payload["args"]["sql"], "and nothing is hidden behind a star"
    probing = call("database", sql="SELECT amount FROM sales WHERE customer_name = 'Li'")
    assert checked.validate(probing).status is REJECTED, "what is masked cannot be guessed at either"


@pytest.mark.accepts("A3-08", "W31")
def test_validate_should_reject_goal_deviation():
    book = RuleBook()
    checked = book.validator(book.repository(book.read_shipped("presets")))
    goal = "生成月度销售分析报表"
    about = {"decision_type": "create_node", "goal": goal}
    fits = checked.validate(request({"description": "按月汇总销售数据并生成分析报表"}, **about))
    strays = checked.validate(request({"description": "预订去巴黎的机票"}, **about))
    assert (fits.status, strays.status) == (APPROVED, REJECTED)
    assert {violation.category for violation in strays.violations} == {"goal"}
    assert strays.suggestions


class TestTheLattice:
    rules = (
        rule("payload.tool != ''", id="a.warns", action="log_warning"),
        clamp(100, "b.corrects"),
        rule("payload.args.limit > 500", id="c.asks", tools=("http",), requires_human=True),
        rule("payload.args.limit > 1000", id="d.rejects", tools=("http",)),
        rule("payload.args.limit > 5000", id="e.ends", tools=("http",), action="terminate"),
    )

    @pytest.fixture(scope="class")
    @classmethod
    def in_every_order(cls) -> list[DecisionValidator]:
        book = RuleBook({"http": HTTP})
        return [book.validator(book.repository(order)) for order in permutations(cls.rules)]

    @pytest.mark.parametrize(
        ("limit", "status"),
        [(1, APPROVED), (101, MODIFIED), (501, ESCALATED), (1001, REJECTED), (5001, REJECTED)],
    )
    def test_is_climbed_by_the_worst_of_all_rules_in_whatever_order(self, in_every_order, limit, status):
        results = [each.validate(call(limit=limit)) for each in in_every_order]
        answers = {
            (result.status, tuple(v.rule_id for v in result.violations), result.terminates)
            for result in results
        }
        ((found, _, terminates),) = answers
        assert (found, terminates) == (status, limit > 5000)

    @pytest.mark.accepts("A3-34")
    def test_collects_every_violation_in_the_order_behaviour_tool_data_execution_goal(self):
        condition = "payload.args.limit > 0"
        categories = ["goal", "execution", "data", "tool", "behavior"]
        rules = [rule(condition, id=f"r.{c}", category=c, tools=("http",)) for c in categories]
        result = decided(call(limit=1), *rules)
        assert [v.category for v in result.violations] == ["behavior", "tool", "data", "execution", "goal"]


class TestACorrection:
    def test_that_does_not_help_is_a_rejection(self):
        idle = rule(
            "payload.args.limit > 10",
            tools=("http",),
            action="suggest",
            corrector={"kind": "clamp", "path": "payload.args.limit", "at_most": 50},
        )
        assert decided(call(limit=60), idle).status is REJECTED

    def test_that_breaks_another_rule_is_corrected_again_or_rejected(self):
        low = rule("payload.args.limit < 20", id="z.low", tools=("http",))
        assert decided(call(limit=60), clamp(10), low).status is REJECTED
        lower = clamp(5, "y.lower")
        assert decided(call(limit=60), clamp(10), lower).modified_payload == {
            "tool": "http",
            "args": {"limit": 5},
        }

    def test_of_a_circle_ends_in_a_rejection(self):
        def setting(rule_id: str, when: int, to: int) -> EnhancedRule:
            return rule(
                f"payload.args.limit == {when}",
                id=rule_id,
                tools=("http",),
                action="suggest",
                corrector={"kind": "set", "path": "payload.args.limit", "value": to},
            )

        assert decided(call(limit=1), setting("a.up", 1, 2), setting("b.down", 2, 1)).status is REJECTED

    def test_raises_what_is_too_small(self):
        up = {"kind": "clamp", "path": "payload.args.limit", "at_least": 11}
        raises = rule("payload.args.limit < 11", tools=("http",), corrector=up, action="suggest")
        assert decided(call(limit=3), raises).payload["args"] == {"limit": 11}

    def test_masks_and_drops_fields_wherever_they_are(self):
        mask = rule(
            "payload.args.rows.exists(r, has(r.name) && r.name != '***')",
            id="mask.name",
            action="suggest",
            corrector={"kind": "mask", "fields": ["name"]},
        )
        drop = rule(
            "'phone' in payload.args.fields",
            id="drop.phone",
            action="suggest",
            corrector={"kind": "drop", "fields": ["phone"]},
        )
        asked = call("export", rows=[{"name": "Li"}, {"name": "Wu"}], fields=["day", "phone"])
        result = decided(asked, mask, drop)
        assert result.status is MODIFIED
        assert result.modified_payload == {
            "tool": "export",
            "args": {"rows": [{"name": "***"}, {"name": "***"}], "fields": ["day"]},
        }
        assert asked.payload["args"]["fields"] == ["day", "phone"], "what came is left as it came"

    def test_of_an_undecided_rule_is_never_made(self):
        result = decided(call(), clamp(10))
        assert (result.status, result.violations[0].error is not None) == (REJECTED, True)

    def test_is_what_would_be_approved_when_a_person_has_to_be_asked(self):
        asks = rule("payload.args.limit > 500", id="c.asks", tools=("http",), requires_human=True)
        result = decided(call(limit=600), clamp(100), asks)
        assert (result.status, result.modified_payload) == (ESCALATED, None)
        assert result.approved_instead == {"tool": "http", "args": {"limit": 100}}


ENDS: dict[str, Any] = {"action": "terminate", "id": "ends", "tools": ("http",)}


class TestTermination:
    """Nothing is stronger: neither a corrector nor another rule's correction takes it back."""

    @pytest.mark.parametrize("source", ["system", "user"])
    @pytest.mark.parametrize("corrected_by", ["system", "user"])
    def test_stands_whichever_rule_would_have_corrected_the_payload(self, source, corrected_by):
        ends = rule("payload.args.limit > 100", source=source, **ENDS)
        result = decided(call(limit=500), ends, clamp(50, source=corrected_by))
        assert (result.status, result.terminates, result.changes) == (REJECTED, True, ())

    def test_is_asked_for_by_a_condition_with_a_patch_of_its_own(self):
        mends = ({"op": "replace", "path": "/args/limit", "value": 1},)
        finding = Finding(because="too much", patch=mends)
        ends = rule(lambda facts: finding if facts.values["payload.args.limit"] > 1 else None, **ENDS)
        result = decided(call(limit=500), ends)
        assert (result.status, result.terminates) == (REJECTED, True)

    def test_of_a_payload_that_only_a_correction_made_ends_the_session_too(self):
        ends = rule("payload.args.limit == 50", **ENDS)
        result = decided(call(limit=500), ends, clamp(50))
        assert (result.status, result.terminates) == (REJECTED, True)

    def test_in_shadow_ends_nothing(self):
        ends = rule("payload.args.limit > 100", mode="shadow", **ENDS)
        assert decided(call(limit=500), ends, clamp(50)).status is MODIFIED


class TestWhatADecisionSaysBesides:
    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            (call("fax"), True),
            (call("fax", {"goal": "", "tools": []}), False),  # what its name tells is known
            (call("fax", {"facts": {"a": 1}}), True),
            (call("fax", {"goal": "Fax it"}), False),
            (call("fax", {"tools": [{"name": "fax"}]}), False),
            (call("http", limit=1), False),
            (request({"node": "judge"}, "node"), False),
        ],
    )
    def test_a_tool_nobody_told_anything_about_is_said_to_be_unknown(self, asked, said):
        english = replace(asked, context={**asked.context, "locale": "en-US"})
        notes = decided(english, rule("payload.args.limit > 100", tools=("http",))).notes
        assert [note.partition(" (")[0] for note in notes] == ["nothing about this tool was known"] * said
        chinese = decided(asked, rule("payload.args.limit > 100", tools=("http",))).notes
        assert all(note.startswith("对该工具一无所知") for note in chinese)
        assert bool(chinese) is said

    def test_a_fifth_correction_at_once_says_why_it_ends_in_no(self):
        def fields(*names: str) -> list[EnhancedRule]:
            return [
                rule(
                    f"has(payload.args.{name})",
                    id=f"without.{name}",
                    source="user",
                    corrector={"kind": "drop", "path": "payload.args", "fields": [name]},
                )
                for name in names
            ]

        asked = call("fax", {"locale": "en-US", "goal": "Fax it"}, a=1, b=2, c=3, d=4, e=5)
        four = decided(asked, *fields(*"abcd"))
        assert (four.status, four.modified_payload["args"], four.notes) == (MODIFIED, {"e": 5}, ())
        five = decided(asked, *fields(*"abcde"))
        assert five.status is REJECTED
        [note] = five.notes
        assert note.startswith("5 rules would correct it at once (without.a, without.b")
        assert "at most 4 corrections" in note

    def test_corrections_that_come_to_no_end_say_so(self):
        up = {"kind": "clamp", "path": "payload.args.limit", "at_least": 11}
        round_and_round = [
            clamp(10),
            rule("payload.args.limit < 11", id="up", tools=("http",), corrector=up, action="suggest"),
        ]
        result = decided(call(limit=500, context={"locale": "en-US"}), *round_and_round)
        assert result.status is REJECTED
        [note] = result.notes
        assert note.startswith("3 rounds of corrections are made, and after those it still broke ")

    def test_it_is_on_the_record_and_in_the_sentence(self):
        result = decided(call("fax", {"locale": "en-US"}))
        record = make_record(result.original_request, result, session_id=None, workspace="default")
        assert record.result.notes == result.notes
        said = explain(record).in_locale("en-US")
        assert said.startswith("approved: no rule is broken; nothing about this tool was known")


class TestRulesThatOnlyTighten:
    """Whatever a USER or GENERATED rule says, no verdict gets better by it."""

    def test_cannot_rescue_what_another_rule_rejects(self):
        stops = rule("payload.args.limit > 1000", id="a.stops", tools=("http",))
        assert decided(call(limit=2000), stops, clamp(100, source="user")).status is REJECTED

    def test_cannot_hide_what_a_correction_breaks(self):
        """The system's corrector breaks a rule; the user's, made in the same breath, would have hidden that."""
        low = rule("payload.args.limit < 20", id="z.low", tools=("http",))
        rescue = rule(
            "payload.args.limit > 0",
            id="u.rescue",
            tools=("http",),
            action="suggest",
            source="user",
            corrector={"kind": "set", "path": "payload.args.limit", "value": 30},
        )
        assert decided(call(limit=60), clamp(10), low, rescue).status is REJECTED

    def test_cannot_hide_what_one_of_themselves_breaks(self):
        first = clamp(10, "u.first", source="user")
        third = rule("payload.args.limit == 10", id="u.third", tools=("http",), source="user")
        assert decided(call(limit=60), first, third).status is REJECTED
        second = clamp(5, "u.second", source="user")
        assert decided(call(limit=60), first, second, third).status is REJECTED

    def test_do_correct_where_nothing_else_minds(self):
        result = decided(
            call(limit=60), clamp(10, "u.first", source="user"), clamp(5, "u.second", source="generated")
        )
        assert (result.status, result.modified_payload) == (MODIFIED, {"tool": "http", "args": {"limit": 5}})

    def test_in_shadow_only_tell(self):
        result = decided(call(limit=60), clamp(10, mode="shadow"))
        assert (result.status, result.modified_payload, result.suggestions) == (APPROVED, None, ())
        assert [violation.mode for violation in result.violations] == ["shadow"]


class TestWhatMustNotGetThrough:
    @pytest.mark.accepts("W29")
    def test_a_payload_that_says_what_only_the_framework_knows(self):
        budget = rule(
            "context.token_used > 10000", decision_types=(), category="behavior", action="terminate"
        )
        context = {"token_used": 20_000}
        for payload in (
            {"tool": "http", "args": {}, "token_used": 0},
            {"tool": "http", "args": {}, "context": {"token_used": 0}},
            {"tool": "http", "args": {}, "context.token_used": 0},
        ):
            result = decided(request(payload, **context), budget)
            assert (result.status, result.terminates) == (REJECTED, True)

    @pytest.mark.accepts("W29")
    def test_a_name_with_a_dot_that_stands_in_for_an_argument(self):
        payload = {"tool": "http", "args": {"limit": 5000}, "args.limit": 1}
        assert decided(request(payload), rule("payload.args.limit > 100", tools=("http",))).status is REJECTED

    @pytest.mark.accepts("W30")
    @pytest.mark.parametrize(
        "args",
        [{}, {"limit": None}, {"limit": "many"}, {"limit": float("nan")}, {"limit": True}, {"limit": []}],
    )
    def test_a_field_that_is_missing_or_of_another_kind(self, args):
        for condition in ("payload.args.limit > 100", "payload.args.limit > 100 && payload.tool == 'shell'"):
            result = decided(call(**args), rule(condition, tools=("http",)))
            assert (result.status, result.violations[0].error is not None) == (REJECTED, True)

    @pytest.mark.accepts("W28")
    @pytest.mark.parametrize(
        "condition",
        [
            "().__class__.__bases__[0].__subclasses__()",
            "__import__('os').system('true')",
            "payload.__class__ == ''",
            "exec('x')",
            "open('/etc/passwd')",
        ],
    )
    def test_a_condition_that_is_a_program(self, condition):
        book = RuleBook()
        assert book.engine().problems(rule(condition), {})

    @pytest.mark.accepts("W30")
    def test_a_condition_in_code_that_fails(self):
        def broken(facts: Any) -> bool:
            raise RuntimeError("no such thing")

        result = decided(call(limit=1), rule(broken))
        assert result.status is REJECTED
        assert "no such thing" in (result.violations[0].error or "")

    def test_a_condition_in_code_that_brings_its_own_patch_is_held_to_it(self):
        def short(facts: Any) -> Finding | None:
            if facts.payload["args"]["limit"] <= 3:
                return None
            return Finding("too long", patch=({"op": "replace", "path": "/args/limit", "value": 3},))

        result = decided(call(limit=9), rule(short, action="suggest"))
        assert (result.status, result.modified_payload) == (MODIFIED, {"tool": "http", "args": {"limit": 3}})

    @pytest.mark.accepts("A3-23")
    def test_a_disabled_rule_is_not_asked(self):
        assert (
            decided(call(limit=9), rule("payload.args.limit > 1", tools=("http",), enabled=False)).status
            is APPROVED
        )

    def test_secrets_are_not_told(self):
        key = "sk-" + "a1B2c3D4" * 5
        result = decided(
            call(limit=1, url=f"https://x/?api_key={key}"), rule("payload.args.url != ''", tools=("http",))
        )
        assert key not in str(result.violations)
