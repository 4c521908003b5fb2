"""A desk behind a real socket, in the test's own process, and nodes that wait until they are let through."""

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn

from moot.desk import Moot
from moot.main import create_app
from moot.shared.infrastructure.settings import Settings
from moot.shared.presentation.limits import BOUNDS
from tests.fakes.clock import PATIENCE, until

RESEARCH = "/api/v1/coordinator/research"
SESSIONS = f"{RESEARCH}/sessions"
NOBODY = "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d"
MACRO, VALUATION = "macro_intelligence", "valuation_modeler"
ON_SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""For what is the same on every database."""
IN_TIME = PATIENCE


class Frame(NamedTuple):
    """A server-sent event as it came over the wire."""

    id: int
    event: str
    data: dict[str, Any]


def question(symbol: str = "900001.DEMO", **changes: Any) -> dict[str, Any]:
    asked = {"symbol": symbol, "experts": [MACRO, VALUATION], "skip_debate": True, "locale": "en-US"}
    return {**asked, **changes}


def frames(text: str) -> list[Frame]:
    return [_frame(block) for block in text.split("\n\n") if block.startswith("event: ")]


def _frame(block: str) -> Frame:
    lines = dict(line.split(": ", 1) for line in block.splitlines())
    assert list(lines) == ["event", "data", "id"]
    return Frame(int(lines["id"]), lines["event"], json.loads(lines["data"]))


@dataclass(frozen=True)
class Client:
    """What a user of the REST API does, one line each. No wait is endless."""

    http: httpx.AsyncClient

    async def start(self, body: dict[str, Any] | None = None, **headers: str) -> str:
        """The id of a session that runs in the background."""
        asked = {**(body or question()), "mode": "async"}
        answer = await self.http.post(RESEARCH, json=asked, headers=headers)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["session_id"])

    async def detail(self, session_id: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.http.get(f"{SESSIONS}/{session_id}")).json()
        return found

    async def story(self, session_id: str, **headers: str) -> str:
        """The whole stream: it ends when the session does."""
        async with asyncio.timeout(IN_TIME):
            answer = await self.http.get(f"{SESSIONS}/{session_id}/events", headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def ended(self, session_id: str) -> dict[str, Any]:
        """The session, when it has ended."""
        await self.story(session_id)
        return await self.detail(session_id)

    async def count(self) -> int:
        return int((await self.http.get(SESSIONS)).json()["total"])

    async def cancel(self, session_id: str) -> httpx.Response:
        return await self.http.post(f"{SESSIONS}/{session_id}/cancel")


@dataclass(frozen=True)
class Served(Client):
    desk: Moot


@asynccontextmanager
async def serving(settings: Settings, *, worker: bool = False, keyless: bool = True) -> AsyncIterator[Served]:
    """`keyless`: whoever is here needs no key, whichever a test makes for others. A `worker` runs what is begun."""
    desk = Moot(settings.model_copy(update={"shutdown_grace": 0.0, "open": keyless, "worker": worker}))
    config = uvicorn.Config(
        create_app(desk), log_level="critical", lifespan="on", timeout_graceful_shutdown=2, **BOUNDS
    )
    server, listening = uvicorn.Server(config), _listening()
    task = asyncio.create_task(server.serve([listening]))
    try:
        await until(lambda: server.started or task.done())
        async with calling(listening.getsockname()[1]) as http:
            yield Served(http, desk)
    finally:
        server.should_exit = True
        await task


def calling(port: int, key: str | None = None) -> httpx.AsyncClient:
    headers = {"Accept-Language": "en", **({"Authorization": f"Bearer {key}"} if key else {})}
    address = f"http://127.0.0.1:{port}"
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(
        base_url=address,
        headers=headers,
        timeout=IN_TIME,
        limits=limits,
        trust_env=False,
        verify=False,  # not spoken here, and the certificates take a while to load
    )


def free_port() -> int:
    """Below those that the system gives to whoever asks for any: nobody takes it before the server does. And above
    those that browsers refuse to open."""
    while True:
        port = 11_000 + secrets.randbelow(20_000)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def _listening() -> socket.socket:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    return listening


class Gate:
    """Stands where a desk's rules would: a node waits here until its symbol, or everybody, is let through."""

    def __init__(self) -> None:
        self.arrived: list[tuple[str, str]] = []
        self._let: set[str] = set()
        self._open = False
        self._changed = asyncio.Condition()

    async def authorise(self, node_type: str, symbol: str, _options: dict[str, Any]) -> None:
        async with self._changed:
            self.arrived.append((symbol, node_type))
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self._open or symbol in self._let)

    @property
    def symbols(self) -> list[str]:
        """Whose nodes came, in the order of the first of each."""
        return list(dict.fromkeys(symbol for symbol, _ in self.arrived))

    async def reached(self, nodes: int) -> None:
        async with asyncio.timeout(IN_TIME), self._changed:
            await self._changed.wait_for(lambda: len(self.arrived) >= nodes)

    async def let(self, symbol: str) -> None:
        async with self._changed:
            self._let.add(symbol)
            self._changed.notify_all()

    async def open(self) -> None:
        async with self._changed:
            self._open = True
            self._changed.notify_all()
