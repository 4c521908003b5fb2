"""The coordinator's sub-graph: what a model over HTTP says, where that leads, and the same without a model."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START
from pydantic import SecretStr
from structlog.testing import capture_logs

from moot.modules.intake.application.intake_state import CoordinatorState
from moot.modules.intake.application.metrics import IntakeMetrics
from moot.modules.intake.domain.question import Intent, Mention, Understanding
from moot.modules.intake.infrastructure.graph.coordinator_graph import (
    BACKGROUND_INVESTIGATOR,
    HAND_TO_PLANNER,
    PLANNER,
    ROUTES,
    Coordinator,
)
from moot.modules.intake.infrastructure.prompt_templates import FOLDER, PromptTemplates
from moot.modules.llm_platform.application.config_service import ModelRegistry
from moot.modules.llm_platform.application.llm_service import LLMService
from moot.modules.llm_platform.domain.budget import Budget, Limits
from moot.modules.llm_platform.domain.call_record import CallJournal
from moot.modules.llm_platform.domain.exceptions import LLMConnectionError
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.infrastructure.openai_client import OpenAIChatModel
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE, ExecutionContext
from tests.fakes.clock import FixedClock
from tests.fakes.llm_server import LLMServer, Say, Status

CLOCK = FixedClock(datetime(2026, 6, 30, 10, 0, 5, tzinfo=UTC))
ENGLISH = "What are the latest AI trends in 2025?"
CHINESE = "帮我分析一下 Go 语言的优势"
JAPANESE = "AIのトレンドは何ですか？"
CHAT = "你好，今天天气怎么样？"
NOBODY_KNOWS = "600519 ?"
PING_AN = Mention(text="平安", symbols=("000001.SZ", "601318.SH"), names=("平安银行", "中国平安"))
MAOTAI = Mention(text="茅台", symbols=("600519.SH",), names=("贵州茅台",))


class FakeRules:
    """Understands what it was told to; an `intent` for every question."""

    def __init__(self, intent: Intent = "research", **also: Any) -> None:
        self.understood = Understanding(**{"intent": intent, "locale": "zh-CN", "title": "按规则", **also})
        self.previous: Understanding | None = None
        self.default_locale = ""

    async def understand(
        self, text: str, *, previous: Understanding | None = None, default_locale: str
    ) -> Understanding:
        self.previous, self.default_locale = previous, default_locale
        return self.understood

    async def say_what_works(self, locale: str, asked: str) -> str:
        return f"What works, in {locale}"


class Desk:
    """A coordinator on a model over HTTP, or without one."""

    def __init__(self, server: LLMServer | None) -> None:
        self.model, self.metrics = OpenAIChatModel(), IntakeMetrics()
        self.rules = FakeRules()
        self.prompts, self.workspace = FOLDER, DEFAULT_WORKSPACE
        self.server = server

    def llm(self) -> LLMService:
        key = SecretStr("stub")
        asked = {"model_name": "m", "vendor": "stub", "workspace_id": self.workspace, "api_key": key}
        configs = [LLMConfig(alias="main", base_url=self.server.url, **asked)] if self.server else []
        registry = ModelRegistry(None, configs)
        return LLMService(registry, self.model.complete, CallJournal(), Budget(Limits()), sleep=_no_pause)

    def coordinator(self, **also: Any) -> Coordinator:
        prompts = PromptTemplates(self.prompts, metrics=self.metrics, clock=CLOCK)
        return Coordinator(self.llm(), prompts, self.rules, self.metrics, **also)

    async def ask(self, text: str, **state: Any) -> dict[str, Any]:
        given: Any = {"messages": [{"role": "user", "content": text}], **state}
        return await self.coordinator().run(given, self.workspace)


async def _no_pause(seconds: float) -> None:
    await asyncio.sleep(0)


@pytest.fixture
async def desk(llm_server: LLMServer) -> AsyncIterator[Desk]:
    desk = Desk(llm_server)
    yield desk
    await desk.model.aclose()


@pytest.fixture
async def without_model() -> AsyncIterator[Desk]:
    desk = Desk(None)
    yield desk
    await desk.model.aclose()


def calling(*calls: tuple[str, Any], content: str | None = None) -> Say:
    """A model's answer that calls tools; arguments that are no text are said in JSON."""
    said = [(name, given if isinstance(given, str) else json.dumps(given)) for name, given in calls]
    return Say(content, tool_calls=[(f"call-{n}", *call) for n, call in enumerate(said)])


