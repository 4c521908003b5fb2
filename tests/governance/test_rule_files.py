"""Rules as people write them: what is wrong is named by file, line, rule and field, with what would be right."""

from collections.abc import Mapping
from textwrap import dedent, indent

import pytest

from moot.modules.governance.application.rule_files import write_rules
from moot.modules.governance.domain.conditions import Facts
from moot.modules.governance.domain.rules import (
    Complaint,
    EnhancedRule,
    NamedCondition,
    RuleAction,
    RuleCategory,
)
from moot.modules.governance.domain.rulesets import Registered, RuleRefused
from tests.governance.factories import reader, rule

RULE = """\
id: no.rm
name: No rm
category: tool
condition: payload.tool == 'rm'
action: reject
source: system
decision_types: [tool_call]
examples:
  - {violates: true, payload: {tool: rm}}
  - {violates: false, payload: {tool: ls}}
"""


def remove_is_called(facts: Facts) -> bool:
    return facts.tool == "rm"


CONDITIONS: Mapping[str, NamedCondition] = {"removes@1": remove_is_called}
READER = reader(conditions=CONDITIONS)


def file_of(*rules: str) -> str:
    entries = [indent(text, "    ").replace("    ", "  - ", 1) for text in rules]
    return "rules:\n" + "".join(entries)


def read(text: str) -> list[EnhancedRule]:
    return READER.read(text, "mine.yaml")


def check(text: str) -> list[Complaint]:
    return READER.inspect_files({"mine.yaml": text}).complaints


def the_complaint(text: str) -> Complaint:
    (complaint,) = check(text)
    return complaint


class TestReading:
    def test_a_rule_is_read_as_it_is_written(self) -> None:
        (read_rule,) = read(file_of(RULE))
        assert (read_rule.id, read_rule.category) == ("no.rm", RuleCategory.TOOL)
        assert (read_rule.action, read_rule.enabled) == (RuleAction.REJECT, True)
        assert [example.violates for example in read_rule.examples] == [True, False]

    def test_defaults_hold_where_a_rule_says_nothing(self) -> None:
        text = "defaults:\n  priority: 7\n" + file_of(RULE, RULE.replace("no.rm", "no.rf") + "priority: 9\n")
        assert [(each.id, each.priority) for each in read(text)] == [("no.rm", 7), ("no.rf", 9)]

    def test_a_condition_in_code_is_found_by_name_and_version(self) -> None:
        (found,) = read(file_of(RULE.replace("payload.tool == 'rm'", "call:removes@1")))
        assert found.condition == Registered("removes@1", remove_is_called)

    def test_a_condition_in_code_needs_no_examples(self) -> None:
        coded = RULE.replace("payload.tool == 'rm'", "call:removes@1").partition("examples")[0]
        assert [each.enabled for each in read(file_of(coded))] == [True]

    @pytest.mark.parametrize("written", ["2026-01-01", "yes", "on", "0x1F", "12:30:00", ".nan", ".inf"])
    def test_words_that_other_readers_take_for_something_else_stay_words(self, written: str) -> None:
        (found,) = read(file_of(RULE + f"metadata: {{said: {written}}}\n"))
        assert found.metadata == {"said": written}

    def test_numbers_truth_and_nothing_are_what_json_has_them_be(self) -> None:
        (found,) = read(file_of(RULE + "metadata: {a: 1, b: -2.5, c: true, d: null, e: '1', f: 1e3}\n"))
        assert found.metadata == {"a": 1, "b": -2.5, "c": True, "d": None, "e": "1", "f": 1000.0}


class TestDrafts:
    @pytest.mark.parametrize("missing", ["  - {violates: true", "  - {violates: false"])
    def test_a_rule_without_both_kinds_of_example_is_a_draft_and_switched_off(self, missing: str) -> None:
        text = file_of("\n".join(line for line in RULE.splitlines() if not line.startswith(missing)) + "\n")
        assert [each.enabled for each in read(text)] == [False]
        complaint = the_complaint(text)
        assert (complaint.severity, complaint.rule, complaint.field) == ("draft", "no.rm", "examples")

    def test_an_example_that_should_break_the_rule_and_does_not_is_refused(self) -> None:
        complaint = the_complaint(file_of(RULE.replace("{tool: rm}", "{tool: cp}")))
        assert (complaint.rule, complaint.field, complaint.line) == ("no.rm", "examples.0", 10)
        assert "should break the rule, and does not" in str(complaint.said)

    def test_an_example_that_should_not_break_the_rule_and_does_is_refused_with_what_it_saw(self) -> None:
        complaint = the_complaint(file_of(RULE.replace("{tool: ls}", "{tool: rm}")))
        assert (complaint.field, complaint.line) == ("examples.1", 11)
        assert "payload.tool = 'rm'" in str(complaint.said)

    def test_an_example_that_breaks_the_rule_only_because_it_cannot_be_decided_proves_nothing(self) -> None:
        complaint = the_complaint(file_of(RULE.replace("{tool: rm}", "{}")))
        assert complaint.field == "examples.0"
        assert "could not be decided" in str(complaint.said)

    def test_a_rule_for_every_decision_needs_examples_that_say_which_they_are(self) -> None:
        everywhere = RULE.replace("decision_types: [tool_call]\n", "").replace(
            "payload.tool == 'rm'", "has(context.token_used) && context.token_used > 5"
        )
        found = check(file_of(everywhere))
        assert [complaint.field for complaint in found] == ["examples.0", "examples.1"]
        assert "decision_type" in str(found[0].said)

    def test_a_disabled_rule_is_tried_all_the_same(self) -> None:
        assert check(file_of(RULE + "enabled: false\n")) == []
        bad = RULE.replace("{tool: ls}", "{tool: rm}")
        assert the_complaint(file_of(bad + "enabled: false\n")).field == "examples.1"


