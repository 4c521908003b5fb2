"""Batches and schedules in the console: what their pages say and refuse, and whom they let."""

import re

import pytest

from tests.access.desk import calling, new_key, open_app
from tests.web.conftest import OURS

HOSTILE = "<script>alert(1)</script>"
DAILY = {"name": "daily", "universe": "900001.DEMO", "top": "1", "at": "18:10", "every": "week"}


@pytest.fixture
async def app(home, clock):
    async with open_app(home, clock, worker=False) as app:
        yield app


async def begin(client, **changes):
    begun = await client.post(
        "/batches", data={"universe": "900001.DEMO, 900002.DEMO", "top": "1", **changes}
    )
    assert begun.status_code == 303, begun.text
    return begun.headers["location"]


async def test_a_batch_is_begun_paused_resumed_and_cancelled(client):
    assert "No batches yet" in (await client.get("/batches")).text
    path = await begin(client, name="mine")
    assert "mine" in (await client.get("/batches")).text
    for turn, then in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert (await client.post(f"{path}/{turn}")).status_code == 303
        assert f"batch-status-{then}" in (await client.get(path)).text
    late = await client.post(f"{path}/pause")
    assert (late.status_code, 'role="alert"' in late.text) == (409, True)


@pytest.mark.parametrize("to", ["json", "csv", "parquet", "html"])
async def test_a_batch_is_downloaded_as_a_file(client, to):
    file = await client.get(f"{await begin(client)}/download?format={to}")
    assert file.status_code == 200
    assert to in file.headers["content-type"]
    assert file.headers["content-disposition"].startswith("attachment")
    assert "frame-ancestors 'none'" in file.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"universe": " "}, "universe"),
        ({"universe": f"{HOSTILE} 7"}, "universe"),
        ({"top": "many"}, "top"),
        ({"max_cost": "-1"}, "max_cost"),
        ({"as_of": "tomorrow"}, "as_of"),
    ],
)
async def test_a_batch_that_makes_no_sense_is_refused_at_its_field(client, changes, field):
    for path, body in (("/batches", {"universe": "900001.DEMO"}), ("/schedules", DAILY)):
        refused = await client.post(path, data={**body, **changes})
        assert refused.status_code == 400, path
        assert field in re.search(r'class="flaw"[^>]*>([^<]+)', refused.text)[1]
        assert HOSTILE not in refused.text


async def test_what_means_no_share_is_left_out_where_that_is_wished(client):
    path = await begin(client, universe=f"900001.DEMO\n{HOSTILE}", skip_unknown="on", name=HOSTILE)
    for shown in (await client.get(path), await client.get("/batches")):
        assert shown.status_code == 200
        assert HOSTILE not in shown.text


async def test_a_schedule_is_added_run_paused_resumed_and_removed(client):
    added = await client.post("/schedules", data=DAILY)
    assert (added.status_code, added.headers["location"]) == (303, "/schedules/daily")
    assert "last trading day of the week" in (await client.get("/schedules")).text
    await client.post("/schedules/daily/run")
    assert "schedule-waiting" in (await client.get("/schedules/daily")).text
    await client.post("/schedules/daily/pause")
    assert "schedule-paused" in (await client.get("/schedules/daily")).text
    await client.post("/schedules/daily/resume")
    assert "schedule-paused" not in (await client.get("/schedules/daily")).text
    assert (await client.post("/schedules", data=DAILY)).status_code == 400
    assert (await client.post("/schedules/daily/remove")).headers["location"] == "/schedules"
    assert (await client.get("/schedules/daily")).status_code == 404


@pytest.mark.parametrize("changes", [{"name": ""}, {"name": "a b"}, {"at": "25:00"}, {"every": "hour"}])
async def test_a_schedule_that_makes_no_sense_is_refused(client, changes):
    refused = await client.post("/schedules", data={**DAILY, **changes})
    assert (refused.status_code, 'aria-invalid="true"' in refused.text) == (400, True)


async def test_a_name_that_is_no_plain_word_is_found_all_the_same(client):
    added = await client.post("/schedules", data={**DAILY, "name": "每日\"'<b>&"})
    shown = await client.get(added.headers["location"])
    assert (shown.status_code, "<b>&" in shown.text) == (200, False)


async def test_a_key_that_may_only_read_begins_nothing(app):
    async with calling(app, await new_key(app, "read")) as client:
        client.headers.update(OURS)
        assert (await client.get("/batches")).status_code == 200
        assert 'action="/schedules"' not in (await client.get("/schedules")).text
        for path in ("/batches", "/batches/last/cancel", "/schedules", "/schedules/daily/run"):
            assert (await client.post(path, data=DAILY)).status_code == 403, path
