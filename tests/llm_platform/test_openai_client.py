"""The client to OpenAI-compatible models, over real HTTP to a local server."""

import asyncio
import json
import ssl
import traceback
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import SecretStr

from moot.modules.llm_platform.domain.chat import (
    ChatMessage,
    ChatRequest,
    ModelReply,
    ResponseSchema,
    Tool,
    ToolCall,
    Usage,
)
from moot.modules.llm_platform.domain.exceptions import ModelTrouble
from moot.modules.llm_platform.domain.model_config import Capabilities, LLMConfig
from moot.modules.llm_platform.infrastructure.openai_client import OpenAIChatModel
from tests.fakes.clock import FixedClock, until
from tests.fakes.llm_server import Hang, Huge, LLMServer, Raw, Say, Status, Trickle

CANARY = "canary/Key+0123456789=abc"
NOW = datetime(2026, 6, 30, 10, 0, tzinfo=UTC)
QUESTION = ChatRequest(messages=[ChatMessage(role="user", content="What of 900001.DEMO?")])
SEARCH = Tool(name="search", description="Searches.", parameters={"type": "object", "properties": {}})
SCHEMA = ResponseSchema(name="verdict", json_schema={"type": "object"})
EVERYTHING = QUESTION.model_copy(update={"tools": [SEARCH], "response_schema": SCHEMA})


@pytest.fixture
async def model() -> AsyncIterator[OpenAIChatModel]:
    made = OpenAIChatModel(max_bytes=1_000_000, clock=FixedClock(NOW))
    yield made
    await made.aclose()


@pytest.fixture
async def impatient() -> AsyncIterator[OpenAIChatModel]:
    made = OpenAIChatModel(read_timeout=0.3)
    yield made
    await made.aclose()


@pytest.fixture
def config(llm_server: LLMServer) -> LLMConfig:
    return config_for(llm_server.url)


def config_for(url: str, **also: Any) -> LLMConfig:
    given = {"alias": "main", "vendor": "acme", "base_url": url, "model_name": "acme-1", "api_key": CANARY}
    return LLMConfig.model_validate(given | also)


async def trouble_of(
    model: OpenAIChatModel, config: LLMConfig, request: ChatRequest = QUESTION
) -> ModelTrouble:
    with pytest.raises(ModelTrouble) as raised:
        await model.complete(config, request)
    return raised.value


# What is answered


async def test_an_answer_comes_back_with_its_usage_and_the_vendors_name_of_the_model(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig
):
    llm_server.script(Say("Hold.", usage=(120, 30), model="acme-1-2026", finish_reason="length"))
    reply = await model.complete(config, QUESTION)
    assert reply == ModelReply(
        content="Hold.",
        usage=Usage(prompt_tokens=120, completion_tokens=30, total_tokens=150),
        model="acme-1-2026",
        finish_reason="length",
    )
    assert len(llm_server.requests) == 1
    assert llm_server.requests[0].headers["Authorization"] == f"Bearer {CANARY}"


async def test_thoughts_and_tool_calls_are_kept_apart_from_the_content(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig
):
    llm_server.script(Say(None, tool_calls=[("c1", "search", '{"q": 1}')], reasoning="Hm.", usage=None))
    reply = await model.complete(config, QUESTION)
    assert reply.content == ""
    assert reply.reasoning == "Hm."
    assert reply.tool_calls == [ToolCall(id="c1", name="search", arguments='{"q": 1}')]
    assert reply.usage == Usage()


async def test_nonsense_around_a_good_answer_is_left_out(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig
):
    usage = {"prompt_tokens": -5, "completion_tokens": "many", "total_tokens": 10**30}
    call = {"function": {"name": "search", "arguments": {"q": "a"}}}
    message = {"content": "half \ud800 and \x00", "reasoning": "Hm.", "tool_calls": [call]}
    answer = {"choices": [{"message": message, "finish_reason": None}], "usage": usage, "error": None}
    llm_server.script(Raw(json.dumps(answer).encode()))
    assert await model.complete(config, QUESTION) == ModelReply(
        content="half ? and �",
        reasoning="Hm.",
        tool_calls=[ToolCall(id="call_0", name="search", arguments='{"q": "a"}')],
        model="acme-1",
        finish_reason="tool_calls",
    )


