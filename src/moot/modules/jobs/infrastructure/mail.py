"""Notifications by mail, over SMTP."""

import smtplib
import ssl
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import unquote, urlsplit

from moot.modules.jobs.domain.destinations import DeliveryFailed, Destination
from moot.modules.jobs.domain.notices import Notice
from moot.modules.jobs.domain.texts import SAY
from moot.shared.domain.messages import shorten
from moot.shared.infrastructure.redaction import REDACT

PORTS = {"smtp": 587, "smtps": 465}
PERMANENT = 500
TOLD = 120


def send_mail(to: Destination, notice: Notice, seconds: float) -> None:
    """Blocks. Encrypted from the start with `smtps`, else as soon as the server can; a password never goes in the
    clear. Raises `DeliveryFailed`, or `OSError` where the server cannot be had."""
    try:
        with _connect(to, seconds) as server:
            _identify(to, server)
            server.send_message(_write(to, notice))
    except smtplib.SMTPResponseException as e:
        raise _refuse(to, e.smtp_code, e.smtp_error) from None
    except smtplib.SMTPRecipientsRefused as e:
        raise _refuse(to, *next(iter(e.recipients.values()))) from None


def _connect(to: Destination, seconds: float) -> smtplib.SMTP:
    parts = urlsplit(to.url.get_secret_value())
    host, port = str(parts.hostname), parts.port or PORTS[parts.scheme]
    if parts.scheme == "smtps":
        return smtplib.SMTP_SSL(host, port, timeout=seconds, context=ssl.create_default_context())
    return smtplib.SMTP(host, port, timeout=seconds)


def _identify(to: Destination, server: smtplib.SMTP) -> None:
    """Over a line that nobody else can read."""
    encrypted, password = isinstance(server, smtplib.SMTP_SSL), to.secret.get_secret_value()
    server.ehlo()
    if not encrypted and server.has_extn("starttls"):
        server.starttls(context=ssl.create_default_context())
        encrypted = True
    if password and not encrypted:
        raise DeliveryFailed(SAY("delivery.in_the_clear", place=to.place), passing=False)
    if password:
        user = urlsplit(to.url.get_secret_value()).username
        server.login(unquote(user or to.sender), password)


def _write(to: Destination, notice: Notice) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = notice.title
    mail["From"] = to.sender
    mail["To"] = ", ".join(to.recipients)
    mail["Date"] = format_datetime(notice.at)
    mail["Message-ID"] = f"<{notice.id}@moot>"
    mail.set_content(notice.text)
    return mail


def _refuse(to: Destination, code: int, said: bytes | str) -> DeliveryFailed:
    words = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    told = shorten(REDACT.text(" ".join(words.split())), TOLD)
    return DeliveryFailed(
        SAY("delivery.refused", place=to.place, code=code, said=told), passing=code < PERMANENT
    )