def handing(title: str, locale: str | None = None) -> Say:
    given = {"task_title": title} | ({"locale": locale} if locale else {})
    return calling((HAND_TO_PLANNER.name, given))


class TestScenarios:
    @pytest.mark.accepts("A4-01", "A4-15", "A4-17")
    async def test_an_english_question_is_investigated_first(self, desk: Desk, llm_server: LLMServer):
        llm_server.script(handing("AI Trends 2025 Research", "en-US"))
        ended = await desk.ask(ENGLISH, enable_background_investigation=True)
        assert (ended["locale"], ended["goto"]) == ("en-US", BACKGROUND_INVESTIGATOR)
        assert (ended["task_title"], ended["reply"], ended["error"]) == (
            "AI Trends 2025 Research",
            None,
            None,
        )

    @pytest.mark.accepts("A4-02", "A4-15", "A4-17")
    async def test_a_chinese_question_goes_straight_to_the_planner(self, desk: Desk, llm_server: LLMServer):
        llm_server.script(handing("Go语言优势分析", "zh-CN"))
        ended = await desk.ask(CHINESE, enable_background_investigation=False)
        assert (ended["locale"], ended["goto"], ended["task_title"]) == ("zh-CN", PLANNER, "Go语言优势分析")

    @pytest.mark.accepts("A4-03", "A4-06")
    async def test_small_talk_ends_with_the_models_reply(self, desk: Desk, llm_server: LLMServer):
        llm_server.script(Say(" 你好！天气我帮不上忙，不过欢迎提出研究问题。\n"))
        ended = await desk.ask(CHAT, enable_background_investigation=True)
        assert (ended["goto"], ended["reply"]) == (END, "你好！天气我帮不上忙，不过欢迎提出研究问题。")
        assert (ended["locale"], ended["task_title"], ended["error"]) == ("zh-CN", None, None)
        assert ended.get("understanding") is None

    @pytest.mark.accepts("A4-04")
    async def test_a_japanese_question_is_handed_over_as_japanese(self, desk: Desk, llm_server: LLMServer):
        llm_server.script(handing("AIのトレンド", "ja-JP"))
        ended = await desk.ask(JAPANESE)
        assert (ended["locale"], ended["detected_locale"], ended["goto"]) == ("ja-JP", "ja-JP", PLANNER)


