"""Reading a page: what it says, and every way to be sent elsewhere that must not work."""

import gzip
import socket
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_address
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from moot.modules.llm_platform.application.web_search import Page, PageFailed, PageRefused, WebPageService
from moot.modules.llm_platform.infrastructure.public_web import (
    Address,
    PageFetcher,
    is_public,
    literal,
    page_text,
)
from moot.shared.domain.messages import LOCALES
from tests.fakes.search_server import FakeSearchAudit, LocalWeb, Reply, local_web

HTML = {"Content-Type": "text/html; charset=utf-8"}
PUBLIC = "93.184.215.14"

NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.255",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::1",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd12:3456::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "4000::1",
]

HOSTILE = [
    # no web address at all
    "",
    "example.com",
    "//example.com/x",
    "http:example.com",
    "http:/example.com",
    "http://",
    "http:///etc/passwd",
    "file:///etc/passwd",
    "ftp://example.com/x",
    "gopher://127.0.0.1:70/_x",
    "javascript:alert(1)",
    "data:text/html,x",
    "unix:///var/run/docker.sock",
    "jar:http://example.com!/x",
    # read differently by different readers
    "http://example.com\\@127.0.0.1/",
    "http://example.com\\.evil.com/",
    "http://exa mple.com/",
    "http://example.com/\r\nHost: 127.0.0.1",
    "http://exam\tple.com/",
    "\nhttp://127.0.0.1/",
    "http://example.com%2f@127.0.0.1/",
    "http://a..b/",
    "http://.../",
    "http://[::1",
    "http://[v1.a]:99999/",
    # a user, a password, another port
    "http://user@example.com/",
    "http://user:secret@example.com/",
    "http://1.1.1.1:80@127.0.0.1/",
    "http://example.com:22/",
    "http://example.com:6379/",
    "http://example.com:8080/",
    "http://example.com:0/",
    "http://example.com:99999/",
    "http://example.com:abc/",
    # loopback in every notation
    "http://127.0.0.1/",
    "https://127.0.0.1/",
    "http://127.0.0.1:443/",
    "http://127.0.0.1./",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://0x7f.1/",
    "http://0x7f000001/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://127.0.0.0x1/",
    "http://0/",
    "http://0x/",
    "http://00000127.0.0.1/",
    "http://127%2e0%2e0%2e1/",
    "http://%31%32%37.0.0.1/",
    "http://%6c%6fcalhost/",
    "http://127.0.0.1%00.example.com/",
    "http://１２７.０.０.１/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::]/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:0:127.0.0.1]/",
    # the neighbours, the cloud's own services, tunnels
    "http://10.0.0.1/",
    "http://192.168.1.1/",
    "http://172.16.0.1/",
    "http://100.100.100.200/latest/meta-data/",
    "http://169.254.169.254/latest/meta-data/",
    "http://0xa9fea9fe/",
    "http://2852039166/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://255.255.255.255/",
    "http://999.1.1.1/",
    "http://1.2.3.4.5/",
]


class Names(AbstractResolver):
    """Answers for each name with the next of its address lists, and stays with the last."""

    def __init__(self, **names: Sequence[Sequence[str]]) -> None:
        self._names = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        if host not in self._names:
            raise OSError(f"no such name: {host}")
        answers = self._names[host]
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in (answers.pop(0) if len(answers) > 1 else answers[0])
        ]

    async def close(self) -> None:
        return None


@pytest.fixture
async def server() -> AsyncIterator[LocalWeb]:
    async with local_web() as served:
        yield served


@pytest.fixture
async def victim() -> AsyncIterator[LocalWeb]:
    """A server on the same machine that nobody outside may reach."""
    async with local_web() as served:
        served.replies["/"] = Reply("internal", headers=HTML)
        yield served


async def read(url: str, *web: LocalWeb, names: Names | None = None, **changes: Any) -> Page:
    """Read with the first of `web` taken for public, and the ports of the others open too."""
    open_to = web[0].port if web else None

    def allows(address: Address, port: int) -> bool:
        return is_public(address) or (port == open_to and address == ip_address("127.0.0.1"))

    ports = frozenset({80, 443, *(served.port for served in web)})
    fetcher = PageFetcher(ports=ports, allows=allows, resolver=names or Names(), **changes)
    try:
        return await fetcher.text(url)
    finally:
        await fetcher.aclose()