class TestComplaints:
    @pytest.mark.parametrize(
        ("before", "after", "field", "line", "suggestion"),
        [
            ("action:", "actoin:", "actoin", 6, "action"),
            ("action: reject", "action: rejct", "action", 6, "reject"),
            ("category: tool", "category: tol", "category", 4, "tool"),
            ("source: system", "source: sytem", "source", 7, "system"),
            ("[tool_call]", "[toolcall]", "decision_types", 8, "tool_call"),
            ("payload.tool ==", "payload.tol ==", "condition", 5, "payload.tool"),
            ("payload.tool == 'rm'", "call:remove@1", "condition", 5, "removes@1"),
        ],
    )
    def test_a_word_nobody_knows_is_named_with_its_place_and_the_nearest(
        self, before: str, after: str, field: str, line: int, suggestion: str
    ) -> None:
        complaint = check(file_of(RULE.replace(before, after)))[0]
        assert (complaint.file, complaint.line, complaint.rule) == ("mine.yaml", line, "no.rm")
        assert complaint.field == field
        assert suggestion in str(complaint.nearest or complaint.advice)

    @pytest.mark.parametrize(
        ("before", "after", "field", "line"),
        [
            ("id: no.rm", "id: No Rm!", "id", 2),
            ("name: No rm", "name: ''", "name", 3),
            ("name: No rm", "name:", "name", 3),
            ("condition: payload.tool == 'rm'", "condition: ''", "condition", 5),
            ("condition: payload.tool == 'rm'", "condition: [a]", "condition", 5),
            ("source: system", "priority: high", "priority", 7),
            ("source: system", "priority: -1", "priority", 7),
            ("source: system", "mode: maybe", "mode", 7),
            ("source: system", "enabled: sometimes", "enabled", 7),
            ("source: system", "version: 0", "version", 7),
            ("source: system", "metadata: {name: {de-DE: Nein}}", "metadata.name", 7),
            ("source: system", "metadata: {suggestion: 3}", "metadata.suggestion", 7),
            ("source: system", "metadata: none", "metadata", 7),
            ("source: system", "corrector: {kind: explode}", "corrector", 7),
            ("source: system", "corrector: {kind: clamp, path: payload.args.n}", "corrector.clamp", 7),
            (
                "source: system",
                "corrector: {kind: clamp, path: context.cost, at_most: 1}",
                "corrector.clamp.path",
                7,
            ),
            ("{violates: true,", "{violates: maybe,", "examples.0.violates", 10),
            ("{violates: true,", "{breaks: true,", "examples.0", 10),
        ],
    )
    def test_a_value_that_does_not_fit_is_named_with_its_place(
        self, before: str, after: str, field: str, line: int
    ) -> None:
        complaint = check(file_of(RULE.replace(before, after)))[0]
        assert (complaint.rule, complaint.field, complaint.line) == (
            "No Rm!" if field == "id" else "no.rm",
            field,
            line,
        )

    def test_all_complaints_come_at_once(self) -> None:
        text = file_of(
            RULE.replace("reject", "rejct"), RULE.replace("no.rm", "two").replace("tool_call", "x"), RULE
        )
        assert [(complaint.rule, complaint.field) for complaint in check(text)] == [
            ("no.rm", "action"),
            ("two", "decision_types"),
            ("no.rm", "id"),
        ]

    def test_reading_refuses_what_checking_complains_about(self) -> None:
        with pytest.raises(RuleRefused) as refused:
            read(file_of(RULE.replace("reject", "rejct")))
        assert refused.value.details["problems"][0]["line"] == 6
        assert "mine.yaml" in str(refused.value)

    def test_a_complaint_is_told_in_the_readers_language(self) -> None:
        said = the_complaint(file_of(RULE.replace("action:", "actoin:"))).said
        assert said.in_locale("en-US").startswith("mine.yaml line 6, rule no.rm")
        assert said.in_locale("zh-CN").startswith("mine.yaml 第 6 行、规则 no.rm")
        assert "action" in said.in_locale("zh-CN")

    def test_the_line_of_a_long_condition_is_that_of_the_file(self) -> None:
        block = RULE.replace(
            "condition: payload.tool == 'rm'",
            "condition: |\n  payload.tool == 'rm'\n  || payload.tol == 'rf'",
        )
        complaint = the_complaint(file_of(block))
        assert (complaint.line, complaint.field) == (7, "condition")

    def test_an_id_that_stands_there_twice_is_refused(self) -> None:
        complaint = the_complaint(file_of(RULE, RULE))
        assert (complaint.rule, complaint.field, complaint.line) == ("no.rm", "id", 12)

    def test_code_is_for_rules_of_the_system_only(self) -> None:
        theirs = RULE.replace("payload.tool == 'rm'", "call:removes@1").replace("system", "user")
        assert the_complaint(file_of(theirs)).field == "condition"


