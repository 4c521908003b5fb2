"""Every wire format, against servers that check it as the real ones do."""

import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from ipaddress import ip_address
from uuid import UUID

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import SecretStr
from structlog.testing import capture_logs

from moot.modules.jobs.domain.destinations import LONGEST, DeliveryFailed, Destination, find_place
from moot.modules.jobs.domain.notices import Notice, compose_digest
from moot.modules.jobs.infrastructure.senders import Sender
from tests.fakes.chat_servers import (
    DINGTALK_SECRET,
    FEISHU_SECRET,
    TOKEN,
    WEBHOOK_SECRET,
    ChatServer,
    running_chat_server,
    running_mail_server,
)
from tests.fakes.clock import FixedClock

NOW = datetime(2026, 6, 30, 10, 0, tzinfo=UTC)
SECRETS = {"dingtalk": DINGTALK_SECRET, "feishu": FEISHU_SECRET, "webhook": WEBHOOK_SECRET}
CHATS = ["wecom", "dingtalk", "feishu", "slack", "webhook"]
TEXT = "幻山酒业（900001.DEMO）：观望 → 买入\n原因：市盈率 <20 & 现金充足"
NOTICE = Notice(
    id=UUID(int=7),
    occasion="verdict",
    at=NOW,
    workspace="default",
    locale="zh-CN",
    title=TEXT.partition("\n")[0],
    text=TEXT,
    symbol="900001.DEMO",
    action="BUY",
    before="HOLD",
)


@pytest.fixture
async def chat() -> AsyncIterator[ChatServer]:
    async with running_chat_server(NOW.timestamp()) as server:
        yield server


@pytest.fixture
async def send() -> AsyncIterator[Sender]:
    sender = Sender(FixedClock(NOW))
    yield sender
    await sender.aclose()


def place(kind: str, url: str, secret: str = "", **more: object) -> Destination:
    given = {"id": UUID(int=1), "workspace_id": "default", "name": kind, "kind": kind, "created_at": NOW}
    where = find_place(kind, url)  # type: ignore[arg-type]
    return Destination(**given, url=SecretStr(url), secret=SecretStr(secret), place=where, **more)  # type: ignore[arg-type]


def chat_place(chat: ChatServer, kind: str) -> Destination:
    return place(kind, chat.address(kind), SECRETS.get(kind, ""))


@pytest.mark.parametrize("kind", CHATS)
async def test_each_service_takes_what_is_signed_and_written_as_it_wants_it(chat, send, kind):
    await send(chat_place(chat, kind), NOTICE)
    (heard,) = chat.heard
    wanted = TEXT.replace("&", "&amp;").replace("<", "&lt;") if kind == "slack" else TEXT
    assert heard["text"] == wanted


@pytest.mark.parametrize("kind", CHATS)
async def test_each_service_takes_a_digest_of_hundreds(chat, send, kind):
    many = [
        NOTICE.model_copy(update={"id": UUID(int=n), "remarks": ("不构成投资建议。",)}) for n in range(300)
    ]
    await send(chat_place(chat, kind), compose_digest(many, LONGEST[kind]))
    (heard,) = chat.heard
    title, first, *_, more, remark = heard["text"].split("\n")
    assert (title, first) == ("300 条通知：裁决变化 300 条", NOTICE.title)
    shown = heard["text"].count("900001.DEMO")
    assert (more, remark) == (f"……另有 {300 - shown} 条", "不构成投资建议。")
    assert shown == 50 or len(heard["text"].encode()) > 0.95 * LONGEST[kind]
    assert len(heard.get("items", many)) == 300


@pytest.mark.parametrize("kind", ["wecom", "dingtalk", "feishu"])
async def test_an_answer_is_read_to_its_end_however_it_comes(chat, send, kind):
    chat.in_parts = True
    await send(chat_place(chat, kind), NOTICE)
    assert len(chat.heard) == 1


async def test_a_webhook_is_given_all_of_it(chat, send):
    await send(chat_place(chat, "webhook"), NOTICE)
    assert chat.heard == [NOTICE.model_dump(mode="json")]


@pytest.mark.parametrize("kind", ["dingtalk", "feishu", "webhook"])
async def test_another_secret_is_not_taken(chat, send, kind):
    with pytest.raises(DeliveryFailed):
        await send(place(kind, chat.address(kind), "not the secret of theirs"), NOTICE)
    assert chat.heard == []


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        (
            "wecom",
            '{"errcode": 45009, "errmsg": "api freq out of limit"}',
            "code 45009: api freq out of limit",
        ),
        ("dingtalk", '{"errcode": 310000, "errmsg": "keywords not in content"}', "code 310000: keywords"),
        ("feishu", '{"code": 9499, "msg": "Bad Request", "data": {}}', "code 9499: Bad Request"),
        ("feishu", '{"StatusCode": 11232, "StatusMessage": "frequency limited"}', "code 11232: frequency"),
        ("wecom", "<html>a login page</html>", "did not answer as this kind of service does: <html>"),
        ("dingtalk", "[]", "did not answer as this kind of service does: []"),
        ("feishu", "{}", "code ?: (nothing)"),
    ],
)
async def test_an_error_within_an_ok_is_a_failure_that_may_pass(chat, send, kind, body, said):
    chat.refuse_with = (200, body, {})
    with pytest.raises(DeliveryFailed) as failed:
        await send(chat_place(chat, kind), NOTICE)
    assert said in str(failed.value)
    assert failed.value.passing


