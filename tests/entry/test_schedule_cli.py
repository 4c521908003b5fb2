"""`moot schedule`, as a user runs it; the same over HTTP, from Python and from afar."""

import json
import re

import pytest

from moot import desk as local
from moot.main import create_app
from moot.remote.client import RemoteMoot
from moot.remote.desk import BlockingDesk
from moot.shared.domain.errors import Conflict, InvalidInput, NotFound
from moot.shared.infrastructure.settings import Settings
from tests.access.desk import HERE, calling
from tests.entry.test_remote_desk import serving

SCHEDULES = "/api/v1/schedules"
SHARES = ("-u", "900001.DEMO", "-u", "900002.DEMO")


async def test_what_is_scheduled_is_listed_paused_run_and_removed(moot):
    assert (await moot("schedule", "list")).stdout.startswith("Nothing is scheduled.")
    added = await moot("schedule", "add", "nightly", *SHARES, "--top", "1", "--max-cost", "2.5")
    assert (added.returncode, added.stderr) == (0, "")
    assert re.match(
        r"Added nightly: every trading day at 18:10 \(DEMO\), next 20\d\d-\d\d-\d\d 18:10 there\.\n"
        r"It begins while somebody works",
        added.stdout,
    )
    weekly = ("schedule", "add", "weekly", "-u", "幻山酒业", "--weekly", "--at", "17:30")
    added = await moot(*weekly, LANG="zh_CN.UTF-8")
    assert "每周最后一个交易日 17:30（DEMO）" in added.stdout
    listed = (await moot("schedule", "list", COLUMNS="160")).stdout
    assert re.search(r"(?m)^nightly +900001\.DEMO, 900002\.DEMO +every trading day at 18:10", listed)
    paused = await moot("schedule", "pause", "nightly")
    assert paused.stdout == "Paused nightly. It goes on with: moot schedule resume nightly\n"
    assert "已暂停" in (await moot("schedule", "list", LANG="zh_CN.UTF-8")).stdout
    assert (await moot("schedule", "resume", "nightly")).stdout.startswith("nightly goes on, next 20")
    asked = await moot("schedule", "run-now", "nightly")
    assert asked.stdout.startswith("nightly is asked for once more, as of now.")
    shown = json.loads((await moot("schedule", "show", "nightly", "--json")).stdout)
    (run,) = shown["runs"]
    assert (run["status"], run["requested_by"], run["batch_id"]) == ("waiting", "cli", None)
    assert (shown["request"]["top"], shown["request"]["max_cost"]) == (1, 2.5)
    seen = (await moot("schedule", "show", "nightly", LANG="zh_CN.UTF-8")).stdout
    assert "费用上限  2.5" in seen
    assert "等待工作进程；由 cli 要求" in seen
    assert (await moot("schedule", "remove", "nightly")).stdout.startswith("Removed nightly.")
    left = json.loads((await moot("schedule", "list", "--json")).stdout)
    assert [one["name"] for one in left["items"]] == ["weekly"]


async def test_a_file_is_read_when_it_is_added(moot, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("name,symbol\nMirage,900001.DEMO\nnobody,999999.DEMO\n# later,\n", "utf-8")
    refused = await moot("schedule", "add", "mine", "-u", str(file))
    assert (refused.returncode, "mine.csv line 3: 999999.DEMO" in refused.stderr) == (2, True)
    added = await moot(
        "schedule", "add", "mine", "-u", str(file), "-u", "watch:none", "--skip-unknown", "--json"
    )
    assert json.loads(added.stdout)["request"]["universe"] == ["900001.DEMO", "999999.DEMO", "watch:none"]
    missing = await moot("schedule", "add", "gone", "-u", "gone.csv")
    assert (missing.returncode, "gone.csv" in missing.stderr) == (2, True)


async def test_workspaces_have_their_own(moot):
    await moot("schedule", "add", "nightly", *SHARES, "--workspace", "theirs")
    assert json.loads((await moot("schedule", "list", "--json")).stdout) == {"items": []}
    assert "nightly" in (await moot("schedule", "list", "--workspace", "theirs")).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("add", "n", "-u", "Mirage Hil Distilers"), 2, "900001.DEMO"),
        (("add", "n", "-u", "watch:none"), 2, "none"),
        (("add", "n", *SHARES, "--at", "half past"), 2, "at"),
        (("add", "n", *SHARES, "--market", "MARS"), 2, "CN, US, DEMO"),
        (("add", "n", *SHARES, "--experts", "astrologer"), 2, "experts"),
        (("add", "n", *SHARES, "--top", "-1"), 2, "top"),
        (("show", "n"), 1, "There is no schedule n."),
        (("run-now", "n"), 1, "There is no schedule n."),
    ],
)
async def test_what_cannot_be_scheduled_is_said(moot, arguments, code, said):
    seen = await moot("schedule", *arguments)
    assert (seen.returncode, said in seen.stderr) == (code, True)


async def test_the_same_over_http_and_from_afar(home, clock):
    app = create_app(local.Moot(Settings(home=home, log_level="error"), clock=clock))
    async with serving(app) as address, RemoteMoot(address, locale="en-US") as desk:
        await desk.add_to_watchlist("900001.DEMO")
        added = await desk.add_schedule("夜间", ["watch:default"], at="16:30", top=1, skip_debate=True)
        assert (added.market, added.request.locale, added.created_by) == ("DEMO", "en-US", None)
        assert f"{added.next_due:%Y-%m-%d %H:%M}" == "2026-07-01 08:30"
        assert (await desk.pause_schedule("夜间")).paused
        assert not (await desk.resume_schedule("夜间")).paused
        assert [run.status for run in (await desk.run_schedule("夜间")).runs] == ["waiting"]
        assert await desk.schedule("夜间") == await app.state.desk.schedule("夜间")
        assert await desk.schedules() == await app.state.desk.schedules()
        with pytest.raises(Conflict, match="moot schedule remove"):
            await desk.add_schedule("夜间", ["900001.DEMO"])
        with pytest.raises(InvalidInput, match=r"request\.as_of"):
            await desk.add_schedule("then", ["900001.DEMO"], as_of="2026-01-01")
        with pytest.raises(NotFound, match="no schedule another"):
            await desk.remove_schedule("another")
        async with calling(app, address=HERE) as client:
            body = {"name": "day", "every": "month", "request": {"universe": ["900001.DEMO"]}}
            refused = await client.post(SCHEDULES, json=body, headers={"Accept-Language": "zh-CN"})
            gone = await client.delete(f"{SCHEDULES}/夜间")
            unknown = await client.get(f"{SCHEDULES}/夜间", headers={"Accept-Language": "zh-CN"})
    assert (refused.status_code, "every" in refused.json()["message"]) == (400, True)
    assert (gone.status_code, gone.json()["name"]) == (200, "夜间")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "SCHEDULE_NOT_FOUND")
    assert unknown.json()["message"] == "没有名为 夜间 的定时任务。"


def test_code_that_does_not_await_schedules_too(home, clock):
    with BlockingDesk(local.Moot(Settings(home=home, log_level="error"), clock=clock)) as desk:
        desk.add_schedule("weekly", ["900001.DEMO"], every="week")
        assert desk.run_schedule("weekly").runs[0].requested_by == "sdk"
        assert [one.name for one in desk.schedules().items] == ["weekly"]
