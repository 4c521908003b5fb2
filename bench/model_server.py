"""A model that takes a fixed time to say the same thing, in a process of its own: `python -m bench.model_server`."""

import asyncio
import sys

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


class Server:
    def __init__(self) -> None:
        self.in_flight = 0
        self.most_in_flight = 0

    async def complete(self, request: web.Request) -> web.Response:
        await request.read()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(float(request.match_info["latency"]))
        self.in_flight -= 1
        return web.json_response(ANSWER)

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
