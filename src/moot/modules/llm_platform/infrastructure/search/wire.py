"""What every search service over HTTP has in common: one request, its errors, and how to read a careless answer."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import aiohttp

from moot.modules.llm_platform.domain.exceptions import WebSearchConnectionError, WebSearchError
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.infrastructure.redaction import REDACT

LARGEST_ANSWER = 8_000_000
TOLD = 200
"""Characters of a service's own words that are passed on when it refuses."""

LAST_ON_EARTH = timezone(timedelta(hours=-12))
"""A time without a zone is taken for the latest moment it can mean, so that nothing is believed known too early."""


class JsonService:
    """The way to one service. `secret` is taken out of whatever it says back."""

    def __init__(self, name: str, base_url: str, timeout: float, *, secret: str = "") -> None:
        self._name, self._base_url, self._secret = name, base_url.rstrip("/"), secret
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, method: str, path: str, **sent: Any) -> tuple[int, str, Mapping[str, Any]]:
        """The status, the body, and the object in it."""
        try:
            status, text = await self._exchange(method, self._base_url + path, sent)
        except (
            aiohttp.ClientError,
            TimeoutError,
            OSError,
        ) as e:  # by kind only: its text may quote the request
            raise WebSearchConnectionError(
                SAY("search.unreachable", service=self._name, error=type(e).__name__)
            ) from e
        found = json_object(text)
        if status != 200:
            raise self.refused(status, said(found) or text)
        if found is None:
            raise WebSearchError(SAY("search.unreadable", service=self._name), status_code=status)
        return status, *_as_kept(text, found)

    def refused(self, status: int, words: str, *, code: object = None) -> WebSearchError:
        """`code` is what the body said where the status said otherwise."""
        quoted = words.replace(self._secret, "***") if self._secret else words
        message = SAY("search.refused", service=self._name, code=code or status, said=quoted[:TOLD].strip())
        return WebSearchError(message, status_code=status)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(self, method: str, url: str, sent: Mapping[str, Any]) -> tuple[int, str]:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout, trust_env=True)
        async with self._session.request(method, url, allow_redirects=False, **sent) as answer:
            body = bytearray()
            async for chunk in answer.content.iter_chunked(65_536):
                body += chunk
                if len(body) > LARGEST_ANSWER:
                    raise aiohttp.ClientPayloadError("too large")
            return answer.status, body.decode("utf-8", "replace")


def said(found: Mapping[str, Any] | None) -> str:
    """A service's own words about what went wrong."""
    return next((text(found, name) for name in ("message", "msg", "error") if text(found, name)), "")


def inner(found: object, *path: str) -> object:
    """What lies along `path`; None as soon as something is missing on the way."""
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def text(found: object, name: str) -> str:
    """Only text is text: a missing key, null or anything else is the empty string."""
    value = inner(found, name)
    return value.strip() if isinstance(value, str) else ""


def pages(listed: object) -> Iterator[Mapping[str, Any]]:
    """The entries that lead to a page: others cannot be quoted, and must not be clicked on."""
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, Mapping) and text(entry, "url").lower().startswith(("http://", "https://")):
            yield entry


def moment(written: str) -> datetime | None:
    """When, in UTC; None where the text is no moment."""
    try:
        when = datetime.fromisoformat(written)
        if when.tzinfo is None:
            when = when.replace(tzinfo=LAST_ON_EARTH)
        return when.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def json_object(body: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None


def kept_object(body: str) -> Mapping[str, Any]:
    """The object in a body that is on the record; `ValueError` when there is none any more."""
    found = json_object(body)
    if found is None:
        raise ValueError("no JSON object")
    return found


def _as_kept(body: str, found: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The answer as the record will hold it: whoever reads it there must find what was read here."""
    kept = REDACT(body)
    return (body, found) if kept == body else (kept, json_object(kept) or found)
