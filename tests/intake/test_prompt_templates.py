"""Prompts by name: which text is taken, what may be put into it, and what happens when there is none."""

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from moot.modules.intake.application.metrics import IntakeMetrics
from moot.modules.intake.infrastructure.graph.coordinator_graph import HAND_TO_PLANNER, TEXT_OF
from moot.modules.intake.infrastructure.prompt_templates import (
    BUILT_IN,
    FOLDER,
    PromptTemplates,
)
from moot.modules.llm_platform.application.llm_service import ChatMessage
from moot.shared.domain.errors import Unavailable

ASKED = [ChatMessage(role="user", content="茅台现在能买吗？")]
VARIABLES: dict[str, Any] = {
    "locale": "en-US",
    "max_step_num": 7,
    "max_plan_iterations": 4,
    "CURRENT_TIME": "2026-06-30 10:00:00",
    "user_input": ASKED,
}


@pytest.fixture
def metrics() -> IntakeMetrics:
    return IntakeMetrics()


def put(folder: Path, name: str, text: str | bytes) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def system(prompts: PromptTemplates, name: str = "coordinator", **also: Any) -> str:
    first = prompts.messages(name, {**VARIABLES, **also})[0]
    assert first.role == "system"
    return first.content


class TestShipped:
    @pytest.mark.accepts("A4-10", "A4-11", "A4-12")
    @pytest.mark.parametrize("locale", ["en-US", "zh-CN", "ja-JP"])
    def test_every_variable_reaches_the_prompt_and_the_conversation_follows_it(self, locale: str):
        said = [
            *ASKED,
            ChatMessage(role="assistant", content="?"),
            ChatMessage(role="user", content="600519"),
        ]
        messages = PromptTemplates().messages(
            "coordinator", {**VARIABLES, "locale": locale, "user_input": said}
        )
        prompt = messages[0].content
        assert [message.role for message in messages] == ["system", "user", "assistant", "user"]
        assert messages[1:] == said
        assert all(value in prompt for value in (locale, "2026-06-30 10:00:00", "7", "4"))
        assert "茅台" not in prompt
        assert "{{" not in prompt

    def test_chinese_readers_have_a_prompt_of_their_own(self):
        prompts = PromptTemplates()
        assert "你是研究台" in system(prompts, locale="zh-CN")
        assert "你是研究台" in system(prompts, locale="zh-TW")
        assert system(prompts, locale="ja-JP").startswith("You are the front desk")

    @pytest.mark.accepts("W39")
    @pytest.mark.parametrize(
        "text",
        [*BUILT_IN.values(), *(path.read_text("utf-8") for path in FOLDER.rglob("coordinator.md"))],
        ids=lambda text: text[:12],
    )
    def test_prompts_name_the_tool_as_it_is_bound(self, text: str):
        assert f"`{HAND_TO_PLANNER.name}`" in text
        assert all(f"`{argument}`" in text for argument in HAND_TO_PLANNER.parameters["required"])
        others = {*TEXT_OF} - {HAND_TO_PLANNER.name}
        assert not [name for name in others if name in text]

    def test_there_are_two_of_the_coordinator(self):
        assert len(list(FOLDER.rglob("coordinator.md"))) == 2


class TestChoice:
    @pytest.mark.accepts("A4-10")
    def test_the_readers_language_comes_first_then_the_file_for_all(self, tmp_path: Path):
        put(tmp_path, "greeting.md", "for all")
        put(tmp_path, "zh-CN/greeting.md", "中文")
        put(tmp_path, "ja-JP/greeting.md", "日本語")
        prompts = PromptTemplates(tmp_path)
        found = {of: system(prompts, "greeting", locale=of) for of in ("zh-CN", "ja-JP", "ko-KR", "en-US")}
        assert found == {"zh-CN": "中文", "ja-JP": "日本語", "ko-KR": "for all", "en-US": "for all"}

    @pytest.mark.accepts("A4-21")
    def test_files_are_read_once(self, tmp_path: Path):
        put(tmp_path, "greeting.md", "hello")
        prompts = PromptTemplates(tmp_path)
        (tmp_path / "greeting.md").unlink()
        assert [system(prompts, "greeting") for _ in range(2)] == ["hello", "hello"]

    def test_neither_a_name_nor_a_locale_leads_out_of_the_folder(self, tmp_path: Path):
        put(tmp_path, "secret.md", "secret")
        inside = tmp_path / "prompts"
        put(inside, "greeting.md", "hello")
        prompts = PromptTemplates(inside)
        assert system(prompts, "greeting", locale="..") == "hello"
        for name, locale in (("secret", ".."), ("../secret", "en-US")):
            with pytest.raises(Unavailable):
                system(prompts, name, locale=locale)


