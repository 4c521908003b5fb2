"""A model's answer becomes the object it was asked for, or an error that says what is wrong with it."""

import json
import time
from typing import Any, Literal

import pytest
import structlog
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from moot.modules.llm_platform.domain.exceptions import LLMOutputParseError
from moot.modules.llm_platform.domain.parsing import parse_llm_json_output


class Levels(BaseModel):
    support: float
    resistance: float


class View(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    signal: Literal["BULLISH", "BEARISH"]
    confidence: float = Field(ge=0, le=1)
    levels: Levels | None = None
    reasons: list[str] = []
    narrative_report: str = ""


SAID = {
    "signal": "BULLISH",
    "confidence": 0.7,
    "reasons": ["a {brace", 'a "quote"'],
    "narrative_report": "一\n二",
}
JSON = json.dumps(SAID, ensure_ascii=False)
VIEW = View.model_validate(SAID)


def parsed(raw: str, **more: Any) -> View:
    return parse_llm_json_output(raw, View, **more)


def refused(raw: str, **more: Any) -> LLMOutputParseError:
    with pytest.raises(LLMOutputParseError) as caught:
        parsed(raw, **more)
    return caught.value


@pytest.mark.parametrize(
    "raw",
    [
        JSON,
        f"\ufeff  {JSON}\n",
        f"```json\n{JSON}\n```",
        f"```\n{JSON}```",
        f"```JSON {JSON} ```",
        f"<think>Is it {{}} or not?</think>\n{JSON}",
        f"<think>one</think><think>two {{'a': 1}}</think>```json\n{JSON}\n```",
        f"the template opened the thought {{}} for me</think>{JSON}",
        f"Here is the answer:\n```json\n{JSON}\n```\nI hope it helps.",
        f'Sure, the "answer" is {JSON}. Anything else {{?}}',
        f"With {{a remark}} before: {JSON}",
        f"{JSON}\n{JSON}",
        JSON.replace("\\n", "\n"),
    ],
)
def test_the_object_is_found_in_what_surrounds_it(raw):
    assert parsed(raw) == VIEW


def test_raw_control_characters_in_a_string_are_kept_as_what_they_are():
    answer = parsed('{"signal": "BULLISH", "confidence": 1, "narrative_report": "a\n\tb\r\x07"}')
    assert answer.narrative_report == "a\n\tb\r\x07"


def test_a_thought_mentioned_in_the_answer_is_part_of_it():
    said = SAID | {"narrative_report": "<think>no</think> ```"}
    assert parsed(json.dumps(said)).narrative_report == "<think>no</think> ```"


@pytest.mark.parametrize(
    ("raw", "english", "chinese"),
    [
        ("", "The model gave no answer.", "模型没有给出回答。"),
        (" \n", "The model gave no answer.", "模型没有给出回答。"),
        ("<think>still thinking {", "The model gave no answer.", "模型没有给出回答。"),
        (f"<think>a draft: {JSON}", "The model gave no answer.", "模型没有给出回答。"),
        ("I cannot help.", "The answer holds no JSON object.", "回答中没有 JSON 对象。"),
        (JSON[:40], "The answer was cut off before its end.", "回答不完整，在结尾之前就中断了。"),
        ("[1]", "The answer holds no JSON object.", "回答中没有 JSON 对象。"),
        ("7", "The answer holds no JSON object.", "回答中没有 JSON 对象。"),
    ],
)
def test_what_is_no_object_is_refused_in_words(raw, english, chinese):
    error = refused(raw)
    assert (error.in_locale("en-US"), error.in_locale("zh-CN")) == (english, chinese)
    assert error.code == "LLM_JSON_PARSE_ERROR"


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ('{"signal": "BULLISH" "confidence": 1}', "Expecting ',' delimiter: line 1 column 22 (char 21)"),
        ('{"signal": "BULLISH", "signal": "BEARISH", "confidence": 1}', "duplicate key 'signal'"),
        ('{"signal": "BULLISH", "confidence": NaN}', "NaN is not a JSON number"),
        ('{"signal": "BULLISH", "confidence": -Infinity}', "-Infinity is not a JSON number"),
        ('{"signal": "BULLISH", "confidence": 1e999}', "1e999 is not a JSON number"),
        ('{"signal": "BULLISH", "confidence": 1, "narrative_report": "\\u0000"}', "NUL character"),
    ],
)
def test_json_that_is_broken_or_means_two_things_is_refused(raw, why):
    error = refused(raw)
    assert error.details["json_error"] == why
    assert error.in_locale("zh-CN") == f"回答不是合法的 JSON（{why}）。"


def test_half_a_character_is_refused():
    assert (
        "surrogates"
        in refused('{"signal": "BULLISH", "confidence": 1, "narrative_report": "\\ud83d"}').details[
            "json_error"
        ]
    )