class TestShape:
    @pytest.mark.accepts("A4-09")
    def test_load_agent_router_in_a_line(self, without_model: Desk):
        drawn = without_model.coordinator().graph.get_graph()
        assert {(edge.source, edge.target) for edge in drawn.edges} == {
            (START, "load"),
            ("load", "agent"),
            ("agent", "router"),
            ("router", END),
        }
        assert not [edge for edge in drawn.edges if edge.conditional]

    async def test_what_goes_out_is_json_and_nothing_of_the_way_there(
        self, desk: Desk, llm_server: LLMServer
    ):
        llm_server.script(handing("t", "en-US"))
        ended = await desk.ask(ENGLISH, limits={"max_step_num": 2})
        assert json.loads(json.dumps(ended)) == ended
        assert set(ended) == set(CoordinatorState.model_fields) - {"enable_background_investigation"}

    @pytest.mark.accepts("A4-10", "A4-11", "A4-12", "A4-13", "W39")
    async def test_the_model_sees_the_prompt_the_conversation_and_one_tool(
        self, desk: Desk, llm_server: LLMServer
    ):
        llm_server.script(handing("五粮液与茅台对比", "zh-CN"))
        talk = [
            {"role": "user", "content": "茅台现在能买吗？"},
            {"role": "assistant", "content": "……"},
            {"role": "user", "content": "那和五粮液比呢？{{ locale }}"},
        ]
        state: Any = {"messages": talk, "limits": {"max_step_num": 6, "max_plan_iterations": 2}}
        await desk.coordinator().run(state, DEFAULT_WORKSPACE)
        (seen,) = llm_server.requests
        prompt, *conversation = seen.body["messages"]
        assert (prompt["role"], conversation) == ("system", talk)
        assert "你是研究台" in prompt["content"]
        for said in ("2026-06-30 10:00:05", "使用 zh-CN", "最多 6 个步骤", "最多制定 2 次"):
            assert said in prompt["content"]
        (tool,) = seen.body["tools"]
        assert tool["function"]["name"] == "hand_to_planner"
        assert tool["function"]["parameters"]["required"] == ["task_title", "locale"]
        assert {p["type"] for p in tool["function"]["parameters"]["properties"].values()} == {"string"}

    async def test_limits_left_out_are_not_zero(self, desk: Desk, llm_server: LLMServer):
        await desk.ask(ENGLISH)
        prompt = llm_server.requests[0].body["messages"][0]["content"]
        assert "up to 3 steps" in prompt
        assert "1 times at most" in prompt

    @pytest.mark.accepts("A4-16")
    async def test_the_language_of_the_conversation_is_in_the_next_prompt(
        self, desk: Desk, llm_server: LLMServer
    ):
        await desk.ask(NOBODY_KNOWS, locale="ko-KR")
        assert "so far is in ko-KR" in llm_server.requests[0].body["messages"][0]["content"]