class TestAddresses:
    @pytest.mark.parametrize("address", NOT_PUBLIC)
    def test_what_is_not_of_the_public_internet(self, address):
        assert not is_public(ip_address(address))

    @pytest.mark.parametrize(
        "address",
        [
            "1.1.1.1",
            "8.8.8.8",
            PUBLIC,
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "11.0.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2400:3200::1",
            "2001:4860:4860::8888",
        ],
    )
    def test_what_is(self, address):
        assert is_public(ip_address(address))

    @pytest.mark.parametrize(
        "name", ["example.com", "a1.com", "0x7f.example", "127.0.0.1.nip.io", "localhost"]
    )
    def test_a_name_is_no_literal(self, name):
        assert literal(name) is None


class TestWhereItGoes:
    def test_there_are_many_ways_to_try(self):
        assert len(set(HOSTILE)) >= 80

    @pytest.mark.parametrize("url", HOSTILE)
    async def test_a_hostile_url_is_refused_before_anybody_is_asked(self, url):
        names = Names()
        fetcher = PageFetcher(resolver=names)
        with pytest.raises(PageRefused) as refused:
            await fetcher.text(url)
        await fetcher.aclose()
        assert names.asked == []
        assert "secret" not in str(refused.value)
        for locale in LOCALES:
            assert refused.value.in_locale(locale)

    async def test_the_refusal_says_what_and_why(self):
        with pytest.raises(PageRefused) as refused:
            await PageFetcher().text("http://169.254.169.254/latest")
        assert str(refused.value) == (
            "The page 169.254.169.254 is not read: "
            "its address 169.254.169.254 does not belong to the public internet."
        )
        assert refused.value.details == {"reason": "not_public"}

    @pytest.mark.parametrize(
        "answer", [["127.0.0.1"], ["10.0.0.1"], ["::1"], ["::ffff:127.0.0.1"], [PUBLIC, "127.0.0.1"]]
    )
    async def test_a_name_with_any_address_that_is_not_public_is_refused(self, victim, answer):
        names = Names(evil_example=[answer])
        fetcher = PageFetcher(resolver=names, ports=frozenset({victim.port}))
        with pytest.raises(PageRefused, match="public internet"):
            await fetcher.text(f"http://evil.example:{victim.port}/")
        await fetcher.aclose()
        assert names.asked == ["evil.example"]
        assert victim.asked == []

    async def test_a_real_name_of_this_machine_is_refused(self, victim):
        fetcher = PageFetcher(ports=frozenset({victim.port}))
        with pytest.raises(PageRefused, match="public internet"):
            await fetcher.text(f"http://localhost:{victim.port}/")
        await fetcher.aclose()
        assert victim.asked == []

    async def test_a_name_that_changes_its_mind_is_asked_once_for_each_connection(self, server):
        """The address that was checked is the one that is used: the second answer is never seen."""
        server.replies["/"] = Reply("<title>ok</title>", headers=HTML)
        names = Names(rebind_example=[["127.0.0.1"], ["10.0.0.1"]])
        page = await read(f"http://rebind.example:{server.port}/", server, names=names)
        assert (page.title, names.asked) == ("ok", ["rebind.example"])
        assert [asked.headers["Host"] for asked in server.asked] == [f"rebind.example:{server.port}"]

    async def test_and_checked_again_for_the_next_one(self, server):
        server.replies["/"] = Reply(status=302, headers={"Location": "/next"})
        names = Names(rebind_example=[["127.0.0.1"], ["10.0.0.1"]])
        with pytest.raises(PageRefused, match=r"10\.0\.0\.1"):
            await read(f"http://rebind.example:{server.port}/", server, names=names)
        assert [asked.path for asked in server.asked] == ["/"]

    async def test_no_proxy_of_the_environment_is_used(self, server, victim, monkeypatch):
        monkeypatch.setenv("HTTP_PROXY", victim.url)
        monkeypatch.setenv("http_proxy", victim.url)
        server.replies["/"] = Reply("direct", headers=HTML)
        assert (await read(f"{server.url}/", server)).text == "direct"
        assert victim.asked == []


