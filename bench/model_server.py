"""A model that takes a fixed time to say the same thing, in a process of its own: `python -m bench.model_server`."""

import asyncio
import json
import sys
from typing import Any

from aiohttp import web

USAGE = {"prompt_tokens": 800, "completion_tokens": 300, "total_tokens": 1100}
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "stub-1",
    "usage": USAGE,
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "evidence and reasons. " * 60},
        }
    ],
}


STEPS: list[dict[str, Any]] = [
    {
        "id": name,
        "type": "research",
        "title": f"What {name} says about batteries",
        "description": "",
        "after": [],
    }
    for name in ("one", "two", "three")
]
PLAN = {"locale": "en-US", "has_enough_context": False, "thought": "", "title": "Batteries", "steps": STEPS}


def answer_to(asked: dict[str, Any]) -> dict[str, Any]:
    """Whoever wants a plan gets one of three steps that need nothing of each other."""
    wanted = asked.get("response_format", {}).get("json_schema", {}).get("name")
    if wanted != "Plan":
        return ANSWER
    message = {"role": "assistant", "content": json.dumps(PLAN)}
    return ANSWER | {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


class Server:
    def __init__(self) -> None:
        self.in_flight = 0
        self.most_in_flight = 0

    async def complete(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(float(request.match_info["latency"]))
        self.in_flight -= 1
        return web.json_response(answer_to(asked))

    async def peak(self, _: web.Request) -> web.Response:
        peak, self.most_in_flight = self.most_in_flight, 0
        return web.json_response(peak)


async def serve() -> None:
    """Listen on a free port, print it, and stop when whoever started this goes away."""
    server, app = Server(), web.Application()
    app.add_routes(
        [
            web.post("/{latency}/v1/chat/completions", server.complete),
            web.get("/peak", server.peak),
        ]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve())