class TestValues:
    @pytest.mark.accepts("A4-12")
    def test_jinja_fills_in_conditions_and_loops(self, tmp_path: Path):
        put(tmp_path, "steps.md", "{% for n in steps %}{{ n }};{% endfor %}{% if last %}end{% endif %}")
        assert system(PromptTemplates(tmp_path), "steps", steps=[1, 2], last=True) == "1;2;end"

    def test_what_somebody_wrote_is_no_template(self, tmp_path: Path):
        put(tmp_path, "title.md", "{{ title }}")
        title = "{{ 7 * 7 }} {% raw %} <b>&</b>"
        assert system(PromptTemplates(tmp_path), "title", title=title) == title

    def test_the_conversation_stays_out_of_the_prompt(self, tmp_path: Path):
        put(tmp_path, "careless.md", "asked: {{ user_input }}")
        with pytest.raises(Unavailable, match="'user_input' is undefined"):
            system(PromptTemplates(tmp_path), "careless")

    def test_a_template_reaches_nothing_but_its_values(self, tmp_path: Path):
        put(tmp_path, "curious.md", "{{ locale.__class__.__mro__ }}")
        with pytest.raises(Unavailable, match="unsafe"):
            system(PromptTemplates(tmp_path), "curious")

    def test_no_conversation_leaves_the_prompt_alone(self, tmp_path: Path):
        put(tmp_path, "greeting.md", "hello")
        assert PromptTemplates(tmp_path).messages("greeting", {}) == [
            ChatMessage(role="system", content="hello")
        ]


class TestFailure:
    @pytest.mark.accepts("A4-05", "A4-26")
    def test_without_files_the_coordinator_has_a_prompt_built_in(
        self, tmp_path: Path, metrics: IntakeMetrics
    ):
        prompts = PromptTemplates(tmp_path / "gone", metrics=metrics)
        with capture_logs() as logs:
            prompt = system(prompts)
        assert "`hand_to_planner`" in prompt
        assert "2026-06-30 10:00:00" in prompt
        (log,) = logs
        assert (log["log_level"], log["prompt"]) == ("warning", "coordinator")
        assert str(tmp_path / "gone" / "coordinator.md") in log["problems"][-1]
        assert metrics.snapshot().prompt_load_failure.rate == 1.0

    @pytest.mark.accepts("A4-05")
    def test_with_neither_the_error_names_what_was_looked_for(self, tmp_path: Path, metrics: IntakeMetrics):
        prompts = PromptTemplates(tmp_path, built_in={}, metrics=metrics)
        with capture_logs(), pytest.raises(Unavailable) as missing:
            system(prompts, locale="zh-CN")
        said = missing.value.in_locale("zh-CN")
        assert missing.value.code == "PROMPT_MISSING"
        assert "提示词“coordinator”无法使用" in said
        for path in (tmp_path / "zh-CN" / "coordinator.md", tmp_path / "coordinator.md"):
            assert f"{path}: no such file" in said
        assert metrics.snapshot().prompt_load_failure.rate == 1.0

    @pytest.mark.accepts("A4-05", "A4-26")
    @pytest.mark.parametrize(
        "broken", ["{% if %}", "{{ nobody_knows }}", b"\xff\xfe"], ids=["syntax", "value", "bytes"]
    )
    def test_a_broken_file_is_told_and_the_next_one_serves(
        self, tmp_path: Path, metrics: IntakeMetrics, broken: str | bytes
    ):
        put(tmp_path, "zh-CN/coordinator.md", broken)
        put(tmp_path, "coordinator.md", "for all")
        prompts = PromptTemplates(tmp_path, metrics=metrics)
        with capture_logs() as logs:
            assert [system(prompts, locale=of) for of in ("zh-CN", "en-US")] == ["for all", "for all"]
        assert [len(log["problems"]) for log in logs] == [1]
        assert metrics.snapshot().prompt_load_failure.rate == 0.5

    @pytest.mark.accepts("A4-26")
    def test_a_language_without_a_file_of_its_own_is_no_failure(self, tmp_path: Path, metrics: IntakeMetrics):
        put(tmp_path, "coordinator.md", "for all")
        system(PromptTemplates(tmp_path, metrics=metrics), locale="ja-JP")
        assert metrics.snapshot().prompt_load_failure.rate == 0.0
