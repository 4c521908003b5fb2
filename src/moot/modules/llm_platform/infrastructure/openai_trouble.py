"""What goes wrong with a request to a model, told as `ModelTrouble`: in both languages and without secrets."""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp

from moot.modules.llm_platform.domain.exceptions import ModelTrouble
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.messages import Message
from moot.shared.infrastructure.redaction import REDACT, storable

EXCERPT = 300
LONGEST_WAIT = 60.0
PASSING = {408, 409, 425, 429}
HINTS = {401: "client.hint.key", 403: "client.hint.key", 404: "client.hint.address"}
FEATURES = {  # what a request may ask for, and the words by which a vendor says that it does not know it
    "response_format": ("json_schema", ("response_format", "json_schema")),
    "tool_choice": ("tool_choice", ("tool_choice",)),
    "tools": ("tools", ("tools", "functions", "tool use", "tool call", "tool choice", "function call")),
}
PARAMETERS = ("temperature", "max_tokens")
"""Every request has them, and a complaint may be about their value."""
DENIALS = ("unsupported", "not support", "instead")
MISTAKEN = (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, aiohttp.ClientConnectorCertificateError)
"""Configured wrongly: no other attempt will change it."""
NEVER_SENT = (
    *MISTAKEN,
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
)


class Refusal(Exception):
    """The vendor answered with a status that is not success."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status, self.headers, self.body = status, headers, body.decode("utf-8", "replace")


def refused(
    config: LLMConfig, sent: Mapping[str, Any], status: int, body: str, retry_after: float | None = None
) -> ModelTrouble:
    hint = SAY(HINTS[status]) if status in HINTS else ""
    return ModelTrouble(
        SAY("client.refused", **_who(config), status=status, said=_excerpt(body), hint=hint),
        passing=status in PASSING or status >= 500,
        retry_after=retry_after,
        status_code=status,
        outage=status >= 500,
        unsupported=_unsupported(sent, body) if status in {400, 422} else None,
    )


def reported(config: LLMConfig, sent: Mapping[str, Any], answer: Mapping[str, Any]) -> ModelTrouble:
    """The status said success, the answer an error; its `code` is often the status it should have had."""
    error = answer["error"]
    body = json.dumps({"error": error}, ensure_ascii=False)
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, int) and 400 <= code < 600:
        return refused(config, sent, code, body)
    said = SAY("client.reported", **_who(config), said=_excerpt(body))
    return ModelTrouble(said, passing=True, outage=True)


def unreadable(config: LLMConfig, why: str, *, passing: bool = False) -> ModelTrouble:
    reason = SAY(f"client.unreadable.{why}")
    said = SAY("client.not_an_answer", **_who(config), why=reason)
    return ModelTrouble(said, passing=passing, billed=True, outage=why != "html")  # a page: a wrong address


def too_big(config: LLMConfig, limit: int) -> ModelTrouble:
    return ModelTrouble(SAY("client.too_big", **_who(config), limit=limit), billed=True, outage=True)


def transport_failed(config: LLMConfig, error: Exception) -> ModelTrouble:
    """Told by the kind of the error only: its text may quote the request.

    The SDK calls a refused connection a time-out, so it is what aiohttp raised underneath that counts.
    """
    cause = next((e for e in _chain(error) if isinstance(e, aiohttp.ClientError)), None)
    said = _who(config) | {"error": type(cause or error).__name__}
    if cause is None:
        return ModelTrouble(SAY("client.failed", **said))
    if isinstance(cause, NEVER_SENT):
        ours = isinstance(cause, MISTAKEN)
        return ModelTrouble(SAY("client.unreachable", **said), passing=not ours, outage=not ours)
    key = "client.timeout" if isinstance(cause, aiohttp.ServerTimeoutError) else "client.broken_off"
    return ModelTrouble(SAY(key, **said), passing=True, billed=True, outage=True)


def wait_asked_for(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds, at most `LONGEST_WAIT`; None when the vendor names none or nonsense."""
    asked = headers.get("retry-after", "")
    readings = (_number(headers.get("retry-after-ms", ""), 1000), _number(asked), _until(asked, now))
    seconds = next((reading for reading in readings if reading is not None), -1.0)
    return min(seconds, LONGEST_WAIT) if seconds >= 0 else None


def _number(text: str, divisor: float = 1) -> float | None:
    try:
        number = float(text) / divisor
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _until(text: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())


def _who(config: LLMConfig) -> dict[str, Any]:
    return {"vendor": config.vendor, "model": config.model_name}


def _excerpt(body: str) -> str | Message:
    """The vendor's own words, cut short after the secrets are out: half a key is still a secret."""
    words = " ".join(REDACT.text(storable(_words(body))).split())
    if len(words) > EXCERPT:
        return words[: EXCERPT - 1] + "…"
    return words or SAY("client.no_words")


def _words(body: str) -> str:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return body
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else body


def _unsupported(sent: Mapping[str, Any], body: str) -> str | None:
    """What was asked for and is named in the complaint; a prompt too long also counts the tokens of its tools."""
    complaint = body.lower()
    if "context" in complaint and "length" in complaint:
        return None
    asked = [FEATURES[field] for field in FEATURES if field in sent]
    if any(denial in complaint for denial in DENIALS):
        asked += [(name, (name,)) for name in PARAMETERS if name in sent]
    return next((name for name, words in asked if any(word in complaint for word in words)), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