class TestRouter:
    @pytest.mark.accepts("A4-07", "A4-23")
    @pytest.mark.parametrize("arguments", ['{"task_title": "AI', "[]", '"text"', "", "[" * 100_000])
    async def test_arguments_nobody_can_read_end_with_an_error_that_is_told(
        self, desk: Desk, llm_server: LLMServer, arguments: str
    ):
        llm_server.script(calling((HAND_TO_PLANNER.name, arguments)))
        with capture_logs() as logs:
            ended = await desk.ask(CHINESE, enable_background_investigation=True)
        assert (ended["goto"], ended["reply"], ended["task_title"]) == (END, None, None)
        assert ended["error"] is not None
        assert ended["error"]["code"] == "MALFORMED_TOOL_ARGUMENTS"
        assert "参数无法读取（工具 hand_to_planner）" in ended["error"]["message"]
        assert [(log["log_level"], log["tool"]) for log in logs] == [("warning", "hand_to_planner")]
        seen = desk.metrics.snapshot()
        assert (seen.hand_off_success.rate, seen.runs) == (0.0, {"failed": 1})

    @pytest.mark.accepts("A4-08")
    @pytest.mark.parametrize("given", [{}, {"locale": ""}, {"locale": None}, {"locale": 5}])
    async def test_without_a_locale_it_is_detected(
        self, desk: Desk, llm_server: LLMServer, given: dict[str, Any]
    ):
        llm_server.script(calling((HAND_TO_PLANNER.name, {"task_title": "t", **given})))
        ended = await desk.ask(CHINESE)
        assert (ended["locale"], ended["handed_locale"], ended["goto"]) == ("zh-CN", None, PLANNER)
        assert desk.metrics.snapshot().locale_disagreement.out_of == 0

    @pytest.mark.accepts("A4-08")
    async def test_where_nothing_can_be_detected_the_conversation_or_the_default_decides(
        self, desk: Desk, llm_server: LLMServer
    ):
        llm_server.script(*[handing("600519")] * 3)
        shipped = await desk.ask(NOBODY_KNOWS)
        known = await desk.ask(NOBODY_KNOWS, locale="ja-JP")
        state: Any = {"messages": [{"role": "user", "content": NOBODY_KNOWS}]}
        configured = await desk.coordinator(default_locale="zh-CN").run(state, DEFAULT_WORKSPACE)
        assert [ended["locale"] for ended in (shipped, known, configured)] == ["en-US", "ja-JP", "zh-CN"]

    @pytest.mark.accepts("W44", "A4-15")
    async def test_the_locale_handed_over_wins_over_the_requests_and_what_was_detected(
        self, desk: Desk, llm_server: LLMServer
    ):
        llm_server.script(handing("AI trends", "ja-JP"))
        ended = await desk.ask(ENGLISH, locale="zh-CN")
        assert (ended["detected_locale"], ended["locale"], ended["goto"]) == ("en-US", "ja-JP", PLANNER)

    @pytest.mark.accepts("W44")
    async def test_an_answer_by_tool_is_a_reply(self, desk: Desk, llm_server: LLMServer):
        llm_server.script(calling(("direct_response", {"message": "こんにちは！", "locale": "ja-JP"})))
        ended = await desk.ask("hello", enable_background_investigation=True)
        assert (ended["goto"], ended["reply"], ended["locale"]) == (END, "こんにちは！", "ja-JP")
        assert desk.metrics.snapshot().hand_off_success.out_of == 0

    @pytest.mark.parametrize("name", ["handoff_to_planner", "handoff_after_clarification"])
    async def test_names_the_tool_has_elsewhere_are_understood(
        self, desk: Desk, llm_server: LLMServer, name: str
    ):
        llm_server.script(calling((name, {"research_topic": "AI trends", "locale": "en-US"})))
        ended = await desk.ask(ENGLISH)
        assert (ended["goto"], ended["task_title"]) == (PLANNER, "AI trends")

    @pytest.mark.accepts("A4-14", "A4-22")
    async def test_the_first_call_that_is_known_counts_wherever_it_stands(
        self, desk: Desk, llm_server: LLMServer
    ):
        llm_server.script(
            calling(
                ("search", "{not json"),
                (HAND_TO_PLANNER.name, {"task_title": "first", "locale": "en-US"}),
                (HAND_TO_PLANNER.name, {"task_title": "second", "locale": "zh-CN"}),
                content="let me see",
            )
        )
        ended = await desk.ask(ENGLISH)
        assert (ended["task_title"], ended["locale"], ended["reply"]) == ("first", "en-US", None)

    @pytest.mark.accepts("A4-14", "A4-06")
    async def test_unknown_tools_alone_end_with_what_was_said(self, desk: Desk, llm_server: LLMServer):
        llm_server.script(calling(("search", {"q": "AI"}), content="I would search."))
        ended = await desk.ask(ENGLISH)
        assert (ended["goto"], ended["reply"]) == (END, "I would search.")

    @pytest.mark.accepts("A4-06")
    async def test_nothing_said_at_all_is_told_as_an_error(self, desk: Desk, llm_server: LLMServer):
        llm_server.script(calling(("search", {"q": "AI"})))
        with capture_logs():
            ended = await desk.ask(ENGLISH)
        assert ended["goto"] == END
        assert ended["error"] == {
            "code": "NOTHING_SAID",
            "message": "The question was neither answered nor handed over. "
            "Please ask again, perhaps in other words.",
        }

    async def test_without_a_title_the_question_is_its_own(self, desk: Desk, llm_server: LLMServer):
        llm_server.script(calling((HAND_TO_PLANNER.name, {"locale": "en-US"})))
        assert (await desk.ask(ENGLISH))["task_title"] == ENGLISH

    async def test_an_earlier_turns_reply_and_error_are_not_kept(self, desk: Desk, llm_server: LLMServer):
        llm_server.script(handing("t", "en-US"))
        ended = await desk.ask(ENGLISH, reply="hello", error={"code": "X", "message": "x"}, goto=END)
        assert (ended["reply"], ended["error"], ended["goto"]) == (None, None, PLANNER)

    @pytest.mark.accepts("A4-19")
    async def test_a_route_more_needs_no_change_of_the_router(self, desk: Desk, llm_server: LLMServer):
        def to_fact_checker(state: CoordinatorState) -> str | None:
            return "fact_checker" if "真的吗" in (state.task_title or "") else None

        coordinator = desk.coordinator(routes=(to_fact_checker, *ROUTES))
        llm_server.script(handing("这是真的吗", "zh-CN"), handing("茅台估值", "zh-CN"))
        state: Any = {
            "messages": [{"role": "user", "content": "茅台"}],
            "enable_background_investigation": True,
        }
        gone = [(await coordinator.run(state, DEFAULT_WORKSPACE))["goto"] for _ in range(2)]
        assert gone == ["fact_checker", BACKGROUND_INVESTIGATOR]


