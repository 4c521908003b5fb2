"""`moot batch`, as a user runs it; the same over HTTP and from afar."""

import asyncio
import io
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import polars as pl
import pytest

from moot import desk as local
from moot.main import create_app
from moot.modules.jobs.application.batches import BatchResults
from moot.remote.client import RemoteMoot
from moot.remote.desk import BlockingDesk
from moot.shared.domain.errors import Conflict, InvalidInput, NotFound
from moot.shared.infrastructure.settings import Settings
from tests.access.desk import HERE, calling
from tests.entry.inside import Run
from tests.entry.test_remote_desk import serving
from tests.fakes.clock import PATIENCE

BATCHES = "/api/v1/batches"
QUICK = ("--experts", "technical_analyst,macro_intelligence", "--as-of", "2026-03-31")


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    file = tmp_path / "mine.csv"
    file.write_text(
        "﻿name,symbol\n幻山酒业,900001.DEMO\n雾港银行,900002\n# a note,\n某,900003.DEMO\n", "utf-8"
    )
    return file


async def test_a_batch_is_run_here_and_now_and_ranked(moot: Run, listed: Path, tmp_path: Path) -> None:
    nothing = await moot("batch", "list")
    assert nothing.stdout.startswith("There are no batches yet.")
    asked = ("batch", "run", "-u", str(listed), "--name", "mine", "--top", "2", *QUICK)
    ran = await moot(*asked, MOOT_WORKER="on")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert re.search(r"(?m)^mine \([0-9a-f]{8}\): done$", ran.stdout)
    assert "3 shares, 3 screened, 2 for the desk, 2 of them done." in " ".join(ran.stdout.split())
    assert len(re.findall(r"(?m)^ *[123] +9000\d\d\.DEMO", ran.stdout)) == 3
    assert "Neither is a forecast" in " ".join(ran.stdout.split())
    again = await moot(*asked, "--json", MOOT_WORKER="on")
    results = BatchResults.model_validate_json(again.stdout)
    assert results.previous is not None
    assert [row.before is not None for row in results.rows] == [True] * 3
    shown = await moot("batch", "show", LANG="zh_CN.UTF-8")
    assert "批次" not in shown.stderr
    assert "裁决没有变化。" in shown.stdout
    page = await moot("batch", "list")
    assert len(re.findall(r"(?m)^[0-9a-f]{8} +mine +done +2026-03-31 +3 +2/2", page.stdout)) == 2
    out = tmp_path / "table.parquet"
    exported = await moot("batch", "export", "last", "--out", str(out))
    assert exported.stdout == f"Wrote {out} with 3 shares.\n"
    assert pl.read_parquet(out)["symbol"].to_list() == [row.symbol for row in results.rows]
    refused = await moot("batch", "export", "last", "--out", str(out))
    assert (refused.returncode, str(out) in refused.stderr) == (2, True)
    as_csv = await moot("batch", "export")
    assert pl.read_csv(io.BytesIO(as_csv.stdout.encode()))["rank"].to_list() == [1, 2, 3]


async def test_lines_of_a_file_that_mean_no_share_are_named(moot: Run, listed: Path) -> None:
    listed.write_text("900001.DEMO\n\nNobody Inc\n999999.DEMO\n", "utf-8")
    asked = ("batch", "run", "-u", str(listed), "--background", *QUICK)
    refused = await moot(*asked)
    assert refused.returncode == 2
    assert "mine.csv line 3: Nobody Inc" in refused.stderr
    assert "mine.csv line 4: 999999.DEMO" in refused.stderr
    assert "--skip-unknown" in refused.stderr
    in_chinese = await moot(*asked, LANG="zh_CN.UTF-8")
    assert "mine.csv 第 3 行：Nobody Inc" in in_chinese.stderr
    gone_on = await moot(*asked, "--skip-unknown")
    assert (gone_on.returncode, "waits for a worker: 1 shares" in gone_on.stdout) == (0, True)
    assert "Left out: Nobody Inc, 999999.DEMO." in (await moot("batch", "show")).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run", "-u", "no_such_file.csv"), 2, "no_such_file.csv"),
        (("run", "-u", "csi300"), 1, "MOOT_TUSHARE_TOKEN"),
        (("run", "-u", "900001.DEMO", "--top", "many"), 2, "top"),
        (("run", "-u", "900001.DEMO", "--experts", "nobody"), 2, "experts"),
        (("show",), 1, "There is no batch last"),
        (("cancel", "12345678"), 1, "There is no batch 12345678"),
        (("export", "--format", "xlsx"), 2, "xlsx"),
    ],
)
async def test_what_cannot_be_done_is_said(
    moot: Run, arguments: tuple[str, ...], code: int, said: str
) -> None:
    seen = await moot("batch", *arguments)
    assert (seen.returncode, said in seen.stderr) == (code, True)


