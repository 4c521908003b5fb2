"""Tushare's wire against a server that speaks it: refusals, faults, pages, pace, and a token nobody sees."""

import asyncio
import os
import traceback
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from pydantic import SecretStr

from moot.modules.market_data.domain.facts import BARS, COMPANIES, REPORTS, VALUATIONS
from moot.modules.market_data.infrastructure.providers.outside import Pace
from moot.shared.domain.errors import Unavailable
from tests.fakes import tushare_server as wire
from tests.fakes.call_record import Record
from tests.fakes.tushare_server import TOKEN, Fault, TushareServer, provider

SYMBOL = "600519.SH"
YEAR = (date(2024, 1, 1), date(2024, 12, 31))


@pytest.fixture
def server() -> Iterator[TushareServer]:
    with TushareServer() as server:
        yield server


def a_row(day: str, symbol: str = SYMBOL) -> dict[str, Any]:
    return {"ts_code": symbol, "trade_date": day, "close": 4.13, "total_mv": 1.0}


class TestRefusals:
    async def test_a_rate_limit_is_waited_out(self, server: TushareServer) -> None:
        record = Record()
        server.tables["daily_basic"] = [a_row("20240102")]
        server.script("daily_basic", wire.RATE, wire.RATE)
        async with provider(server, recorder=record) as tushare:
            assert len(await tushare.read(VALUATIONS, SYMBOL, *YEAR)) == 1
        assert [(call.status, call.status_code) for call in record.calls] == [
            ("failed", 200),
            ("failed", 200),
            ("success", 200),
        ]

    @pytest.mark.parametrize(
        ("fault", "tries", "code", "said"),
        [
            (wire.RATE, 4, "TUSHARE_BUSY", "in a minute"),
            (wire.DAILY_QUOTA, 1, "TUSHARE_QUOTA", "您每天最多访问该接口5次"),
            (wire.NO_PERMISSION, 1, "NOT_OFFERED", "no permission for daily_basic"),
            (wire.OLD_NO_PERMISSION, 1, "NOT_OFFERED", "no permission for daily_basic"),
            (wire.BAD_TOKEN, 1, "TUSHARE_TOKEN", "MOOT_TUSHARE_TOKEN"),
            (wire.ODD, 1, "UNAVAILABLE", "code -2001: 参数校验失败"),
            (wire.SERVER_ERROR, 4, "UNAVAILABLE", "HTTP 502"),
            (wire.FORBIDDEN, 1, "UNAVAILABLE", "HTTP 403"),
            (wire.RESET, 4, "UNAVAILABLE", "cannot be reached (daily_basic: RemoteProtocolError)"),
            (wire.HTML, 1, "UNAVAILABLE", "cannot be read"),
            (wire.BROKEN, 1, "UNAVAILABLE", "cannot be read"),
            (wire.SHORT_ROW, 1, "UNAVAILABLE", "cannot be read"),
        ],
    )
    async def test_each_kind_of_no_is_told_apart_and_keeps_the_token_to_itself(
        self,
        server: TushareServer,
        fault: Fault,
        tries: int,
        code: str,
        said: str,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level("DEBUG")
        record = Record()
        server.always["daily_basic"] = fault
        server.script("daily_basic", *[fault] * 4)
        with structlog.testing.capture_logs() as logs:
            async with provider(server, recorder=record) as tushare:
                with pytest.raises(Unavailable) as told:
                    await tushare.read(VALUATIONS, SYMBOL, *YEAR)
                seen = f"{tushare!r} {vars(tushare)}"
        assert (told.value.code, server.calls()["daily_basic"]) == (code, tries)
        assert said in told.value.in_locale("en-US")
        assert [call.status for call in record.calls] == ["failed"] * tries
        trace = "".join(traceback.format_exception(told.value))
        shown = f"{trace} {told.value!r} {told.value.details} {told.value.in_locale('zh-CN')} {seen}"
        kept = "".join(call.model_dump_json() for call in record.calls)
        assert TOKEN not in f"{shown} {kept} {logs} {caplog.text}"
        assert server.requests[0]["token"] == TOKEN

    async def test_a_server_that_hangs_is_left_at_the_deadline(self, server: TushareServer) -> None:
        server.script("daily_basic", wire.HANG)
        server.tables["daily_basic"] = [a_row("20240102")]
        record = Record()
        async with provider(server, deadline=3.0, recorder=record) as tushare:
            assert len(await tushare.read(VALUATIONS, SYMBOL, *YEAR)) == 1
        assert [(call.status, call.status_code) for call in record.calls] == [
            ("failed", None),
            ("success", 200),
        ]
        assert (
            record.calls[0].error_message
            == "tushare did not answer within 3 s (daily_basic). Try again later."
        )

    async def test_nobody_there_is_unreachable(self) -> None:
        with TushareServer() as gone:
            pass
        async with provider(gone) as tushare:
            with pytest.raises(Unavailable, match="cannot be reached"):
                await tushare.read(VALUATIONS, SYMBOL, *YEAR)

    @pytest.mark.parametrize("fault", [wire.NO_DATA, wire.NULL_ITEMS])
    async def test_success_without_data_is_an_empty_batch(self, server: TushareServer, fault: Fault) -> None:
        server.always["daily_basic"] = fault
        async with provider(server) as tushare:
            assert await tushare.read(VALUATIONS, SYMBOL, *YEAR) == []

    async def test_without_a_token_nothing_is_asked(self, server: TushareServer) -> None:
        async with provider(server, token=SecretStr(" ")) as tushare:
            with pytest.raises(Unavailable, match="MOOT_TUSHARE_TOKEN") as told:
                await tushare.read(VALUATIONS, SYMBOL, *YEAR)
        assert told.value.code == "TUSHARE_TOKEN"
        assert server.requests == []

    async def test_the_record_says_what_was_asked_without_the_token(self, server: TushareServer) -> None:
        record = Record()
        async with provider(server, recorder=record) as tushare:
            await tushare.read(VALUATIONS, SYMBOL, *YEAR)
        [call] = record.calls
        assert (call.service_name, call.operation) == ("tushare", "daily_basic")
        assert call.request_params == {
            "ts_code": SYMBOL,
            "start_date": "20240101",
            "end_date": "20241231",
            "limit": 6000,
            "offset": 0,
        }
        assert call.response_data is not None
        assert '"fields"' in call.response_data


class TestPages:
    @pytest.mark.parametrize(("rows", "pages"), [(249, 3), (200, 2), (1, 1)])
    async def test_a_long_answer_is_read_page_by_page(
        self, server: TushareServer, rows: int, pages: int
    ) -> None:
        server.largest_page = 100
        days = [date.fromordinal(date(2024, 1, 1).toordinal() + n) for n in reversed(range(rows))]
        server.tables["daily_basic"] = [a_row(f"{day:%Y%m%d}") for day in days]
        async with provider(server) as tushare:
            valuations = await tushare.read(VALUATIONS, SYMBOL, *YEAR)
        assert [valuation.trade_date for valuation in valuations] == sorted(days)
        assert server.calls()["daily_basic"] == pages

    async def test_a_service_cap_equal_to_the_page_is_followed_without_has_more(
        self, server: TushareServer
    ) -> None:
        years = range(1900, 2020)
        server.tables["fina_indicator"] = [
            {"ts_code": SYMBOL, "end_date": f"{y}1231", "ann_date": f"{y + 1}0401", "eps": 1.0} for y in years
        ]
        async with provider(server) as tushare:
            reports = await tushare.read(REPORTS, SYMBOL)
        assert len(reports) == 120
        assert server.calls()["fina_indicator"] == 2

    async def test_a_page_that_repeats_itself_is_refused_rather_than_read_for_ever(self) -> None:
        rows = [a_row("20240102")] * 20
        with TushareServer({"daily_basic": rows}, largest_page=10, ignores_offset=True) as server:
            async with provider(server) as tushare:
                with pytest.raises(Unavailable, match="same page"):
                    await tushare.read(VALUATIONS, SYMBOL, *YEAR)
            assert server.calls()["daily_basic"] == 2


async def test_two_hundred_symbols_never_exceed_the_rate_the_server_counts() -> None:
    symbols = [f"6{n:05d}.SH" for n in range(200)]
    rows = [a_row("20240102", s) for s in symbols]
    record = Record()
    with TushareServer({"daily_basic": rows}, allowed=(40, 0.5), latency=0.005) as server:
        async with provider(server, pace=Pace(40, 0.5, 8), recorder=record) as tushare:
            started = asyncio.get_running_loop().time()
            batches = await asyncio.gather(*(tushare.read(VALUATIONS, s, *YEAR) for s in symbols))
            took = asyncio.get_running_loop().time() - started
    assert [batch[0].symbol for batch in batches] == symbols
    assert server.beyond == 0
    assert len(server.requests) == len(record.calls) == 200
    assert took >= 4 * 0.5


async def test_the_client_goes_through_the_proxy_of_the_environment(
    server: TushareServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", server.url)
    async with provider(server, base_url="http://tushare.invalid", client=None) as tushare:
        assert await tushare.read(VALUATIONS, SYMBOL, *YEAR) == []
    assert server.calls()["daily_basic"] == 1


async def test_a_client_of_the_callers_is_used_and_closed(server: TushareServer) -> None:
    made: list[httpx.AsyncClient] = []

    def client() -> httpx.AsyncClient:
        made.append(httpx.AsyncClient())
        return made[-1]

    async with provider(server, client=client) as tushare:
        assert made == []
        await tushare.read(VALUATIONS, SYMBOL, *YEAR)
        await tushare.read(VALUATIONS, SYMBOL, *YEAR)
    assert [c.is_closed for c in made] == [True]


DATA = (
    Path(os.environ.get("MOOT_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data") / "wire_formats"
)


def replies(*names: str) -> dict[str, Fault]:
    return {
        name.split("__")[0].removeprefix("tushare_"): Fault((DATA / name).read_text(encoding="utf-8"))
        for name in names
    }


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no recorded replies in {DATA}: set MOOT_TEST_DATA")
class TestRecordedReplies:
    async def test_a_year_of_bars(self, server: TushareServer) -> None:
        server.always = replies(
            "tushare_daily__000333.SZ_2024.json", "tushare_adj_factor__000333.SZ_2024.json"
        )
        async with provider(server) as tushare:
            bars = await tushare.read(BARS, "000333.SZ", *YEAR)
        assert len(bars) == 242
        assert bars.refused == ()
        assert all(bar.low <= bar.amount / bar.volume <= bar.high for bar in bars)

    async def test_a_day_of_valuations(self, server: TushareServer) -> None:
        server.always = replies("tushare_daily_basic__20191030.json")
        async with provider(server) as tushare:
            found = await tushare.read(VALUATIONS, "600519.SH", date(2019, 10, 30), date(2019, 10, 30))
        assert len(found) + len(found.refused) > 1
        assert found[0].total_mv == pytest.approx(212448.0363e4)

    async def test_indicators_and_companies(self, server: TushareServer) -> None:
        server.always = replies("tushare_fina_indicator__600519.SH.json", "tushare_stock_basic__sample.json")
        async with provider(server) as tushare:
            reports = await tushare.read(REPORTS, "600519.SH")
            companies = await tushare.read(COMPANIES, "CN")
        assert reports[-1].announced_on == date(2022, 10, 17)
        assert reports[-1].netprofit_margin == 53.1366
        assert "600519.SH" in {company.symbol for company in companies}

    @pytest.mark.parametrize(
        ("name", "code"),
        [
            ("tushare_err_rate.json", "TUSHARE_BUSY"),
            ("tushare_err_permission.json", "NOT_OFFERED"),
            ("tushare_err_token.json", "TUSHARE_TOKEN"),
        ],
    )
    async def test_errors(self, server: TushareServer, name: str, code: str) -> None:
        server.always["daily_basic"] = Fault((DATA / name).read_text(encoding="utf-8"))
        async with provider(server) as tushare:
            with pytest.raises(Unavailable) as told:
                await tushare.read(VALUATIONS, SYMBOL, *YEAR)
        assert told.value.code == code
