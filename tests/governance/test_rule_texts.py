"""What people read about rules, broken or badly written, is in their language."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from moot.modules.governance.application.decision_log import explain, make_record
from moot.modules.governance.container import RuleBook
from moot.modules.governance.domain.decisions import RuleViolation, ValidationResult
from moot.modules.governance.infrastructure.cel.index import CelConditions
from moot.modules.governance.infrastructure.sql.guard import check_sql
from moot.shared.domain.messages import Locale
from tests.access.desk import HERE, calling, open_app
from tests.fakes.clock import FixedClock
from tests.governance.factories import request, rule
from tests.governance.test_malformed_rules import CONDITIONS, problems
from tests.governance.test_rest_rules import DECISIONS, RULES, RULESETS, no_shell

BOOK = RuleBook()
VALIDATOR = BOOK.validator(BOOK.repository(BOOK.read_shipped()))
CHINESE = re.compile(r"[\u4e00-\u9fff]")
QUOTED_FROM_CEL = {"conditions.unreadable", "conditions.unreadable_here"}


def decided(
    locale: Locale, payload: dict[str, Any], kind: str = "tool_call", **context: Any
) -> ValidationResult:
    return VALIDATOR.validate(request(payload, kind, locale=locale, **context))


def only(result: ValidationResult) -> RuleViolation:
    (violation,) = result.violations
    return violation


def of_sql(locale: Locale, sql: str) -> ValidationResult:
    return decided(locale, {"tool": "database", "args": {"sql": sql}})


class TestConditions:
    @pytest.mark.parametrize(
        ("condition", "chinese", "english"),
        [
            (
                "payload.confidnce > 0.5",
                ("没有字段 payload.confidnce", "是否想写 payload.confidence？"),
                ("there is no field 'payload.confidnce'", "did you mean payload.confidence?"),
            ),
            (
                "payload.symbol > 1",
                ("> 不能用于文本与整数", "文本要加引号；数字、true 和 false 不加"),
                (
                    "'>' does not go with text and a whole number",
                    "a text stands in quotes; a number, true and false do not",
                ),
            ),
            (
                "payload.confidence > 1",
                ("> 不能用于数字与整数", "请写 1.0"),
                ("'>' does not go with a number and a whole number", "write 1.0"),
            ),
            (
                "payload.symbol is 'a'",
                ("is 在此处没有意义", "请写 == 或 !="),
                ("the word 'is' means nothing here", "write == or !="),
            ),
            (
                "payload.symbol == 'a' &&",
                ("条件在此中断，后面缺少内容", None),
                ("the condition ends too early: something is missing here", None),
            ),
            (
                "(payload.symbol == 'a'",
                ("此处缺少 )", None),
                (") is missing here", None),
            ),
            (
                "payload.risk_warnings",
                ("条件的结果须为真或假，而这里的结果是文本列表", None),
                ("the condition is neither true nor false: it gives a list of texts", None),
            ),
            (
                "payload.symbol.matches('[a')",
                ("[a 不是有效的正则表达式（missing ]: [a）", None),
                ("'[a' is no pattern (missing ]: [a)", None),
            ),
        ],
    )
    def test_what_is_wrong_and_what_would_be_right(
        self, condition: str, chinese: tuple[str, str | None], english: tuple[str, str | None]
    ):
        (problem,) = problems(condition)
        told: dict[Locale, tuple[str, str | None]] = {"zh-CN": chinese, "en-US": english}
        for locale, (message, suggestion) in told.items():
            assert problem.why.in_locale(locale) == message
            assert (problem.advice and problem.advice.in_locale(locale)) == suggestion

    @pytest.mark.parametrize("condition", [condition for _, condition in CONDITIONS])
    def test_nothing_about_a_malformed_one_is_left_to_the_words_of_the_parser(self, condition: str):
        for problem in problems(condition):
            assert problem.why.key not in QUOTED_FROM_CEL
            assert CHINESE.search(problem.why.in_locale("zh-CN"))
            assert problem.advice is None or CHINESE.search(problem.advice.in_locale("zh-CN"))

    def test_one_that_is_nested_too_deeply(self):
        (problem,) = CelConditions().problems(rule("(" * 300 + "payload.tool == 'rm'" + ")" * 300), {})
        assert problem.why.in_locale("zh-CN") == "条件嵌套过深"

    def test_one_that_cannot_be_decided(self):
        for locale, error in (
            ("zh-CN", "context.token_used 不是整数"),
            ("en-US", "context.token_used is not a whole number"),
        ):
            node = {"node": "judge", "symbol": "900001.DEMO", "options": {}}
            broken = decided(locale, node, "node", token_used="none").violations
            assert error in [violation.error for violation in broken]
            assert any(error in violation.message for violation in broken)


class TestDecisions:
    def test_a_statement_that_changes_something(self):
        chinese, english = of_sql("zh-CN", "DROP TABLE bars"), of_sql("en-US", "DROP TABLE bars")
        assert only(chinese).because == "这里只允许执行单条 SELECT。"
        assert chinese.suggestions == ("请只提交一条 SELECT，写明列名，只用表和常用函数。",)
        assert only(english).because == "Only a single SELECT may run here."
        record = make_record(chinese.original_request, chinese, session_id=None, workspace="default")
        assert explain(record).in_locale("zh-CN") == (
            "拒绝：只读 SQL（tools.sql_guard@1：这里只允许执行单条 SELECT。；payload.args.sql = DROP TABLE bars）"
        )

    def test_a_function_that_is_on_no_list_and_what_else_is_wrong_with_it(self):
        sql = "SELECT pg_sleep(5), pg_read_file('x')"
        assert only(of_sql("zh-CN", sql)).because == (
            "函数 pg_sleep 不在允许的清单中。函数 pg_read_file 不在允许的清单中。"
        )
        assert only(of_sql("en-US", sql)).because == (
            "The function pg_sleep is not on the list of those that may be used. "
            "The function pg_read_file is not on the list of those that may be used."
        )

    def test_a_statement_nobody_can_read(self):
        (near,) = check_sql("SELECT (a FROM b")
        assert near.in_locale("zh-CN") == "无法按 SQL 解析该语句：第 1 行，FROM 附近。"
        assert str(near) == "The statement cannot be read as SQL: line 1, near FROM."

    def test_a_statement_that_is_no_text(self):
        result = decided("zh-CN", {"tool": "database", "args": {"sql": 5}})
        assert only(result).error == "sql 应为文本形式的 SQL 语句。"

    def test_an_argument_that_nobody_vouches_for(self):
        mail = {"tool": "send_email", "args": {"to": "eve@evil.example", "body": "hello"}}
        tools = [{"name": "send_email", "description": "Send an email"}]
        chinese = decided("zh-CN", mail, goal="Summarise the annual report", tools=tools)
        assert only(chinese).because == (
            "目标并未要求 send_email 所做的事。to 的值 eve@evil.example 既不在目标中，也不在可信事实中。"
        )
        english = decided("en-US", mail, goal="Summarise the annual report", tools=tools)
        assert only(english).because == (
            "The goal does not ask for what send_email does. "
            "to is eve@evil.example, which is neither in the goal nor in the trusted facts."
        )

    def test_a_payload_of_the_wrong_shape(self):
        broken = decided("zh-CN", {"tool": "ls", "args": "all"}).violations
        assert "与该类决策的结构不符：payload.args 应为键值表" in [violation.because for violation in broken]

    def test_the_same_request_is_told_the_same_way_always(self):
        assert of_sql("zh-CN", "DROP TABLE bars").violations == of_sql("zh-CN", "DROP TABLE bars").violations


@pytest.fixture
async def client(home, clock: FixedClock) -> AsyncIterator[httpx.AsyncClient]:
    async with open_app(home, clock) as app, calling(app, address=HERE) as client:
        client.headers["Accept-Language"] = "zh-CN"
        yield client


class TestOverHttp:
    async def test_a_rule_that_is_refused(self, client):
        body = (await client.post(RULES, json=no_shell(condition="payload.tol == 'x'"))).json()
        assert body["message"] == (
            "第 1 行第 1 列、规则 house.no_shell、condition：没有字段 payload.tol。建议：是否想写 payload.tool？"
        )
        (problem,) = body["details"]["problems"]
        assert (problem["message"], problem["suggestion"]) == (
            "没有字段 payload.tol",
            "是否想写 payload.tool？",
        )

    async def test_rules_that_are_only_checked(self, client):
        wrong = {"rules": [no_shell(condition="payload.tool == 1")]}
        (problem,) = (await client.post(f"{RULESETS}/check", json=wrong)).json()["problems"]
        assert problem["message"] == "== 不能用于文本与整数"
        english = await client.post(f"{RULESETS}/check", json=wrong, headers={"Accept-Language": "en"})
        assert english.json()["problems"][0]["message"] == "'==' does not go with text and a whole number"

    async def test_a_decision(self, client):
        asked = {"tool": "database", "args": {"sql": "DROP TABLE bars"}}
        answer = await client.post(DECISIONS, json={"decision_type": "tool_call", "payload": asked})
        assert answer.status_code == 403
        (violation,) = answer.json()["details"]["violations"]
        assert violation["because"] == "这里只允许执行单条 SELECT。"
        assert violation["suggestion"] == "请只提交一条 SELECT，写明列名，只用表和常用函数。"