class TestUnderstanding:
    async def test_a_hand_off_carries_the_companies_that_rules_found(self, desk: Desk, llm_server: LLMServer):
        desk.rules = FakeRules("equity", mentions=(MAOTAI,))
        llm_server.script(handing("Is Moutai a buy?", "en-US"))
        ended = await desk.ask("茅台 buy or not")
        understanding = Understanding.model_validate(ended["understanding"])
        assert (understanding.intent, understanding.symbols) == ("equity", ("600519.SH",))
        assert (understanding.title, understanding.locale, understanding.by) == (
            "Is Moutai a buy?",
            "en-US",
            "model",
        )

    @pytest.mark.parametrize(
        ("intent", "said"),
        [
            ("equity", Say("Moutai is worth 2,000 yuan, buy it!")),
            ("unclear", Say("Trends, trends, trends", finish_reason="length")),
        ],
        ids=["a price from memory", "an answer without an end"],
    )
    async def test_a_model_that_knows_no_tools_does_not_answer_in_the_desks_name(
        self, desk: Desk, llm_server: LLMServer, intent: Intent, said: Say
    ):
        desk.rules = FakeRules(intent, mentions=(MAOTAI,) if intent == "equity" else ())
        llm_server.script(said)
        ended = await desk.ask("茅台现在能买吗？")
        assert (ended["goto"], ended["reply"], ended["task_title"]) == (PLANNER, None, "按规则")
        assert Understanding.model_validate(ended["understanding"]).by == "rules"
        assert llm_server.requests[0].body["max_tokens"] == 1000

    async def test_the_words_of_the_tool_are_no_title(self, desk: Desk, llm_server: LLMServer):
        llm_server.script(handing("What is to be found out, as a short title in the user's last", "en-US"))
        assert (await desk.ask(ENGLISH))["task_title"] == ENGLISH

    async def test_what_the_model_hands_over_is_researched_even_if_rules_know_nothing_of_it(
        self, desk: Desk, llm_server: LLMServer
    ):
        desk.rules = FakeRules("unclear")
        llm_server.script(handing("history of greetings", "en-US"))
        ended = await desk.ask("hello, why?")
        understanding = Understanding.model_validate(ended["understanding"])
        assert (ended["goto"], understanding.intent, understanding.reply) == (PLANNER, "research", None)

    @pytest.mark.parametrize(
        ("aspects", "goto"), [((), END), (("valuation_modeler",), PLANNER)], ids=["thanks", "its valuation"]
    )
    async def test_a_model_may_talk_in_a_conversation_about_companies_but_not_in_place_of_an_expert(
        self, desk: Desk, llm_server: LLMServer, aspects: tuple[str, ...], goto: str
    ):
        desk.rules = FakeRules("equity", mentions=(MAOTAI,), follows=True, aspects=aspects)
        llm_server.script(Say("You are welcome."))
        assert (await desk.ask("…"))["goto"] == goto

    async def test_a_name_that_several_companies_share_is_asked_back_though_a_model_hands_it_over(
        self, desk: Desk, llm_server: LLMServer
    ):
        desk.rules = FakeRules("unclear", mentions=(PING_AN,), reply="请问是哪一家？")
        llm_server.script(handing("Ping An's valuation", "en-US"))
        ended = await desk.ask("平安的估值", enable_background_investigation=True)
        assert (ended["goto"], ended["reply"], ended["locale"]) == (END, "请问是哪一家？", "zh-CN")
        assert (ended["task_title"], ended["handed_locale"]) == (None, "en-US")
        assert ended["understanding"] == desk.rules.understood.model_dump(mode="json")
        seen = desk.metrics.snapshot()
        assert (seen.runs, seen.hand_off_success.rate) == ({"replied": 1}, 1.0)

    async def test_a_model_that_answers_itself_is_not_interrupted(self, desk: Desk, llm_server: LLMServer):
        desk.rules = FakeRules("unclear", mentions=(PING_AN,), reply="请问是哪一家？")
        llm_server.script(Say("平安夜快乐！"))
        ended = await desk.ask("祝平安")
        assert (ended["reply"], ended.get("understanding")) == ("平安夜快乐！", None)

    async def test_rules_know_the_turn_before(self, without_model: Desk):
        before = Understanding(intent="equity", locale="zh-CN", title="茅台", mentions=(MAOTAI,))
        await without_model.ask("那和五粮液比呢？", understanding=before.model_dump(mode="json"))
        assert without_model.rules.previous == before
        assert without_model.rules.default_locale == "zh-CN"

    async def test_thanks_in_between_forget_nothing(self, without_model: Desk):
        before = Understanding(intent="equity", locale="zh-CN", title="茅台", mentions=(MAOTAI,))
        without_model.rules = FakeRules("unclear")
        ended = await without_model.ask("谢谢", understanding=before.model_dump(mode="json"))
        assert (ended["reply"], ended["understanding"]) == (
            "What works, in zh-CN",
            before.model_dump(mode="json"),
        )


