"""`moot watch` and `moot notify`, as a user runs them; the same over HTTP."""

import json
import re

import pytest

from moot import desk as local
from moot.main import create_app
from moot.modules.jobs.application.destinations import DestinationBody
from moot.remote.client import RemoteMoot
from moot.shared.domain.errors import InvalidInput, NotFound
from moot.shared.infrastructure.settings import Settings
from tests.access.desk import HERE, calling
from tests.entry.test_llm_cli import files_with
from tests.entry.test_remote_desk import serving
from tests.fakes.chat_servers import TOKEN, running_chat_server

WATCHLISTS = "/api/v1/watchlists"


async def test_what_is_watched_is_listed(moot):
    nothing = await moot("watch", "list")
    assert nothing.stdout == "Nothing is watched. Put something on the list: moot watch add SYMBOL\n"
    added = await moot("watch", "add", "900001", "雾港银行")
    assert (added.returncode, added.stderr) == (0, "")
    assert re.search(r"(?m)^900001\.DEMO +Mirage Hill Distillers +— +— *$", added.stdout)
    await moot("watch", "add", "900002.DEMO", "--list", "banks")
    listed = (await moot("watch", "list", LANG="zh_CN.UTF-8")).stdout
    assert re.search(r"(?m)^900002\.DEMO +雾港银行 +banks +— +— *$", listed)
    body = json.loads((await moot("watch", "list", "--list", "banks", "--json")).stdout)
    assert [(one["symbol"], one["list_name"], one["last"]) for one in body["items"]] == [
        ("900002.DEMO", "banks", None)
    ]
    removed = await moot("watch", "remove", "900002.DEMO", "--json")
    assert [one["symbol"] for one in json.loads(removed.stdout)["items"]] == ["900001.DEMO"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("add", "Mirage Hil Distilers"), 2, "900001.DEMO"),
        (("add", "900001.DEMO", "--list", " "), 2, "list_name"),
        (("remove", "900001.DEMO"), 1, "900001.DEMO is not on the list default."),
    ],
)
async def test_what_cannot_be_watched_is_said(moot, arguments, code, said):
    seen = await moot("watch", *arguments)
    assert (seen.returncode, said in seen.stderr) == (code, True)


async def test_the_same_over_http_and_from_afar(home, clock):
    app = create_app(local.Moot(Settings(home=home, log_level="error"), clock=clock))
    async with serving(app) as address, RemoteMoot(address, locale="en-US") as desk:
        assert [one.symbol for one in (await desk.add_to_watchlist("幻山酒业", "900002")).items] == [
            "900001.DEMO",
            "900002.DEMO",
        ]
        await desk.add_to_watchlist("900003.DEMO", list_name="else")
        left = await desk.remove_from_watchlist("900001", "900002.DEMO")
        assert left.items == []
        assert await desk.watchlist() == await app.state.desk.watchlist()
        with pytest.raises(NotFound, match="not on the list"):
            await desk.remove_from_watchlist("900001.DEMO")
        with pytest.raises(InvalidInput, match=r"900001\.DEMO"):
            await desk.add_to_watchlist("Mirage Hil Distilers")
        async with calling(app, address=HERE) as client:
            known = (await client.get(WATCHLISTS, params={"list_name": "else"})).json()
            nothing = await client.post(WATCHLISTS, json={"symbols": []})
    assert [(one["symbol"], one["name_en"]) for one in known["items"]] == [
        ("900003.DEMO", known["items"][0]["name_en"])
    ]
    assert (nothing.status_code, nothing.json()["code"]) == (400, "INVALID_REQUEST")


async def test_a_place_is_added_tried_and_removed_and_its_key_is_kept_nowhere(moot, home, clock):
    assert "Nobody is told of anything." in (await moot("notify", "list")).stdout
    async with running_chat_server(clock.now().timestamp()) as chat:
        options = ("--kind", "wecom", "--url-env", "WECOM_URL")
        added = await moot("notify", "add", "team", *options, WECOM_URL=chat.address("wecom"))
        assert added.stdout.endswith(f"Added team ({chat.url}). Try it: moot notify test team\n")
        tried = await moot("notify", "test", "team")
        assert tried.stdout == f"team has taken the message ({chat.url}).\n"
        assert chat.heard == [{"text": "Moot can reach team. This is a test.", "type": "text"}]
        chat.refuse_with = (200, '{"errcode": 93000, "errmsg": "invalid webhook url"}', {})
        failed = await moot("notify", "test", "team")
        assert (failed.returncode, "code 93000: invalid webhook url" in failed.stderr) == (1, True)
    listed = await moot("notify", "list")
    assert re.search(r"team +http://127\S+ +changed verdicts +sent 0", listed.stdout)
    assert (await moot("notify", "list", LANG="zh_CN.UTF-8")).stdout.count("企业微信") == 1
    shown = json.loads((await moot("notify", "list", "--json")).stdout)
    seen = [run.stdout + run.stderr for run in (added, tried, failed, listed)]
    assert TOKEN not in f"{seen} {shown}"
    assert files_with(TOKEN, home) == []
    assert (await moot("notify", "remove", "team")).stdout.startswith("Removed team")
    assert (await moot("notify", "send")).stdout == "Sent: 0.\n"


async def test_an_address_and_a_secret_come_from_variables(moot):
    given = {"DING": f"https://chat.example/robot/send?access_token={TOKEN}", "SECRET": "SEC-of-the-robot"}
    options = ("--kind", "dingtalk", "--url-env", "DING", "--secret-env", "SECRET", "--on", "failure")
    assert (await moot("notify", "add", "ops", *options, **given)).returncode == 0
    (view,) = json.loads((await moot("notify", "list", "--json")).stdout)
    assert (view["place"], view["signed"], view["occasions"]) == ("https://chat.example", True, ["failure"])
    missing = await moot("notify", "add", "other", *options, DING=given["DING"])
    assert (missing.returncode, "SECRET" in missing.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--kind", "telegram"), "telegram"),
        (("--kind", "wecom", "--on", "weather"), "verdict, failure, escalation"),
        (("--kind", "email", "--server", "smtp://mail.example"), "--from and --to"),
        (("--kind", "wecom", "--server", "gopher://x"), "http, https"),
    ],
)
async def test_what_cannot_be_added_is_said(moot, options, said):
    seen = await moot("notify", "add", "team", *options, typed="https://chat.example/hook\n\n")
    assert (seen.returncode, said in seen.stderr) == (2, True)


async def test_over_http_places_are_seen_without_their_keys(home, clock):
    app = create_app(local.Moot(Settings(home=home, log_level="error"), clock=clock))
    body = DestinationBody(
        name="team", kind="feishu", url=f"https://chat.example/hook/{TOKEN}", secret="a signing secret"
    )
    async with app.router.lifespan_context(app), calling(app, address=HERE) as client:
        await app.state.jobs.destinations().add(body)
        answer = await client.get("/api/v1/notifications/destinations")
    (view,) = answer.json()
    assert (view["name"], view["place"], view["signed"], view["sent"]) == (
        "team",
        "https://chat.example",
        True,
        0,
    )
    assert TOKEN not in answer.text
    assert "a signing secret" not in answer.text