class TestWhatIsNoRuleFile:
    @pytest.mark.parametrize(
        ("text", "line", "says"),
        [
            ("", 1, "a list called rules"),
            ("- a\n- b\n", 1, "a list called rules"),
            ("rules: 3\n", 1, "a list called rules"),
            ("rules: []\nrulez: []\n", 2, "rulez is not known"),
            ("rules:\n  - no map\n", 2, "a map of fields"),
            ("rules: []\ndefaults: 3\n", 2, "a map of fields"),
            ("rules: []\ndefaults: {actoin: reject}\n", 2, "actoin is not known"),
            ("rules: [\n", 2, "not valid YAML"),
            ("rules: []\n\x00", None, "not valid YAML"),
            ("rules: []\nrules: []\n", 2, "a second time"),
            ("rules:\n  - {id: a, id: b}\n", 2, "a second time"),
            ("a: &x [1]\nrules: *x\n", 1, "anchors and aliases"),
            ("rules: !!python/object/apply:os.getcwd []\n", 1, "tags are not read"),
            ("rules:\n  - !mine {id: a}\n", 2, "tags are not read"),
            ("rules: []\n---\nrules: []\n", 2, "a second document"),
            ("? [a]\n: 3\n", 1, "has to be a word"),
            ("rules: " + "[" * 100_000, 1, "nested too deeply"),
            ("rules: []\n#" + "x" * 1_000_001, None, "too large"),
        ],
    )
    def test_it_is_refused_with_the_reason(self, text: str, line: int | None, says: str) -> None:
        complaint = check(text)[0]
        assert says in str(complaint.said)
        assert line is None or complaint.line == line

    def test_text_that_cannot_be_encoded_is_refused(self) -> None:
        assert check("rules: \ud800")[0].severity == "error"

    def test_an_empty_list_of_rules_is_a_file_without_rules(self) -> None:
        assert read("profile: mine\ndescription: Nothing yet.\nrules: []\n") == []


class TestWriting:
    def test_what_was_written_reads_as_the_same_rules(self) -> None:
        rules = [
            rule(
                id="one",
                examples=[
                    {"violates": True, "payload": {"tool": "rm"}},
                    {"violates": False, "payload": {"tool": "ls"}},
                ],
                metadata={
                    "suggestion": {"zh-CN": "请勿删除：“rm”。", "en-US": "Don't."},
                    "since": "2026-01-01",
                },
                corrector={"kind": "set", "path": "payload.tool", "value": "ls"},
                mode="shadow",
                version=3,
            ),
            rule(Registered("removes@1", remove_is_called), id="two", requires_human=True),
            rule("payload.tool == 'a'\n|| payload.tool == 'null'", id="three", enabled=False, priority=3),
        ]
        assert read(write_rules(rules)) == rules

    @pytest.mark.parametrize(
        "awkward", ["null", "true", "1", "1.5", "~", "- a", "a: b", "#x", "&a", "*a", "!a", " x ", "é\t"]
    )
    def test_awkward_words_come_back_as_they_were(self, awkward: str) -> None:
        (back,) = read(write_rules([rule(enabled=False, metadata={"said": awkward, awkward: [awkward]})]))
        assert back.metadata == {"said": awkward, awkward: [awkward]}

    def test_what_is_as_usual_is_left_out(self) -> None:
        assert write_rules([rule(description="")]) == dedent("""\
            rules:
            - id: a.rule
              name: A rule
              category: tool
              condition: payload.tool == 'rm'
              action: reject
              source: system
              decision_types:
              - tool_call
            """)


def test_what_the_context_of_an_example_vouches_for_is_not_tainted() -> None:
    tainted = RULE.replace("payload.tool == 'rm'", "payload.tool == 'rm' && tainted('path')")
    asked = tainted.replace("{tool: rm}}", "{tool: rm, args: {path: notes}}, context: {goal: remove notes}}")
    assert reader().read(file_of(tainted))[0].enabled
    with pytest.raises(RuleRefused):
        reader().read(file_of(asked))