def test_the_details_say_where():
    error = refused('{"signal": }')
    assert error.details == {
        "raw_length": 12,
        "json_error": "Expecting value: line 1 column 12 (char 11)",
        "position": 11,
        "validation_errors": [],
    }


def test_a_missing_field_and_a_value_that_is_not_allowed_are_named():
    error = refused('{"signal": "UP"}')
    assert error.in_locale("en-US") == (
        "The answer does not fit what was asked for. "
        "signal: 'UP' is not known. Allowed: BULLISH, BEARISH. confidence: is required."
    )
    assert error.in_locale("zh-CN") == (
        "回答与要求不符。signal：'UP' 不是可识别的值。可选：BULLISH、BEARISH。confidence：必填。"
    )
    assert [(e["field"], e["problem"]) for e in error.details["validation_errors"]] == [
        ("signal", "literal_error"),
        ("confidence", "missing"),
    ]
    assert json.dumps(error.details)


def test_only_the_first_few_of_many_problems_are_told():
    error = refused(json.dumps(SAID | {"reasons": list(range(100))}))
    assert [e["field"] for e in error.details["validation_errors"]] == [f"reasons.{n}" for n in range(5)]


def test_normalisers_run_in_order_before_validation():
    def rename(found: dict[str, Any]) -> dict[str, Any]:
        return {"signal": found["verdict"], "confidence": found["confidence"]}

    def upper(found: dict[str, Any]) -> dict[str, Any]:
        return found | {"signal": found["signal"].upper()}

    answer = parsed('{"verdict": "bearish", "confidence": 0.4}', normalizers=[rename, upper])
    assert (answer.signal, answer.confidence) == ("BEARISH", 0.4)


def test_a_normaliser_that_meets_an_odd_shape_is_a_refusal():
    error = refused(JSON, normalizers=[lambda found: found | {"signal": found["levels"]["support"]}])
    assert error.in_locale("en-US") == "The answer is not of the shape that was asked for."
    assert error.details["json_error"] == "KeyError: 'levels'"


@pytest.mark.accepts("A2-16")
def test_a_missing_narrative_breaks_nothing():
    assert parsed('{"signal": "BULLISH", "confidence": 0.7}').narrative_report == ""


def test_the_log_shows_the_start_of_the_answer_and_whose_it_is():
    with structlog.testing.capture_logs() as lines:
        refused("x" * 5000, context_label="bull_advocate")
    (line,) = lines
    assert (line["log_level"], line["label"], line["raw"]) == ("warning", "bull_advocate", "x" * 2000)


def test_a_good_answer_is_not_logged():
    with structlog.testing.capture_logs() as lines:
        parsed(JSON)
    assert lines == []


@pytest.mark.parametrize(
    "raw",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "{" * 100_000,
        "{}" * 50_000,
        '{"a":1}' * 20_000,
        '{"' * 50_000,
        "</think>" * 20_000,
        "<think>" * 20_000,
        "\\" * 100_000,
        '{"confidence": ' + "9" * 100_000 + "}",
        "`" * 100_000,
        " " * 100_000 + "}",
        '{"a":"' + "\\{" * 50_000,
    ],
)
def test_hostile_answers_are_refused_at_once(raw):
    started = time.process_time()
    assert refused(raw).details["raw_length"] == len(raw)
    assert time.process_time() - started < 5


Json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["BULLISH", "{", "}", '"']),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([*View.model_fields, "support", "x"]) | st.text(), inner, max_size=5
        )
    ),
    max_leaves=12,
)
Pieces = st.lists(
    st.sampled_from(
        ["{", "}", "[", "]", '"', "\\", ":", ",", "```", "```json", "<think>", "</think>", "\n", JSON, "NaN"]
    )
    | st.text(max_size=8)
    | st.characters(categories=["Cc", "Cs"])
    | Json.map(json.dumps),
    max_size=12,
).map("".join)


@given(Pieces)
def test_nothing_but_a_parse_error_is_ever_raised(raw):
    try:
        answer = parsed(raw, normalizers=[lambda found: {**found, "signal": found.get("signal", "BULLISH")}])
    except LLMOutputParseError as error:
        assert error.in_locale("zh-CN")
        assert error.in_locale("en-US")
    else:
        assert isinstance(answer, View)


@given(
    st.builds(
        View,
        signal=st.just("BEARISH"),
        confidence=st.floats(0, 1),
        narrative_report=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    ),
    st.sampled_from(["{}", "```json\n{}\n```", "Well: {} ok"]),
)
@example(View(signal="BEARISH", confidence=0.5, narrative_report="<think>"), "Well: {} ok")
@example(View(signal="BEARISH", confidence=0.5, narrative_report="so</think> it is"), "Well: {} ok")
@example(View(signal="BEARISH", confidence=0.5, narrative_report="<think>a</think>"), "<think>{hm}</think>{}")
def test_what_was_written_is_what_is_read(view, around):
    assert parsed(around.replace("{}", view.model_dump_json())) == view
