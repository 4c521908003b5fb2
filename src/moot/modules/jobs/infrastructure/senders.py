"""How each place is spoken to: the wire formats of chat services, a signed webhook, and mail."""

import asyncio
import base64
import hashlib
import hmac
import json
import smtplib
import ssl
from collections.abc import Callable, Mapping
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit

import aiohttp
from yarl import URL

from moot.modules.jobs.domain.destinations import DeliveryFailed, Destination, Kind
from moot.modules.jobs.domain.notices import Notice
from moot.modules.jobs.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.messages import Message, shorten
from moot.shared.infrastructure.redaction import REDACT

SECONDS = 15.0
MOST_READ = 10_000
"""Bytes of an answer: what is longer says nothing that is needed here."""
TOLD = 120
PASSING = frozenset({408, 425, 429})
"""Among those that blame the sender, what may succeed later."""
PORTS = {"smtp": 587, "smtps": 465}
"""Of mail servers, unless the address has another."""
PERMANENT = 500
"""From this code on a mail server says that it will never take it."""
SLACK_MARKS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Post(NamedTuple):
    url: str
    body: bytes
    headers: Mapping[str, str] = {}


Format = Callable[[Destination, Notice, datetime], Post]


def _hash(key: str, text: bytes) -> bytes:
    return hmac.new(key.encode(), text, hashlib.sha256).digest()