async def test_a_refusal_is_the_answer_of_a_model_that_gave_none(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig
):
    message = {"content": None, "refusal": "I cannot help with that."}
    answer = {"choices": [{"message": message, "finish_reason": "stop"}]}
    llm_server.script(Raw(json.dumps(answer).encode()))
    reply = await model.complete(config, QUESTION)
    assert (reply.content, reply.finish_reason) == ("I cannot help with that.", "refusal")


async def test_a_request_that_a_filter_refused_says_so(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig
):
    complaint = {"error": {"code": "content_filter", "message": "The prompt was flagged."}}
    llm_server.script(Status(400, json.dumps(complaint)))
    with pytest.raises(ModelTrouble, match=r"flagged\. The vendor's content filter refused the request"):
        await model.complete(config, QUESTION)


# What is asked


async def test_a_plain_question_asks_for_nothing_it_does_not_need(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig
):
    await model.complete(config, QUESTION)
    assert llm_server.requests[0].path == "/v1/chat/completions"
    assert llm_server.requests[0].body == {
        "model": "acme-1",
        "messages": [{"role": "user", "content": "What of 900001.DEMO?"}],
        "temperature": 0.7,
        "max_tokens": 4096,
    }


async def test_a_conversation_with_tools_is_told_whole(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig
):
    messages = [
        ChatMessage(role="system", content="You judge."),
        ChatMessage(role="assistant", tool_calls=[ToolCall(id="c1", name="search", arguments="{}")]),
        ChatMessage(role="tool", content="found", tool_call_id="c1"),
    ]
    await model.complete(config, EVERYTHING.model_copy(update={"messages": messages}))
    body = llm_server.requests[0].body
    function = {"name": "search", "arguments": "{}"}
    assert body["messages"] == [
        {"role": "system", "content": "You judge."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "found", "tool_call_id": "c1"},
    ]
    assert body["tools"] == [{"type": "function", "function": SEARCH.model_dump()}]
    held = {"name": "verdict", "schema": {"type": "object"}, "strict": True}
    assert body["response_format"] == {"type": "json_schema", "json_schema": held}


async def test_a_model_that_knows_no_schema_is_not_sent_one(llm_server: LLMServer, model: OpenAIChatModel):
    cannot = config_for(llm_server.url, vendor="OpenAI", capabilities=Capabilities(json_schema=False))
    await model.complete(cannot, EVERYTHING)
    body = llm_server.requests[0].body
    assert "response_format" not in body
    assert body["max_completion_tokens"] == 4096
    assert "max_tokens" not in body


async def test_without_a_key_none_is_sent_not_even_the_one_of_the_environment(
    llm_server: LLMServer, model: OpenAIChatModel, monkeypatch: pytest.MonkeyPatch
):
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "from-the-environment")
    await model.complete(config_for(llm_server.url, api_key=SecretStr("")), QUESTION)
    headers = llm_server.requests[0].headers
    assert "Authorization" not in headers
    assert "from-the-environment" not in str(headers)


async def test_a_proxy_is_asked_to_reach_the_model(llm_server: LLMServer, model: OpenAIChatModel):
    proxy = llm_server.url.removesuffix("/v1")
    reply = await model.complete(config_for("http://model.invalid/v1", proxy=proxy), QUESTION)
    assert reply.content == "ok"
    assert llm_server.requests[0].headers["Host"] == "model.invalid"


async def test_a_proxys_user_is_told_to_the_proxy_and_nobody_else(
    llm_server: LLMServer, model: OpenAIChatModel
):
    proxy = llm_server.url.removesuffix("/v1").replace("//", "//user:word@")
    await model.complete(config_for("http://model.invalid/v1", proxy=proxy), QUESTION)
    headers = llm_server.requests[0].headers
    assert headers["Proxy-Authorization"] == "Basic dXNlcjp3b3Jk"
    assert headers["Authorization"] == f"Bearer {CANARY}"


