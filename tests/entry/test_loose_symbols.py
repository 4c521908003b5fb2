"""Wherever a share is asked for, it may be written as people write it; what is not clear is asked back."""

import itertools
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from moot.desk import Moot
from moot.main import create_app
from moot.modules.market_data.domain.facts import BARS, COMPANIES, MACRO, NEWS, VALUATIONS
from moot.modules.market_data.infrastructure.lake import Lake
from moot.remote.client import RemoteMoot
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.facts import Company
from moot.shared.domain.symbol import Market
from moot.shared.infrastructure.settings import Settings
from tests.entry.inside import Run, inside
from tests.entry.test_remote_desk import serving
from tests.fakes.market_data import a_bar
from tests.market_data.demo import demo_market

AT = datetime(2026, 6, 30, 12, tzinfo=UTC)
PERIOD = (date(2020, 1, 1), date(2026, 6, 30))
DAY = PERIOD[1]
MOUTAI = "600519.SH"
NAMES = {MOUTAI: "贵州茅台", "000001.SZ": "平安银行", "601318.SH": "中国平安", "000858.SZ": "五粮液"}
QUICK: dict[str, Any] = {"experts": ["macro_intelligence"], "as_of": "2026-06-30", "skip_debate": True}
SWITCHES = ("--experts", "macro_intelligence", "--as-of", "2026-06-30", "--skip-debate")
API = "/api/v1"

SPELLINGS = [
    *("600519", "600519.SH", "600519.sh", "600519.ss", "600519.XSHG", "sh600519", "SH.600519", "SSE:600519"),
    *("６００５１９", "ｓｈ６００５１９", " 600519 ", "贵州茅台", "贵 州 茅 台", "茅台", "moutai", "Moutai"),
    *("maotai", "gzmt", "GZMT"),
]
PING_AN = [{"symbol": symbol, "name": NAMES[symbol]} for symbol in ("000001.SZ", "601318.SH")]


@pytest.fixture
async def home(home: Path) -> Path:
    """Real companies, by their Chinese names alone, and enough for one expert."""
    lake = Lake(home / "lake")
    macro = await demo_market().read(MACRO, Market.DEMO.value, *PERIOD)
    lake.store(COMPANIES, "CN", [_company(*named) for named in NAMES.items()], covered=None, at=AT)
    lake.store(MACRO, "CN", macro, covered=PERIOD, at=AT)
    for dataset, symbol in itertools.product((BARS, VALUATIONS, NEWS), NAMES):
        bars = [a_bar(DAY, symbol=symbol)] if dataset is BARS else []
        lake.store(dataset, symbol, bars, covered=PERIOD, at=AT)
    return home


def _company(symbol: str, name: str) -> Company:
    words = {"name_en": "", "industry": "食品饮料", "industry_en": "", "source": "files"}
    return Company(symbol=symbol, name=name, list_date=date(2001, 8, 27), **words)


@dataclass
class Doors:
    """A desk, and everything through which it is reached."""

    moot: Run
    desk: Moot
    rest: httpx.AsyncClient
    remote: RemoteMoot


@pytest.fixture
async def doors(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Doors]:
    desk = Moot(Settings(home=home, log_level="error"))
    async with (
        serving(create_app(desk)) as address,
        httpx.AsyncClient(base_url=address) as rest,
        RemoteMoot(address) as remote,
    ):
        yield Doors(inside(home, monkeypatch), desk, rest, remote)


Door = Callable[[Doors, str], Awaitable[Any]]
"""What it answers when it is asked about a share: the symbols it understood, or the candidates it offers."""


def command(*arguments: str, after: tuple[str, ...] = ()) -> Door:
    """The symbol stands in what the command tells; a refusal names the candidates."""

    async def ask(doors: Doors, text: str) -> Any:
        seen = await doors.moot(*arguments, text, *after)
        told = seen.stderr if seen.returncode == 2 else seen.stdout + seen.stderr
        found = list(dict.fromkeys(re.findall(r"\b\d{6}\.S[HZ]\b", told)))
        return [{"symbol": one, "name": NAMES[one]} for one in found] if seen.returncode == 2 else found[:1]

    return ask


async def research_as_json(doors: Doors, text: str) -> Any:
    body = json.loads((await doors.moot("research", text, *SWITCHES, "--json")).stdout)
    return body["details"]["candidates"] if "details" in body else [body["symbol"]]


async def research_several(doors: Doors, text: str) -> Any:
    body = json.loads((await doors.moot("research", "五粮液", text, *SWITCHES, "--json")).stdout)
    return body["details"]["candidates"] if isinstance(body, dict) else [body[1]["symbol"]]


def rest(method: str, path: str, understood: Callable[[Any], Any], **more: Any) -> Door:
    """`{}` in the path, or the `symbol` of the body, is what is asked about."""

    async def ask(doors: Doors, text: str) -> Any:
        asked = {"json": {**more, "symbol": text}} if more else {}
        answer = await doors.rest.request(method, API + path.format(text), **asked)
        if answer.status_code == 200:
            return understood(answer.json())
        body = answer.json()
        assert (answer.status_code, body["details"]["field"]) == (400, "symbol")
        return body["details"]["candidates"]

    return ask


