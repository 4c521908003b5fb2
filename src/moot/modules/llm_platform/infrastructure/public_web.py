"""The public web, and a reader of its pages: this machine and its network are nobody else's to reach."""

import asyncio
import codecs
import html
import re
import socket
from collections.abc import Callable
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from moot.modules.llm_platform.application.web_search import Page, PageFailed, PageRefused
from moot.modules.llm_platform.domain.texts import SAY

Address = IPv4Address | IPv6Address
Allows = Callable[[Address, int], bool]
"""Whether an address may be reached at that port."""

PUBLIC_V6 = ip_network("2000::/3")
"""All that was ever given out. Loopback, mapped, translated, local and multicast addresses lie outside of it."""

NOT_PUBLIC = [
    ip_network(block)
    for block in (  # beside those that Python knows, in every version of it
        "168.63.129.16/32",  # a cloud's own host, in a public range
        "192.0.0.0/24",
        "192.88.99.0/24",  # relays to 6to4
        "224.0.0.0/4",
        "2001::/23",  # protocols, among them Teredo, which wraps an IPv4 address
        "2002::/16",  # 6to4, which wraps an IPv4 address
        "3fff::/20",
    )
]
NUMERIC_LABEL = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE)

HTML = ("text/html", "application/xhtml+xml")
READABLE = (*HTML, "text/plain")
WEB_PORTS = frozenset({80, 443})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS = 3
UNCLEAR = re.compile(r"[\x00-\x20\x7f\\]")
"""What one reader of a URL drops or turns into a slash, and another does not."""

NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
TOLD = 200

UNREAD = ("script", "style", "template", "noscript", "svg", "iframe", "textarea", "select")
INLINE = re.compile(
    r"/?(a|abbr|b|bd[io]|cite|code|em|font|i|img|kbd|label|mark|q|s|small|span|strong|su[bp]|time|u|var|wbr)"
)
# A tag never spans another `<`, so nothing is looked at twice.
TAG = re.compile(r"<!--|<([!?/]?[a-zA-Z][^<>]*)>")
ENDS = {name: re.compile(rf"</{name}\b[^<>]*>", re.IGNORECASE) for name in (*UNREAD, "title")}
COMMENT_END = re.compile(r"--!?>")
HUGE_REFERENCE = re.compile(r"&#[xX]?[0-9a-fA-F]{8,};?")
"""No character has such a number, and the standard library fails on the longest of them."""

DECLARED = re.compile(rb"<meta[^<>]{0,500}charset\s{0,20}=\s{0,20}[\"']?([a-zA-Z0-9_-]{1,40})", re.IGNORECASE)
ENCODINGS = {"gb2312": "gb18030", "gbk": "gb18030"}
READ_AS = re.compile(
    r"utf-8(-sig)?|utf-16(-[lb]e)?|gb18030|hz|big5(hkscs)?|iso8859-15?|cp125[12]|ascii|shift_jis|cp932|euc_(jp|kr)|"
    r"iso2022_jp|cp949|koi8-r"
)
"""Python knows encodings that are none of text, and some that are slow; a page has no say in that."""


class NotPublicError(Exception):
    """A name, or an address, that does not lead to the public web."""

    def __init__(self, host: str, address: Address | None = None) -> None:
        super().__init__(host)
        self.host, self.address = host, address


def is_public(address: Address, _port: int = 0) -> bool:
    given_out = address.version == 4 or address in PUBLIC_V6
    return given_out and address.is_global and not any(address in block for block in NOT_PUBLIC)


def literal(host: str) -> Address | None:
    """The address a host spells out; None when it is a name.

    Raises `ValueError` for a number that is no plain address (`127.1`, `0x7f000001`, `0177.0.0.1`): what such a
    spelling means depends on who reads it. An address with a zone (`fe80::1%eth0`) is none either.
    """
    if ":" in host:
        if "%" in host:
            raise ValueError(host)
        return IPv6Address(host)
    last = host.rstrip(".").rpartition(".")[2]
    return IPv4Address(host) if NUMERIC_LABEL.fullmatch(last) else None


class CheckedResolver(AbstractResolver):
    """What it returns is what the connection is made to, so a name that changes its mind afterwards gains nothing.

    Raises `NotPublicError` where one of its addresses is not allowed.
    """

    def __init__(self, resolver: AbstractResolver, allows: Allows = is_public) -> None:
        self._resolver, self._allows = resolver, allows

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        if not found:
            raise OSError("no address")
        for answer in found:
            if not self._allows(address := ip_address(answer["host"]), answer["port"]):
                raise NotPublicError(host, address)
        return found

    async def close(self) -> None:
        await self._resolver.close()


async def leads_outside(url: str) -> bool:
    """Whether all that a URL leads to is public. A name that leads nowhere yet is looked at when it is used."""
    parts = urlsplit(url)
    try:
        address = literal(parts.hostname or "")
        if address is not None:
            return is_public(address)
        found = await asyncio.get_running_loop().getaddrinfo(
            parts.hostname, parts.port, type=socket.SOCK_STREAM
        )
    except OSError:
        return True
    except ValueError:
        return False
    return all(is_public(ip_address(str(place[0]).partition("%")[0])) for *_, place in found)