async def test_the_environments_proxy_is_used_and_its_passwords_are_not(
    llm_server: LLMServer, model: OpenAIChatModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", llm_server.url.removesuffix("/v1"))
    (tmp_path / "netrc").write_text("machine model.invalid login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    await model.complete(config_for("http://model.invalid/v1", api_key=""), QUESTION)
    assert llm_server.requests[0].headers["Host"] == "model.invalid"
    assert "Authorization" not in llm_server.requests[0].headers


# What is refused


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_trouble_that_may_pass_is_told_as_passing(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig, status: int
):
    llm_server.script(Status(status, '{"error": {"message": "busy now"}}'))
    trouble = await trouble_of(model, config)
    assert (trouble.passing, trouble.billed) == (True, False)
    assert str(trouble) == f"acme (acme-1) answered with HTTP status {status}: busy now"
    assert len(llm_server.requests) == 1


@pytest.mark.parametrize("status", [307, 400, 401, 402, 403, 404, 422])
async def test_trouble_that_will_not_pass_is_told_so(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig, status: int
):
    llm_server.script(Status(status, "", {"Location": "/v1/chat/completions"}))
    trouble = await trouble_of(model, config)
    assert (trouble.passing, trouble.unsupported) == (False, None)
    assert f"HTTP status {status}" in str(trouble)
    assert "（未说明原因）" in trouble.in_locale("zh-CN")
    assert len(llm_server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "86400"}, 60.0),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "Tue, 30 Jun 2026 10:00:20 GMT"}, 20.0),
        ({"Retry-After": "Tue, 30 Jun 2026 09:00:00 GMT"}, 0.0),
        ({"Retry-After": "Tue, 99 Jun 2026 09:00:00 GMT"}, None),
        ({}, None),
    ],
)
async def test_the_wait_a_vendor_asks_for_is_understood(
    llm_server: LLMServer,
    model: OpenAIChatModel,
    config: LLMConfig,
    headers: dict[str, str],
    seconds: float | None,
):
    llm_server.script(Status(429, "slow down", headers))
    assert (await trouble_of(model, config)).retry_after == seconds


@pytest.mark.parametrize(
    ("complaint", "unsupported"),
    [
        ("This response_format type is unavailable now", "json_schema"),
        ("'json_schema' is not one of ['text']", "json_schema"),
        ("acme-1 does not support tools", "tools"),
        ('"auto" tool choice requires --enable-auto-tool-choice', "tools"),
        ("Function call is not available", "tools"),
        ("maximum context length is 8192 tokens, 9000 used (300 in the functions)", None),
        ("temperature is out of range", None),
    ],
)
@pytest.mark.parametrize("status", [400, 422])
async def test_what_a_model_cannot_do_is_named(
    llm_server: LLMServer,
    model: OpenAIChatModel,
    config: LLMConfig,
    complaint: str,
    unsupported: str | None,
    status: int,
):
    llm_server.script(*[Status(status, json.dumps({"error": {"message": complaint}}))] * 2)
    assert (await trouble_of(model, config, EVERYTHING)).unsupported == unsupported
    assert (await trouble_of(model, config, QUESTION)).unsupported is None  # it was not asked for


async def test_an_error_inside_a_success_is_trouble(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig
):
    llm_server.script(Raw(b'{"error": {"code": 429, "message": "busy"}}'), Raw(b'{"error": "out of order"}'))
    limited = await trouble_of(model, config)
    assert ("HTTP status 429" in str(limited), limited.passing) == (True, True)
    assert str(await trouble_of(model, config)) == "acme (acme-1) reported an error: out of order"


# What is broken