class TestRedirects:
    async def test_they_are_followed_and_the_page_says_where_it_was_found(self, server):
        server.replies["/a"] = Reply(status=301, headers={"Location": "b/c?d=1"})
        server.replies["/b/c"] = Reply("<p>there", headers=HTML)
        page = await read(f"{server.url}/a", server)
        assert page == Page(url=f"{server.url}/b/c?d=1", title="", text="there")

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    @pytest.mark.parametrize(
        "location",
        [
            "http://127.0.0.1:{victim}/",
            "//127.0.0.1:{victim}/",
            "http://intranet.example:{victim}/",
            "http://2130706433:{victim}/",
            "http://[::ffff:127.0.0.1]:{victim}/",
            "http://user:pw@127.0.0.1:{victim}/",
        ],
    )
    async def test_a_redirect_to_the_inside_is_refused(self, server, victim, status, location):
        server.replies["/"] = Reply(status=status, headers={"Location": location.format(victim=victim.port)})
        names = Names(intranet_example=[["127.0.0.1"]])
        with pytest.raises(PageRefused):
            await read(f"{server.url}/", server, victim, names=names)
        assert len(server.asked) == 1
        assert victim.asked == []

    @pytest.mark.parametrize(
        "location", ["file:///etc/passwd", "http://a\\b/", "http://[::1", "ftp://a.com/"]
    )
    async def test_a_redirect_to_no_web_address_is_refused(self, server, location):
        server.replies["/"] = Reply(status=302, headers={"Location": location})
        with pytest.raises(PageRefused):
            await read(f"{server.url}/", server)

    async def test_round_and_round_ends(self, server):
        server.replies["/"] = Reply(status=302, headers={"Location": "/"})
        with pytest.raises(PageRefused, match="more than 3"):
            await read(f"{server.url}/", server)
        assert len(server.asked) == 4

    async def test_a_cookie_is_not_carried_along(self, server):
        server.replies["/"] = Reply(status=302, headers={"Location": "/x", "Set-Cookie": "a=b; Path=/"})
        server.replies["/x"] = Reply("ok", headers=HTML)
        await read(f"{server.url}/", server)
        assert "Cookie" not in server.asked[1].headers


class TestWhatComesBack:
    @pytest.mark.parametrize("kind", ["text/html", "application/xhtml+xml", "text/plain; charset=gbk"])
    async def test_text_is_read(self, server, kind):
        server.replies["/"] = Reply("白酒".encode("gbk"), headers={"Content-Type": kind})
        assert (await read(f"{server.url}/", server)).text == "白酒"

    @pytest.mark.parametrize("kind", ["application/pdf", "image/png", "application/json", "text/xml", ""])
    async def test_anything_else_is_refused_unread(self, server, kind):
        server.replies["/"] = Reply("x", headers={"Content-Type": kind})
        with pytest.raises(PageRefused) as refused:
            await read(f"{server.url}/", server)
        assert refused.value.details == {"reason": "content_type"}

    @pytest.mark.parametrize("status", [304, 404, 500])
    async def test_an_error_of_the_server_is_told(self, server, status):
        server.replies["/"] = Reply("no", status=status, headers=HTML)
        with pytest.raises(PageFailed, match=str(status)):
            await read(f"{server.url}/", server)

    async def test_a_page_as_large_as_allowed_is_read_and_one_byte_more_is_not(self, server):
        server.replies["/"] = Reply("a" * 1000, headers=HTML)
        assert len((await read(f"{server.url}/", server, max_bytes=1000)).text) == 1000
        with pytest.raises(PageRefused, match="larger than 999"):
            await read(f"{server.url}/", server, max_bytes=999)

    @pytest.mark.parametrize("encoding", ["gzip", "deflate"])
    async def test_a_bomb_is_left_before_it_is_unpacked(self, server, encoding):
        pack = {"gzip": gzip.compress, "deflate": zlib.compress}[encoding]
        server.replies["/"] = Reply(pack(b"a" * 20_000_000), headers=HTML | {"Content-Encoding": encoding})
        tracemalloc.start()
        with pytest.raises(PageRefused, match="larger than"):
            await read(f"{server.url}/", server, max_bytes=100_000)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 5_000_000

    async def test_a_packed_page_is_read(self, server):
        body = gzip.compress(b"<p>packed</p>")
        server.replies["/"] = Reply(body, headers=HTML | {"Content-Encoding": "gzip"})
        assert (await read(f"{server.url}/", server)).text == "packed"

    @pytest.mark.parametrize("encoding", ["gzip", "br", "nonsense"])
    async def test_what_cannot_be_unpacked_ends_in_an_answer(self, server, encoding):
        server.replies["/"] = Reply(b"\xff\xfe\x00 not packed", headers=HTML | {"Content-Encoding": encoding})
        try:
            page = await read(f"{server.url}/", server)
        except PageFailed:
            return
        assert isinstance(page, Page)

    @pytest.mark.parametrize("reply", [Reply(hang=True), Reply(reset=True)])
    async def test_a_server_that_does_not_answer_is_given_up(self, server, reply):
        server.replies["/"] = reply
        with pytest.raises(PageFailed):
            await read(f"{server.url}/", server, timeout=0.3)

    async def test_the_deadline_is_for_everything_together(self, server):
        server.replies["/"] = Reply("a", headers=HTML, drip=True)
        with pytest.raises(PageFailed, match=r"0\.3 seconds"):
            await read(f"{server.url}/", server, timeout=0.3)  # whose answer never ends

    async def test_a_name_nobody_knows_fails(self):
        with pytest.raises(PageFailed):
            await read("http://nobody.example/")