async def read_body(response: aiohttp.ClientResponse, most: int) -> bytes:
    """All of it, or a little more than `most`. Counted when unpacked: a small file may become a very large one."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most:
            break
    return bytes(body)


class PageFetcher:
    """`allows` decides on an address and port that a host turned out to have; a URL's port must be one of `ports`."""

    def __init__(
        self,
        *,
        timeout: float = 15.0,
        max_bytes: int = 2_000_000,
        ports: frozenset[int] = WEB_PORTS,
        allows: Allows = is_public,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._timeout, self._max_bytes = timeout, max_bytes
        self._ports, self._allows, self._resolver = ports, allows, resolver

    async def text(self, url: str) -> Page:
        """The page's own words. Raises `PageRefused` or `PageFailed`, which say why."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._follow(url)
        except NotPublicError as e:
            raise self._make_refusal(e.host, "not_public", address=e.address) from None
        except TimeoutError:
            raise PageFailed(SAY("fetch.timeout", url=url[:TOLD], seconds=self._timeout)) from None
        except (aiohttp.ClientError, OSError) as e:
            message = SAY("fetch.unreachable", url=url[:TOLD], error=type(e).__name__)
            raise PageFailed(message) from e

    async def aclose(self) -> None:
        if "_client" in vars(self):
            await self._client.close()

    async def _follow(self, url: str) -> Page:
        target = self._check(url)
        for _ in range(MAX_REDIRECTS + 1):
            async with self._client.get(target, allow_redirects=False) as answer:
                location = answer.headers.get("Location")
                if answer.status not in REDIRECTS or not location:
                    return await self._read(answer, str(target))
            target = self._check(location, base=target)
        raise self._make_refusal(url, "too_many_redirects", most=MAX_REDIRECTS)

    def _check(self, url: str, *, base: URL | None = None) -> URL:
        """The URL as the client itself will read it, if it may be fetched. A name's address is checked later."""
        try:
            if UNCLEAR.search(url):
                raise ValueError
            target = base.join(URL(url)) if base else URL(url)
            address = literal(target.raw_host or "")
        except ValueError:
            raise self._make_refusal(url, "malformed") from None
        host, port = target.raw_host or "", target.port or 0
        if target.scheme not in ("http", "https"):
            raise self._make_refusal(url, "scheme")
        if target.raw_user is not None or target.raw_password is not None:
            raise self._make_refusal(host, "credentials")
        if address is None and not NAME.fullmatch(host):
            raise self._make_refusal(url, "malformed")
        if port not in self._ports:
            raise self._make_refusal(url, "port", port=port, allowed=sorted(self._ports))
        if address is not None and not self._allows(address, port):
            raise NotPublicError(host, address)
        return target

    @cached_property
    def _client(self) -> aiohttp.ClientSession:
        resolver = CheckedResolver(self._resolver or aiohttp.ThreadedResolver(), self._allows)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=resolver, use_dns_cache=False, force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept": ", ".join(READABLE), "User-Agent": "Moot"},
            timeout=aiohttp.ClientTimeout(total=None),  # one deadline for all redirects: in `text`
            trust_env=False,
        )

    async def _read(self, answer: aiohttp.ClientResponse, url: str) -> Page:
        if not 200 <= answer.status < 300:
            raise PageFailed(SAY("fetch.status", url=url[:TOLD], status=answer.status), status=answer.status)
        if answer.content_type not in READABLE:
            raise self._make_refusal(
                url, "content_type", got=answer.content_type[:TOLD], allowed=list(READABLE)
            )
        body = await read_body(answer, self._max_bytes)
        if len(body) > self._max_bytes:
            raise self._make_refusal(url, "too_large", most=self._max_bytes)
        if answer.content_type in HTML:
            title, text = await asyncio.to_thread(page_text, body, answer.charset)
        else:
            title, text = "", await asyncio.to_thread(lambda: _tidy(decode(body, answer.charset)))
        return Page(url=url, title=title, text=text)

    @staticmethod
    def _make_refusal(url: str, why: str, **said: object) -> PageRefused:
        message = SAY("fetch.refused", url=url[:TOLD], why=SAY(f"fetch.why.{why}", **said))
        return PageRefused(message, reason=why)


# From the bytes of a page to its text, in time that grows with its length only: pages may be written to hurt.


def decode(body: bytes, declared: str | None) -> str:
    """As the header says, else as the page says, else as it looks. What cannot be read is marked, never an error."""
    if body.startswith(codecs.BOM_UTF8):
        return body.decode("utf-8-sig", "replace")
    meta = DECLARED.search(body, 0, 4096)
    encoding = _encoding(declared) or _encoding(meta[1].decode() if meta else None)
    if encoding is not None:
        return body.decode(encoding, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("gb18030", "replace")


def page_text(body: bytes, charset: str | None) -> tuple[str, str]:
    """The title and the text of a page: a line for each block, without scripts, styles and comments."""
    source = decode(body, charset)
    title, pieces, at = "", [], 0
    while tag := TAG.search(source, at):
        pieces.append(source[at : tag.start()])
        name = "!--" if tag[1] is None else tag[1].split(maxsplit=1)[0].rstrip("/").lower()
        closed = tag[0].endswith("/>")
        at, inside = (tag.end(), "") if closed else _past(source, tag.end(), name)
        title = title or (inside if name == "title" else "")
        pieces.append("" if INLINE.fullmatch(name) else "\n")
    pieces.append(source[at:])
    return " ".join(_plain(title).split()), _tidy(_plain("".join(pieces)))


def _tidy(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.replace("\0", "").splitlines())
    return "\n".join(line for line in lines if line)


def _past(source: str, at: int, name: str) -> tuple[int, str]:
    """Where reading goes on after a tag, and what was left out. What is never closed lasts to the end."""
    end = COMMENT_END if name == "!--" else ENDS.get(name)
    if end is None:
        return at, ""
    closed = end.search(source, at)
    return (closed.end(), source[at : closed.start()]) if closed else (len(source), "")


def _plain(text: str) -> str:
    return html.unescape(HUGE_REFERENCE.sub("", text))


def _encoding(name: str | None) -> str | None:
    try:
        known = codecs.lookup(name or "").name
    except (LookupError, ValueError):
        return None
    known = ENCODINGS.get(known, known)
    return known if READ_AS.fullmatch(known) else None