def _encode(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()


def format_webhook(to: Destination, notice: Notice, now: datetime) -> Post:
    """Signed is the moment with the body, so that what was overheard cannot be sent again later."""
    body, moment, secret = notice.model_dump_json().encode(), str(int(now.timestamp())), _secret(to)
    headers = {"X-Moot-Id": str(notice.id), "X-Moot-Timestamp": moment}
    if secret:
        headers["X-Moot-Signature"] = f"sha256={_hash(secret, moment.encode() + b'.' + body).hex()}"
    return Post(_url(to), body, headers)


def format_wecom(to: Destination, notice: Notice, _now: datetime) -> Post:
    return Post(_url(to), _encode({"msgtype": "text", "text": {"content": notice.text}}))


def format_dingtalk(to: Destination, notice: Notice, now: datetime) -> Post:
    """Signed in the address: of milliseconds and secret, with the secret."""
    url, secret = _url(to), _secret(to)
    if secret:
        moment = str(int(now.timestamp() * 1000))
        sign = base64.b64encode(_hash(secret, f"{moment}\n{secret}".encode())).decode()
        url += f"{'&' if '?' in url else '?'}{urlencode({'timestamp': moment, 'sign': sign})}"
    return Post(url, _encode({"msgtype": "text", "text": {"content": notice.text}}))


def format_feishu(to: Destination, notice: Notice, now: datetime) -> Post:
    """Signed in the body: nothing, with seconds and secret."""
    body: dict[str, Any] = {"msg_type": "text", "content": {"text": notice.text}}
    if secret := _secret(to):
        moment = str(int(now.timestamp()))
        sign = base64.b64encode(_hash(f"{moment}\n{secret}", b"")).decode()
        body = {"timestamp": moment, "sign": sign, **body}
    return Post(_url(to), _encode(body))


def format_slack(to: Destination, notice: Notice, _now: datetime) -> Post:
    return Post(_url(to), _encode({"text": notice.text.translate(SLACK_MARKS)}))


FORMATS: Mapping[Kind, Format] = {
    "webhook": format_webhook,
    "wecom": format_wecom,
    "dingtalk": format_dingtalk,
    "feishu": format_feishu,
    "slack": format_slack,
}
CODES: Mapping[Kind, tuple[str, ...]] = {
    "wecom": ("errcode",),
    "dingtalk": ("errcode",),
    "feishu": ("code", "StatusCode"),
}
"""Where these say what became of it, with HTTP 200 in either case: 0 is well."""
WORDS = ("errmsg", "msg", "StatusMessage")


class Sender:
    """`seconds`: how long an attempt may take."""

    def __init__(self, clock: Clock, seconds: float = SECONDS) -> None:
        self._clock, self._seconds = clock, seconds

    async def __call__(self, to: Destination, notice: Notice) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                if to.kind == "email":
                    await asyncio.to_thread(send_mail, to, notice, self._seconds)
                else:
                    await self._post(to, FORMATS[to.kind](to, notice, self._clock.now()))
        except TimeoutError:
            said = SAY("delivery.timeout", place=to.place, seconds=self._seconds)
            raise DeliveryFailed(said) from None
        except (aiohttp.ClientError, OSError) as e:  # by its kind: what it says may quote the address
            said = SAY("delivery.unreachable", place=to.place, error=type(e).__name__)
            raise DeliveryFailed(said) from None

    async def aclose(self) -> None:
        if "_client" in vars(self):
            await self._client.close()

    @cached_property
    def _client(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(trust_env=True)

    async def _post(self, to: Destination, post: Post) -> None:
        headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "moot", **post.headers}
        address = URL(post.url, encoded=True)
        async with self._client.post(
            address, data=post.body, headers=headers, allow_redirects=False
        ) as answer:
            said = await _read(answer)
            _check_status(to, answer.status, said, answer.headers.get("Retry-After", ""))
            if to.kind in CODES:
                _check_code(to, said)


async def _read(answer: aiohttp.ClientResponse) -> str:
    """It may come in parts."""
    body = bytearray()
    async for part in answer.content.iter_any():
        body += part
        if len(body) > MOST_READ:
            break
    return body.decode("utf-8", "replace")


def _check_status(to: Destination, status: int, said: str, retry_after: str) -> None:
    if 200 <= status < 300:
        return
    if 300 <= status < 400:  # an address that leads elsewhere is for a person to look at
        raise DeliveryFailed(SAY("delivery.redirected", place=to.place, status=status), passing=False)
    passing = status >= 500 or status in PASSING
    wait = float(retry_after) if retry_after.isdecimal() else 0.0
    message = SAY("delivery.status", place=to.place, status=status, said=_quote(said))
    raise DeliveryFailed(message, passing=passing, retry_after=wait)


def _check_code(to: Destination, said: str) -> None:
    try:
        answer = json.loads(said)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise DeliveryFailed(SAY("delivery.unclear", place=to.place, said=_quote(said)))
    codes = [answer[name] for name in CODES[to.kind] if name in answer]
    if codes and all(code == 0 for code in codes):
        return
    words = next((str(answer[name]) for name in WORDS if name in answer), "")
    code = next((code for code in codes if code != 0), "?")
    raise DeliveryFailed(SAY("delivery.refused", place=to.place, code=code, said=_quote(words)))


def send_mail(to: Destination, notice: Notice, seconds: float) -> None:
    """Blocks. Encrypted from the start with `smtps`, else as soon as the server can; a password never goes in the
    clear. Raises `DeliveryFailed`, or `OSError` where the server cannot be had."""
    try:
        with _connect(to, seconds) as server:
            _identify(to, server)
            server.send_message(_write_mail(to, notice))
    except smtplib.SMTPResponseException as e:
        raise _refuse_mail(to, e.smtp_code, e.smtp_error) from None
    except smtplib.SMTPRecipientsRefused as e:
        raise _refuse_mail(to, *next(iter(e.recipients.values()))) from None


def _connect(to: Destination, seconds: float) -> smtplib.SMTP:
    parts = urlsplit(_url(to))
    host, port = str(parts.hostname), parts.port or PORTS[parts.scheme]
    if parts.scheme == "smtps":
        return smtplib.SMTP_SSL(host, port, timeout=seconds, context=ssl.create_default_context())
    return smtplib.SMTP(host, port, timeout=seconds)


def _identify(to: Destination, server: smtplib.SMTP) -> None:
    """Over a line that nobody else can read."""
    encrypted, password = isinstance(server, smtplib.SMTP_SSL), _secret(to)
    server.ehlo()
    if not encrypted and server.has_extn("starttls"):
        server.starttls(context=ssl.create_default_context())
        encrypted = True
    if password and not encrypted:
        raise DeliveryFailed(SAY("delivery.in_the_clear", place=to.place), passing=False)
    if password:
        user = urlsplit(_url(to)).username
        server.login(unquote(user or to.sender), password)


def _write_mail(to: Destination, notice: Notice) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = notice.title
    mail["From"] = to.sender
    mail["To"] = ", ".join(to.recipients)
    mail["Date"] = format_datetime(notice.at)
    mail["Message-ID"] = f"<{notice.id}@moot>"
    mail.set_content(notice.text)
    return mail


def _refuse_mail(to: Destination, code: int, said: bytes | str) -> DeliveryFailed:
    words = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    message = SAY("delivery.refused", place=to.place, code=code, said=_shorten(words))
    return DeliveryFailed(message, passing=code < PERMANENT)


def _shorten(said: str) -> str:
    return shorten(REDACT.text(" ".join(said.split())), TOLD)


def _quote(said: str) -> Message | str:
    return _shorten(said) or SAY("delivery.nothing")


def _url(to: Destination) -> str:
    return to.url.get_secret_value()


def _secret(to: Destination) -> str:
    return to.secret.get_secret_value()