class TestWithoutAModel:
    @pytest.mark.parametrize(
        ("investigates", "goto"),
        [(True, BACKGROUND_INVESTIGATOR), (False, PLANNER)],
        ids=["first", "at once"],
    )
    async def test_companies_go_the_same_way(self, without_model: Desk, investigates: bool, goto: str):
        without_model.rules = FakeRules("equity", mentions=(MAOTAI,), locale="ja-JP", title="題")
        ended = await without_model.ask(JAPANESE, enable_background_investigation=investigates)
        assert (ended["goto"], ended["locale"], ended["task_title"]) == (goto, "ja-JP", "題")
        assert ended["understanding"] == without_model.rules.understood.model_dump(mode="json")

    @pytest.mark.accepts("A4-03")
    async def test_the_rest_ends_with_what_can_be_asked(self, without_model: Desk):
        without_model.rules = FakeRules("unclear")
        ended = await without_model.ask(CHAT, enable_background_investigation=True)
        assert (ended["goto"], ended["reply"], ended["locale"]) == (END, "What works, in zh-CN", "zh-CN")
        assert ended.get("understanding") is None

    async def test_which_company_is_meant_is_asked_back_and_remembered(self, without_model: Desk):
        without_model.rules = FakeRules("unclear", mentions=(PING_AN,), reply="请问是哪一家？")
        ended = await without_model.ask("平安的估值", enable_background_investigation=True)
        assert (ended["goto"], ended["reply"]) == (END, "请问是哪一家？")
        assert ended["understanding"] == without_model.rules.understood.model_dump(mode="json")

    async def test_rules_are_not_counted_as_a_models_hand_off(self, without_model: Desk):
        without_model.rules = FakeRules("equity", mentions=(MAOTAI,))
        ended = await without_model.ask(CHINESE)
        assert (ended["locale"], ended["handed_locale"]) == ("zh-CN", None)
        seen = without_model.metrics.snapshot()
        assert (seen.hand_off_success.out_of, seen.locale_disagreement.out_of) == (0, 0)
        assert seen.runs == {"handed_off": 1}