def program(ask: Callable[[Doors, str], Awaitable[Any]]) -> Door:
    async def call(doors: Doors, text: str) -> Any:
        try:
            return await ask(doors, text)
        except InvalidInput as refused:
            return refused.details["candidates"]

    return call


async def research(desk: Moot | RemoteMoot, text: str) -> list[str]:
    return [(await desk.research(text, **QUICK)).symbol]


async def list_sessions(desk: Moot | RemoteMoot, text: str) -> list[str]:
    return [item.symbol for item in (await desk.sessions(text)).items]


DOORS: dict[str, Door] = {
    "moot research": command("research", after=SWITCHES),
    "moot research --json": research_as_json,
    "moot research, several": research_several,
    "moot data check": command("data", "check"),
    "moot data sync": command("data", "sync", after=("--from", "2026-06-01", "--to", "2026-06-02")),
    "moot sessions list": command("sessions", "list", "--symbol"),
    "POST research": rest("POST", "/coordinator/research", lambda body: [body["symbol"]], **QUICK),
    "GET sessions": rest(
        "GET",
        "/coordinator/research/sessions?symbol={}",
        lambda page: [one["symbol"] for one in page["items"]],
    ),
    "GET company": rest("GET", "/market-data/{}", lambda body: [body["symbol"]]),
    "GET bars": rest(
        "GET", f"/market-data/{{}}/bars?start={DAY}&end={DAY}", lambda bars: [bar["symbol"] for bar in bars]
    ),
    "Moot.research": program(lambda doors, text: research(doors.desk, text)),
    "Moot.sessions": program(lambda doors, text: list_sessions(doors.desk, text)),
    "RemoteMoot.research": program(lambda doors, text: research(doors.remote, text)),
    "RemoteMoot.sessions": program(lambda doors, text: list_sessions(doors.remote, text)),
}


@pytest.mark.parametrize("door", DOORS)
async def test_every_door_understands_names_and_loose_codes_and_asks_back(doors: Doors, door: str) -> None:
    if "sessions" in door:
        await doors.desk.research(MOUTAI, **QUICK)
    ask = DOORS[door]
    assert [await ask(doors, text) for text in ("贵州茅台", "６００５１９")] == [[MOUTAI]] * 2
    assert await ask(doors, "平安") == PING_AN
    assert (await ask(doors, "贵洲茅台"))[0] == {"symbol": MOUTAI, "name": "贵州茅台"}


async def test_a_share_is_understood_however_it_is_written(home: Path) -> None:
    async with Moot(Settings(home=home, log_level="error", persistence=False)) as desk:
        meant = {text: (await desk.market_data.market_data().symbol(text)).text for text in SPELLINGS}
    assert meant == dict.fromkeys(SPELLINGS, MOUTAI)


async def test_a_question_names_its_share_as_loosely(doors: Doors) -> None:
    for text in ("600519", "sh600519", "６００５１９", "茅台", "Moutai", "贵州茅台"):
        asked = await doors.desk.ask(f"{text} 估值高吗？", accept_plan=False)
        assert asked.turns[-1].plan.steps[0].symbol == MOUTAI, text
    unclear = await doors.desk.ask("平安估值高吗？", accept_plan=False)
    assert all(one["symbol"] in unclear.model_dump_json() for one in PING_AN)


class TestInATerminal:
    @pytest.fixture(autouse=True)
    def somebody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("moot.cli.command.somebody_is_there", lambda: True)

    @pytest.fixture
    def moot(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
        return inside(home, monkeypatch)

    async def test_several_are_a_numbered_choice(self, moot: Run) -> None:
        seen = await moot("research", "平安", *SWITCHES, typed="7\nx\n2\n")
        assert (seen.returncode, "601318.SH" in seen.stdout) == (0, True), seen.stderr
        assert "Which company is 平安?\n  1  000001.SZ  平安银行\n  2  601318.SH  中国平安\n" in seen.stderr
        assert "7 is not one of these." in seen.stderr
        assert "x is not one of these." in seen.stderr

    async def test_a_miss_offers_the_nearest(self, moot: Run) -> None:
        seen = await moot("data", "check", "贵洲茅台", typed="1\n", LANG="zh_CN")
        assert (seen.returncode, MOUTAI in seen.stdout) == (0, True), seen.stderr
        assert "贵洲茅台 是指哪家公司？\n  1  600519.SH  贵州茅台\n" in seen.stderr

    async def test_none_of_them_is_a_refusal(self, moot: Run) -> None:
        seen = await moot("research", "平安", *SWITCHES, typed="\n")
        assert (seen.returncode, "may mean 2 companies" in seen.stderr) == (2, True)

    async def test_a_program_that_reads_json_is_asked_nothing(self, moot: Run) -> None:
        seen = await moot("research", "平安", *SWITCHES, "--json", typed="1\n")
        assert (seen.returncode, json.loads(seen.stdout)["details"]["candidates"]) == (2, PING_AN)
