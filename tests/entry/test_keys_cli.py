"""`moot keys`, and a server that others can reach, as a user runs them."""

import json
import re
import urllib.error
import urllib.request
from signal import SIGTERM

import pytest

from tests.entry.forked import server
from tests.entry.test_llm_cli import files_with
from tests.fakes.clock import PATIENCE


async def test_a_key_is_printed_once_and_kept_nowhere(moot, home):
    made = await moot("keys", "create", "nightly", "--scope", "research", "--scope", "approve")
    assert made.returncode == 0
    key = made.stdout.rstrip("\n")
    assert re.fullmatch(r"moot_[a-z0-9]{8}_[A-Za-z0-9_-]{43}", key)
    assert made.stderr == (
        f"Key {key[5:13]} (nightly): scopes research, approve, workspace default. "
        "Keep it safe; it is not shown again.\n"
    )
    listed = await moot("keys", "list")
    assert key[14:] not in listed.stdout
    assert files_with(key[14:], home) == []


async def test_keys_are_listed_and_revoked(moot):
    nothing = await moot("keys", "list")
    assert nothing.stdout == "There are no keys. Make one: moot keys create NAME\n"
    first = (await moot("keys", "create", "nightly")).stdout
    second = (await moot("keys", "create", "desk", "--scope", "admin", "--workspace", "team-a")).stdout
    assert (await moot("keys", "revoke", "night")).stdout == f"Revoked {first[5:13]} (nightly).\n"
    listed = (await moot("keys", "list")).stdout
    assert re.search(rf"{first[5:13]} +read +20\S+ \S+ +revoked *\n *nightly +default +— +20", listed)
    assert re.search(rf"{second[5:13]} +admin +20\S+ \S+ +active *\n *desk +team-a +—", listed)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("create", " "), 2, "name: use 1 to 100 printable characters."),
        (("create", "a", "--scope", "everything"), 2, "scope: cannot be [everything]."),
        (("create", "a", "--scope", "aprove"), 2, "Did you mean approve?"),
        (("create", "a", "--workspace", "a b"), 2, "workspace: 'a b' cannot be used."),
        (("revoke", "abcd1234"), 1, "There is no key abcd1234."),
    ],
)
async def test_what_cannot_be_done_is_said(moot, arguments, code, said):
    seen = await moot("keys", *arguments)
    assert (seen.returncode, said in seen.stderr) == (code, True)


async def test_keys_need_a_database(moot):
    seen = await moot("keys", "create", "a", MOOT_PERSISTENCE="off")
    assert (seen.returncode, "MOOT_PERSISTENCE=off" in seen.stderr) == (1, True)


async def test_in_chinese_too(moot):
    made = await moot("keys", "create", "夜间", MOOT_LOCALE="zh-CN")
    assert f"密钥 {made.stdout[5:13]}（夜间）：权限 read，工作区 default。" in made.stderr
    assert "已撤销" in (await moot("keys", "revoke", made.stdout[5:13], MOOT_LOCALE="zh-CN")).stdout


async def test_without_a_key_that_counts_no_server_is_open_to_others(moot):
    key = (await moot("keys", "create", "nightly")).stdout
    await moot("keys", "revoke", key[5:13])
    for more in ({}, {"MOOT_PERSISTENCE": "off"}):
        seen = await moot("serve", "--host", "0.0.0.0", **more)
        assert seen.returncode == 2
        assert "Make one first: moot keys create NAME --scope research" in seen.stderr


def status(port: int, **headers: str) -> int:
    url = f"http://127.0.0.1:{port}/api/v1/coordinator/research/sessions"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as e:
        with e:
            assert json.load(e)["code"] == "UNAUTHENTICATED"
            return e.code


async def test_a_server_open_to_others_asks_everybody_for_a_key(moot, home, forge):
    key = (await moot("keys", "create", "nightly")).stdout.strip()
    async with server(forge, home, "--host", "0.0.0.0", MOOT_LOG_LEVEL="debug") as serving:
        port = serving.http.base_url.port
        seen = [status(port), status(port, Authorization=f"Bearer {key}"), status(port, **{"X-API-Key": key})]
        await moot("keys", "revoke", key[5:13])
        serving.signal(SIGTERM)
        assert await serving.exit_code() == 0
    assert seen == [401, 200, 200]
    assert files_with(key, home) == [], "nor in what it printed"
    listed = (await moot("keys", "list")).stdout
    assert re.search(r"nightly +default +20", listed), "when it was last used"