NOT_JSON = ("the answer is not JSON, or not all of it.", "内容不是 JSON，或者不完整。")
OTHER_SHAPE = ("the answer is JSON of another shape.", "JSON 的结构不符。")
BROKEN = {
    "empty": (b"", *NOT_JSON),
    "html": (
        b"<html>Log in</html>",
        "the answer is a web page. Check base_url; it usually ends in /v1.",
        "内容是网页。请检查 base_url，通常以 /v1 结尾。",
    ),
    "cut off": (b'{"choices": [{"mess', *NOT_JSON),
    "not JSON": (b"upstream failure", *NOT_JSON),
    "not UTF-8": (b'"\xff\xfe"', *NOT_JSON),
    "too deep": (b"[" * 200_000, *NOT_JSON),
    "NaN": (b'{"choices": [NaN]}', *OTHER_SHAPE),
    "no choices": (b'{"id": "1"}', *OTHER_SHAPE),
    "a list": (b"[]", *OTHER_SHAPE),
    "odd choices": (b'{"choices": {"0": 1}}', *OTHER_SHAPE),
    "odd content": (b'{"choices": [{"message": {"content": 5}}]}', *OTHER_SHAPE),
    "odd tool calls": (b'{"choices": [{"message": {"tool_calls": 5}}]}', *OTHER_SHAPE),
    "an odd tool call": (b'{"choices": [{"message": {"tool_calls": [5]}}]}', *OTHER_SHAPE),
}


@pytest.mark.parametrize(("body", "english", "chinese"), BROKEN.values(), ids=BROKEN)
async def test_a_broken_answer_is_trouble_that_says_what_is_wrong(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig, body: bytes, english: str, chinese: str
):
    llm_server.script(Raw(body))
    trouble = await trouble_of(model, config)
    assert trouble.in_locale("en-US") == f"acme (acme-1) did not send a chat completion: {english}"
    assert trouble.in_locale("zh-CN") == f"acme（acme-1）返回的不是对话补全：{chinese}"
    assert trouble.billed


async def test_of_a_huge_answer_no_more_is_read_than_allowed(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig
):
    llm_server.script(Huge(50_000_000))
    trouble = await trouble_of(model, config)
    assert str(trouble) == "acme (acme-1) sent more than 1000000 bytes; the rest was not read."
    assert (trouble.passing, trouble.billed) == (False, True)
    assert llm_server.bytes_sent < 20_000_000  # the rest of it is in the buffers of the sockets
    assert (await model.complete(config, QUESTION)).content == "ok"


async def test_a_huge_refusal_is_quoted_in_short(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig
):
    llm_server.script(Status(500, "x" * 10_000_000))
    said = str(await trouble_of(model, config)).removeprefix("acme (acme-1) answered with HTTP status 500: ")
    assert said == "x" * 299 + "…"


