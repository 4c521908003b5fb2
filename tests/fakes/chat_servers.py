"""Chat services and mail on localhost: they speak as the real ones do, and refuse what those would refuse."""

import asyncio
import base64
import hashlib
import hmac
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web

from tests.fakes.clock import settle

DINGTALK_SECRET = "SEC19dd84be8c7f3cf71761974f1ed3ef77"
FEISHU_SECRET = "kjPfPxsGTwYhTVPBiFsbad"
WEBHOOK_SECRET = "a shared secret of ours"
TOKEN = "693a91f6-7aaa-4bc4-97a0-0ec2sifa5aaa"


@dataclass
class ChatServer:
    """`heard` has what was taken, `refuse_with` is answered instead while it is set: status, body, headers."""

    url: str = ""
    now: float = 0.0
    heard: list[dict[str, Any]] = field(default_factory=list)
    refuse_with: tuple[int, str, dict[str, str]] | None = None
    hang: bool = False
    in_parts: bool = False
    """Its answer comes bit by bit."""

    def address(self, kind: str) -> str:
        return {
            "wecom": f"{self.url}/cgi-bin/webhook/send?key={TOKEN}",
            "dingtalk": f"{self.url}/robot/send?access_token={TOKEN}",
            "feishu": f"{self.url}/open-apis/bot/v2/hook/{TOKEN}",
            "slack": f"{self.url}/services/T000/B000/{TOKEN}",
            "webhook": f"{self.url}/hook/{TOKEN}",
        }[kind]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.hang:
            await asyncio.Event().wait()
        if self.refuse_with is not None:
            status, text, headers = self.refuse_with
            return web.Response(status=status, text=text, headers=headers)
        path, raw = request.path, await request.read()
        services = {"/cgi-bin": self._wecom, "/robot": self._dingtalk, "/open-apis": self._feishu}
        services |= {"/services": self._slack, "/hook": self._webhook}
        serve = next(serve for prefix, serve in services.items() if path.startswith(prefix))
        assert request.content_type == "application/json"
        answer = serve(request, raw)
        return await self._drip(request, answer) if self.in_parts else answer

    async def _drip(self, request: web.Request, whole: web.Response) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        assert isinstance(whole.body, bytes)
        for byte in whole.body:
            await answer.write(bytes([byte]))
            await settle()
        return answer

    def _wecom(self, request: web.Request, raw: bytes) -> web.Response:
        body = json.loads(raw)
        if request.query.get("key") != TOKEN:
            return web.json_response({"errcode": 93000, "errmsg": "invalid webhook url"})
        if len(body["text"]["content"].encode()) > 2048:
            return web.json_response({"errcode": 40058, "errmsg": "content exceed max length"})
        self.heard.append({"text": body["text"]["content"], "type": body["msgtype"]})
        return web.json_response({"errcode": 0, "errmsg": "ok"})

    def _dingtalk(self, request: web.Request, raw: bytes) -> web.Response:
        body, query = json.loads(raw), parse_qs(request.rel_url.raw_query_string)
        moment = query.get("timestamp", ["0"])[0]
        made = hmac.new(
            DINGTALK_SECRET.encode(), f"{moment}\n{DINGTALK_SECRET}".encode(), hashlib.sha256
        ).digest()
        fresh = abs(int(moment) / 1000 - self.now) < 3600
        if query.get("sign") != [base64.b64encode(made).decode()] or not fresh:
            return web.json_response({"errcode": 310000, "errmsg": "sign not match"})
        assert query["access_token"] == [TOKEN]
        if len(raw) > 20_000:
            return web.json_response({"errcode": 460101, "errmsg": "message too long"})
        self.heard.append({"text": body["text"]["content"], "type": body["msgtype"]})
        return web.json_response({"errcode": 0, "errmsg": "ok"})

    def _feishu(self, _request: web.Request, raw: bytes) -> web.Response:
        body = json.loads(raw)
        key = f"{body.get('timestamp')}\n{FEISHU_SECRET}".encode()
        made = base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()
        if body.get("sign") != made or abs(int(body["timestamp"]) - self.now) > 3600:
            said = "sign match fail or timestamp is not within one hour from current time"
            return web.json_response({"code": 19021, "msg": said, "data": {}})
        if len(raw) > 20_000:
            return web.json_response({"code": 9499, "msg": "request body too large", "data": {}})
        self.heard.append({"text": body["content"]["text"], "type": body["msg_type"]})
        return web.json_response(
            {"code": 0, "msg": "success", "data": {}, "StatusCode": 0, "StatusMessage": "success"}
        )

    def _slack(self, _request: web.Request, raw: bytes) -> web.Response:
        body = json.loads(raw)
        if not body.get("text"):
            return web.Response(status=400, text="no_text")
        self.heard.append({"text": body["text"]})
        return web.Response(text="ok")

    def _webhook(self, request: web.Request, raw: bytes) -> web.Response:
        moment = request.headers["X-Moot-Timestamp"]
        made = hmac.new(WEBHOOK_SECRET.encode(), f"{moment}.".encode() + raw, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(request.headers.get("X-Moot-Signature", ""), f"sha256={made}"):
            return web.Response(status=401, text="bad signature")
        body = json.loads(raw)
        assert request.headers["X-Moot-Id"] == body["id"]
        self.heard.append(body)
        return web.Response(status=204)


@asynccontextmanager
async def running_chat_server(now: float) -> AsyncIterator[ChatServer]:
    server, app = ChatServer(now=now), web.Application()
    app.router.add_post("/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()


@dataclass
class MailServer:
    """`tls` None: it has no encryption. `refuse`: what it says to recipients instead of taking them."""

    tls: ssl.SSLContext | None = None
    password: str = ""
    refuse: str = ""
    port: int = 0
    mails: list[bytes] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    """Whether the line was, when each mail came."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        while line := (await reader.readline()).decode().strip():
            self.said.append(line)
            word = line.split(" ")[0].upper()
            if word == "DATA":
                writer.write(b"354 go on\r\n")
                self.encrypted.append(writer.get_extra_info("ssl_object") is not None)
                self.mails.append((await reader.readuntil(b"\r\n.\r\n"))[:-5])
                writer.write(b"250 taken\r\n")
            elif word == "STARTTLS" and self.tls:
                writer.write(b"220 ready\r\n")
                await writer.drain()
                await writer.start_tls(self.tls)
            else:
                writer.write(self._reply(word, line).encode() + b"\r\n")
            await writer.drain()
            if word == "QUIT":
                break
        writer.close()

    def _reply(self, word: str, line: str) -> str:
        if word == "EHLO":
            more = "\r\n250-STARTTLS" if self.tls else ""
            return f"250-mail.example{more}\r\n250-AUTH PLAIN\r\n250 8BITMIME"
        if word == "AUTH":
            known = base64.b64encode(f"\0ada\0{self.password}".encode()).decode()
            return "235 welcome" if line == f"AUTH PLAIN {known}" else "535 5.7.8 bad credentials"
        if word == "RCPT" and self.refuse:
            return self.refuse
        return "221 bye" if word == "QUIT" else "250 ok"


@asynccontextmanager
async def running_mail_server(
    tls: ssl.SSLContext | None = None, *, encrypted: bool = False
) -> AsyncIterator[MailServer]:
    """`encrypted`: from the start, as `smtps` wants it."""
    mail = MailServer(tls=None if encrypted else tls)
    server = await asyncio.start_server(mail.serve, "127.0.0.1", 0, ssl=tls if encrypted else None)
    mail.port = server.sockets[0].getsockname()[1]
    yield mail
    server.close()