@pytest.mark.parametrize(
    ("status", "headers", "passing", "wait"),
    [
        (500, {}, True, 0.0),
        (429, {"Retry-After": "90"}, True, 90.0),
        (429, {"Retry-After": "Tue, 30 Jun 2026 10:05:00 GMT"}, True, 0.0),
        (404, {}, False, 0.0),
        (410, {}, False, 0.0),
        (302, {"Location": "http://169.254.169.254/"}, False, 0.0),
    ],
)
async def test_a_refusal_says_whether_it_passes_and_when(chat, send, status, headers, passing, wait):
    chat.refuse_with = (status, "no_service", headers)
    with pytest.raises(DeliveryFailed) as failed:
        await send(chat_place(chat, "slack"), NOTICE)
    assert f"HTTP {status}" in str(failed.value)
    assert (failed.value.passing, failed.value.retry_after) == (passing, wait)
    assert "不" not in str(failed.value)
    assert str(status) in failed.value.in_locale("zh-CN")


async def test_who_does_not_answer_is_not_waited_for(chat):
    chat.hang, send = True, Sender(FixedClock(NOW), seconds=0.05)
    with pytest.raises(DeliveryFailed, match=r"did not answer within 0\.05 seconds"):
        await send(chat_place(chat, "wecom"), NOTICE)
    await send.aclose()


async def test_nobody_there_is_said_without_the_address(send):
    with capture_logs() as logs, pytest.raises(DeliveryFailed) as failed:
        await send(place("wecom", f"http://127.0.0.1:1/send?key={TOKEN}"), NOTICE)
    assert "http://127.0.0.1:1 cannot be reached" in str(failed.value)
    assert TOKEN not in f"{failed.value!r} {failed.value.in_locale('zh-CN')} {logs}"


async def test_what_echoes_the_key_does_not_spread_it(chat, send):
    from moot.modules.jobs.infrastructure.notify_store import learn_parts

    learn_parts(chat.address("slack"))
    chat.refuse_with = (404, f"no hook {TOKEN}", {})
    with pytest.raises(DeliveryFailed) as failed:
        await send(chat_place(chat, "slack"), NOTICE)
    assert "no hook ***" in str(failed.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of localhost, signed by itself."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    hosts = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(hosts, critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return str(file)


@pytest.fixture
def tls(certificate: str, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """What a server needs; clients trust it."""
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def mail_place(port: int, secret: str = "", *, scheme: str = "smtp", user: str = "ada@") -> Destination:
    who = {"sender": "ada@mail.example", "recipients": ("bob@mail.example", "cy@mail.example")}
    return place("email", f"{scheme}://{user}127.0.0.1:{port}", secret, **who)


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
async def test_a_mail_goes_encrypted_and_with_a_password(tls, send, scheme):
    async with running_mail_server(tls, encrypted=scheme == "smtps") as server:
        server.password = "correct horse"
        await send(mail_place(server.port, "correct horse", scheme=scheme), NOTICE)
    (raw,) = server.mails
    mail = message_from_bytes(raw, policy=policy.default)
    assert server.encrypted == [True]
    assert (mail["Subject"], mail["From"]) == (NOTICE.title, "ada@mail.example")
    assert mail["To"] == "bob@mail.example, cy@mail.example"
    assert mail["Message-ID"] == f"<{NOTICE.id}@moot>"
    assert mail.get_content().strip().replace("\r\n", "\n") == TEXT


async def test_a_password_is_not_sent_in_the_clear(send):
    async with running_mail_server() as server:
        with pytest.raises(DeliveryFailed, match="offers no encryption") as failed:
            await send(mail_place(server.port, "correct horse"), NOTICE)
    assert (failed.value.passing, server.mails) == (False, [])
    assert not any(line.startswith("AUTH") for line in server.said)


async def test_a_mail_lists_what_a_digest_holds(send):
    async with running_mail_server() as server:
        await send(mail_place(server.port), compose_digest([NOTICE, NOTICE], LONGEST["email"]))
        written = message_from_bytes(server.mails[0], policy=policy.default)
    assert written["Subject"] == "2 条通知：裁决变化 2 条"
    assert written.get_content().count("900001.DEMO") == 2


async def test_a_relay_of_the_house_needs_neither(send):
    async with running_mail_server() as server:
        await send(mail_place(server.port, user=""), NOTICE)
    assert (len(server.mails), server.encrypted) == (1, [False])


async def test_a_wrong_password_is_not_tried_again(tls, send):
    async with running_mail_server(tls) as server:
        server.password = "correct horse"
        with pytest.raises(DeliveryFailed, match=r"code 535: 5\.7\.8 bad credentials") as failed:
            await send(mail_place(server.port, "battery staple"), NOTICE)
    assert not failed.value.passing
    assert "battery" not in repr(failed.value)


@pytest.mark.parametrize(("said", "passing"), [("451 try later", True), ("550 no such user", False)])
async def test_a_mail_box_says_whether_it_is_full_or_not_there(send, said, passing):
    async with running_mail_server() as server:
        server.refuse = said
        with pytest.raises(DeliveryFailed, match=said.replace(" ", ": ", 1)) as failed:
            await send(mail_place(server.port), NOTICE)
    assert failed.value.passing is passing


async def test_a_certificate_that_nobody_vouches_for_is_not_trusted(tls, send, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    async with running_mail_server(tls) as server:
        with pytest.raises(DeliveryFailed, match="SSLCertVerificationError"):
            await send(mail_place(server.port), NOTICE)
    assert server.mails == []