async def test_a_model_that_falls_silent_may_charge_all_the_same(
    llm_server: LLMServer, impatient: OpenAIChatModel, config: LLMConfig
):
    llm_server.script(Hang(), Trickle(pause=1))
    for trouble in [await trouble_of(impatient, config), await trouble_of(impatient, config)]:
        assert "fell silent" in str(trouble)
        assert (trouble.passing, trouble.billed) == (True, True)
        assert_no_canary(trouble)


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"])
async def test_a_connection_that_breaks_off_may_be_charged_for_too(model: OpenAIChatModel, sent: bytes):
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"DEMO?")
        writer.write(sent)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(cut, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        trouble = await trouble_of(model, config_for(f"http://127.0.0.1:{port}/v1"))
    assert "broke off" in str(trouble)
    assert (trouble.passing, trouble.billed) == (True, True)
    assert_no_canary(trouble)


async def test_a_model_that_cannot_be_reached_charges_nothing(model: OpenAIChatModel, unused_tcp_port: int):
    trouble = await trouble_of(model, config_for(f"http://127.0.0.1:{unused_tcp_port}/v1"))
    assert "cannot be reached (ClientConnectorError)" in str(trouble)
    assert (trouble.passing, trouble.billed) == (True, False)


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://127.0.0.1/v1", "http://[::1", "http://a:b:c/v1"])
async def test_an_address_that_is_none_is_trouble_that_does_not_pass(model: OpenAIChatModel, url: str):
    trouble = await trouble_of(model, config_for(url))
    assert (trouble.passing, trouble.billed) == (False, False)
    assert "base_url" in str(trouble)


async def test_a_certificate_nobody_vouches_for_is_named(model: OpenAIChatModel, tmp_path: Path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path))

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(close, "127.0.0.1", ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        trouble = await trouble_of(model, config_for(f"https://127.0.0.1:{port}/v1"))
    assert "cannot be reached (ClientConnectorCertificateError)" in str(trouble)
    assert (trouble.passing, trouble.billed, trouble.outage) == (False, False, False)
    assert_no_canary(trouble)


def self_signed(folder: Path) -> Path:
    """A certificate and its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
    made = made.not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "server.pem"
    file.write_bytes(private + made.sign(key, hashes.SHA256()).public_bytes(pem))
    return file


async def test_a_callers_deadline_ends_a_trickle_and_the_next_call_goes_well(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig
):
    llm_server.script(Trickle(pause=0.05, pieces=20_000))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await model.complete(config, QUESTION)
    assert (await model.complete(config, QUESTION)).content == "ok"
    await until(lambda: llm_server.in_flight == 0)
    assert llm_server.broken_off == len(llm_server.requests) - 1


async def test_two_hundred_calls_are_in_flight_at_once(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig
):
    llm_server.default = Hang()
    calls = [asyncio.create_task(model.complete(config, QUESTION)) for _ in range(200)]
    await until(lambda: llm_server.in_flight == 200)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


# What nobody may read


@pytest.mark.parametrize(
    "leak", [CANARY, quote(CANARY, safe=""), f"Authorization: Bearer {CANARY}", "x" * 290 + CANARY]
)
@pytest.mark.parametrize("status", [200, 401, 500])
async def test_no_error_tells_the_key(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig, leak: str, status: int
):
    llm_server.script(Status(status, json.dumps({"error": {"message": f"bad key {leak} given"}})))
    assert_no_canary(await trouble_of(model, config))


async def test_no_failed_connection_tells_the_key(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig, unused_tcp_port: int
):
    llm_server.script(Hang(0), Raw(CANARY.encode()))
    nowhere = config_for(f"http://127.0.0.1:{unused_tcp_port}/{CANARY}")
    for where in (config, config, nowhere):
        assert_no_canary(await trouble_of(model, where))


def assert_no_canary(trouble: ModelTrouble) -> None:
    said = [str(trouble), repr(trouble), repr(trouble.args), repr(vars(trouble)), trouble.in_locale("zh-CN")]
    told = "".join([*said, *traceback.format_exception(trouble)])
    assert not any(part in told for part in (CANARY, quote(CANARY, safe=""), CANARY[:10], "Bearer canary"))
    assert trouble.__cause__ is None
    assert trouble.__context__ is None


async def test_cancelling_a_call_is_not_trouble(
    llm_server: LLMServer, model: OpenAIChatModel, config: LLMConfig
):
    llm_server.script(Hang())
    call = asyncio.create_task(model.complete(config, QUESTION))
    await until(lambda: llm_server.in_flight == 1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: llm_server.in_flight == 0)


async def test_a_model_that_is_held_to_the_public_web_is_looked_at_when_it_is_connected_to(llm_server):
    """Whatever its name led to when it was added: here it leads to this machine."""
    held = config_for(llm_server.url.replace("127.0.0.1", "localhost"), public_only=True)
    for allowed in (False, True):
        model = OpenAIChatModel(private_urls=allowed)
        if allowed:
            assert (await model.complete(held, QUESTION)).content
        else:
            trouble = await trouble_of(model, held)
            assert not trouble.passing
            assert str(trouble).startswith("acme (acme-1) leads to this machine or its network")
            assert CANARY not in str(trouble)
            assert llm_server.requests == []
        await model.aclose()


async def test_through_the_environments_proxy_it_is_looked_at_before(llm_server, monkeypatch, model):
    monkeypatch.setenv("http_proxy", llm_server.url)
    monkeypatch.setenv("no_proxy", "")
    trouble = await trouble_of(model, config_for("http://10.0.0.1/v1", public_only=True))
    assert "leads to this machine or its network" in str(trouble)
    assert llm_server.requests == []