def text_of(source: str | bytes, charset: str | None = "utf-8") -> str:
    return page_text(source.encode() if isinstance(source, str) else source, charset)[1]


class TestText:
    def test_a_page_becomes_its_title_and_lines(self):
        source = """<!DOCTYPE html><html><head><title> A &amp;
          B </title><style>p{}</style><script>if (a<b) "</p>"</script></head>
          <body><!-- not <b>this</b> --><h1>Head</h1><p>One <b>bold</b>&nbsp;word<br/>next<p>Last
          <ul><li>x</li><li>y</li></ul><noscript>no</noscript></body></html>"""
        title, text = page_text(source.encode(), "utf-8")
        assert title == "A & B"
        assert text.split("\n") == ["Head", "One bold word", "next", "Last", "x", "y"]

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("a<script>x", "a"),
            ("a<SCRIPT type='x'>b</ScRiPt >c", "a\nc"),
            ("a<!-- b", "a"),
            ("a<!-- <script> -->b", "a\nb"),
            ("a<script><!-- </script>b", "a\nb"),
            ("a<svg/>b", "a\nb"),
            ("a</script>b</title>c", "a\nb\nc"),
            ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
            ("&lt;script&gt;", "<script>"),
            ("a\0b", "ab"),
            ("&#" + "9" * 5000 + ";x", "x"),
            ("", ""),
        ],
    )
    def test_broken_pages_are_read_as_far_as_they_go(self, source, expected):
        assert text_of(source) == expected

    @pytest.mark.parametrize(
        ("body", "declared"),
        [
            ("价值".encode("gb18030"), "gb2312"),
            ("价值".encode("gbk"), "GBK"),
            (b"<meta charset='gb2312'>" + "价值".encode("gb18030"), None),
            (b'<meta http-equiv=x content="text/html; charset=big5">' + "價值".encode("big5"), None),
            ("价值".encode("gb18030"), None),
            ("价值".encode(), None),
            ("价值".encode(), "no-such-charset"),
            ("价值".encode(), "punycode"),
            ("价值".encode(), "base64"),
            (b"\xef\xbb\xbf" + "价值".encode(), "gbk"),
        ],
    )
    def test_the_charset_is_what_the_page_says_or_looks_like(self, body, declared):
        assert text_of(body, declared) in {"价值", "價值"}

    @pytest.mark.parametrize(
        "piece",
        ["<", "<a ", "<!--", "</", "</script ", "<script>", "<title>", '<a b="', "<![", "&#", "&a", "<p>"],
    )
    def test_a_page_written_to_hurt_takes_no_longer_than_another(self, piece):
        started = time.process_time()
        text_of(piece * (300_000 // len(piece)))
        assert time.process_time() - started < 10


class OnePage:
    """Knows one page, and refuses or fails otherwise."""

    async def text(self, url: str) -> Page:
        if "private" in url:
            raise PageRefused("not public")
        return Page(url=url, title="t", text="words")

    async def aclose(self) -> None:
        return None


async def test_a_page_that_is_read_is_on_the_record():
    audit = FakeSearchAudit()
    page = await WebPageService(OnePage().text, audit).read("https://web.example/a?b=1")
    call = audit.only
    assert page.text == call["response_data"] == "words"
    assert (call["service_name"], call["operation"], call["status"]) == ("web", "read-page", "success")
    assert call["request_params"] == {"url": "https://web.example/a?b=1"}


async def test_a_page_that_is_refused_is_on_the_record_too():
    audit = FakeSearchAudit()
    with pytest.raises(PageRefused):
        await WebPageService(OnePage().text, audit).read("https://private.example")
    assert (audit.only["status"], audit.only["error_message"]) == ("failed", "not public")