class TestFailure:
    @pytest.mark.accepts("A4-05", "A4-26")
    async def test_a_lost_prompt_folder_still_leaves_a_coordinator(
        self, desk: Desk, llm_server: LLMServer, tmp_path: Path
    ):
        desk.prompts = tmp_path
        llm_server.script(handing("AI trends", "en-US"))
        with capture_logs():
            assert (await desk.ask(ENGLISH))["goto"] == PLANNER
        assert "`hand_to_planner`" in llm_server.requests[0].body["messages"][0]["content"]
        assert desk.metrics.snapshot().prompt_load_failure.rate == 1.0

    @pytest.mark.accepts("A4-05")
    async def test_no_prompt_at_all_is_the_sub_graphs_error(self, desk: Desk, tmp_path: Path):
        prompts = PromptTemplates(tmp_path, built_in={})
        coordinator = Coordinator(desk.llm(), prompts, desk.rules, desk.metrics)
        state: Any = {"messages": [{"role": "user", "content": ENGLISH}]}
        with capture_logs(), pytest.raises(Unavailable, match=r"coordinator\.md: no such file"):
            await coordinator.run(state, DEFAULT_WORKSPACE)
        assert desk.metrics.snapshot().runs == {"failed": 1}

    async def test_a_model_that_fails_is_the_callers_to_tell_and_counted(
        self, desk: Desk, llm_server: LLMServer
    ):
        llm_server.default = Status(500)
        with pytest.raises(LLMConnectionError):
            await desk.ask(ENGLISH)
        assert desk.metrics.snapshot().runs == {"failed": 1}


class TestMetrics:
    @pytest.mark.accepts("A4-23", "A4-24", "A4-25", "A4-26")
    async def test_every_run_is_counted_and_timed(self, desk: Desk, llm_server: LLMServer):
        bad = calling((HAND_TO_PLANNER.name, "{"))
        slow = Say("hi", delay=0.1)
        llm_server.script(handing("AI", "en-US"), handing("Go", "en-US"), bad, slow)
        with capture_logs():
            ended = [await desk.ask(text) for text in (ENGLISH, CHINESE, ENGLISH, "hi")]
        seen = desk.metrics.snapshot()
        assert seen.runs == {"handed_off": 2, "failed": 1, "replied": 1}
        assert (seen.hand_off_success.count, seen.hand_off_success.out_of) == (2, 3)
        assert (seen.prompt_load_failure.count, seen.prompt_load_failure.out_of) == (0, 4)
        assert (seen.locale_disagreement.count, seen.locale_disagreement.out_of) == (1, 2)
        assert seen.coordinator_latency.count == 4
        assert (seen.coordinator_latency.p95_ms or 0) >= 100
        assert (ended[1]["handed_locale"], ended[1]["detected_locale"]) == ("en-US", "zh-CN")
        assert [tuple(sample) for sample in desk.metrics.locale_samples()] == [
            (ENGLISH, "en-US", "en-US"),
            (CHINESE, "en-US", "zh-CN"),
        ]

    async def test_a_sample_is_of_the_workspace_in_which_it_was_asked(
        self, desk: Desk, llm_server: LLMServer
    ):
        llm_server.script(handing("AI", "en-US"))
        desk.workspace = "east"
        with ExecutionContext(workspace="east").active():  # whose model it is
            await desk.ask(ENGLISH)
        assert [sample.text for sample in desk.metrics.locale_samples("east")] == [ENGLISH]
        assert desk.metrics.locale_samples() == ()