async def test_a_batch_is_paused_resumed_and_cancelled(moot: Run) -> None:
    begun = await moot("batch", "run", "-u", "900001.DEMO,900002.DEMO", "--background", "--json", *QUICK)
    batch_id = json.loads(begun.stdout)["id"]
    paused = await moot("batch", "pause", batch_id[:8])
    assert paused.stdout == f"Batch {batch_id[:8]} (900001.DEMO,900002.DEMO): paused.\n"
    again = await moot("batch", "pause", batch_id, LANG="zh_CN.UTF-8")
    assert (again.returncode, "只有进行中的批次可以暂停" in again.stderr) == (1, True)
    resumed = await moot("batch", "resume", "--background")
    assert "waits for a worker" in resumed.stdout
    cancelled = await moot("batch", "cancel")
    assert cancelled.stdout.endswith("cancelled.\n")
    assert "cancelled already" in (await moot("batch", "cancel")).stderr


async def test_the_same_over_http_and_from_afar(home: Path) -> None:
    app = create_app(local.Moot(Settings(home=home, log_level="error", worker=True)))
    async with serving(app) as address, RemoteMoot(address, locale="en-US") as desk:
        experts = ["technical_analyst", "macro_intelligence"]
        begun = await desk.start_batch("900001", "900002.DEMO", top=1, experts=experts, as_of="2026-03-31")
        assert (begun.shares, begun.request.locale, begun.name) == (2, "en-US", "900001, 900002.DEMO")

        async def ended() -> bool:
            return (await desk.batch(begun.id)).ended_at is not None

        await wait_until(ended)
        results = await desk.batch_results(begun.id)
        assert results == await app.state.desk.batch_results(begun.id)
        assert [row.basis for row in results.rows] == ["verdict", "screen"]
        assert (await desk.batches()).items[0].id == begun.id
        read = pl.read_parquet(io.BytesIO(await desk.export_batch(begun.id, "parquet")))
        assert read["rank"].to_list() == [1, 2]
        for turn in (desk.pause_batch, desk.resume_batch, desk.cancel_batch):
            with pytest.raises(Conflict, match="done"):
                await turn(begun.id)
        with pytest.raises(NotFound):
            await desk.batch(UUID(int=1))
        with pytest.raises(InvalidInput, match="Mirage Hil"):
            await desk.start_batch("Mirage Hil Distilers")
        async with calling(app, address=HERE) as client:
            one = f"{BATCHES}/last/results"
            as_html = await client.get(one, params={"format": "html"}, headers={"Accept-Language": "zh"})
            as_csv = await client.get(one, params={"format": "csv"})
            wrong = await client.get(one, params={"format": "xlsx"})
            odd = await client.post(BATCHES, json={"universe": ["900001.DEMO"], "tops": 3})
    assert (as_html.status_code, as_html.headers["content-language"]) == (200, "zh-CN")
    assert as_html.headers["content-security-policy"].startswith("default-src 'none'")
    assert "批次" in as_html.text
    assert as_csv.headers["content-disposition"].endswith('.csv"')
    assert pl.read_csv(as_csv.content)["rank"].to_list() == [1, 2]
    assert (wrong.status_code, "json" in wrong.json()["message"]) == (400, True)
    assert (odd.status_code, "tops" in odd.json()["message"]) == (400, True)


async def wait_until(come: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(3 * PATIENCE):
        while not await come():
            await asyncio.sleep(0.1)


def test_code_that_does_not_await_has_the_same(home: Path) -> None:
    with BlockingDesk(local.Moot(Settings(home=home, log_level="error"))) as desk:
        begun = desk.start_batch("900001.DEMO", top=0)
        assert desk.pause_batch(begun.id).status == "paused"
        assert desk.resume_batch(begun.id).status == "running"
        assert desk.cancel_batch(begun.id).status == "cancelled"
        assert [one.id for one in desk.batches().items] == [begun.id]
        assert desk.batch(begun.id).status == "cancelled"
        assert desk.batch_results(begun.id).rows == []
        assert desk.export_batch(begun.id, "csv").startswith(b"\xef\xbb\xbfrank,symbol")
