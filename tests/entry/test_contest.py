"""Contesting a verdict through REST, command line, Python and a desk elsewhere, over the demo market."""

import json
from typing import Any
from uuid import UUID

import httpx
import pytest

import moot
from moot.desk import Moot
from moot.main import create_app
from moot.modules.coordinator.application.session_pack import unzip_files
from moot.modules.coordinator.container import check_session_pack
from moot.modules.debate.domain.argument import Weighing, close
from moot.remote.client import RemoteMoot
from moot.shared.domain.claims import ArgumentGraph
from moot.shared.infrastructure.settings import Settings
from tests.coordinator.test_session_repository import a_session
from tests.entry.inside import inside
from tests.entry.test_remote_desk import serving
from tests.fakes.careful_model import careful
from tests.fakes.clock import TickingClock

SESSIONS = "/api/v1/coordinator/research/sessions"
SYMBOL = "900001.DEMO"
DAY = {"as_of": "2026-03-31", "locale": "en-US"}
NEXT_DAY = {"as_of": "2026-04-01"}
HOLDER = {"holding": True, "cost": 12.3}
STRIKE = {"move": "strike", "claim": "valuation.graham"}


@pytest.fixture
async def desk(home, clock):
    async with Moot(Settings(home=home, log_level="error"), clock=TickingClock(clock.now())) as desk:
        yield desk


@pytest.fixture
async def app(desk):
    app = create_app(desk)
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture
async def client(app):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        yield client


def argument_of(result: moot.ResearchResult) -> ArgumentGraph:
    assert result.debate_outcome is not None
    return ArgumentGraph.model_validate(result.debate_outcome["argument"])


async def test_the_verdict_is_ruled_again_on_the_argument_without_the_claim(desk):
    first = await desk.research(SYMBOL, **DAY, holder=HOLDER)
    found = await desk.contest(first.session_id, [STRIKE])
    graph = argument_of(first)
    weighed = close(
        Weighing(graph.claims, graph.relations, frozenset(graph.heard)).without([STRIKE["claim"]])
    )

    now = await desk.result(found.after.session_id)
    assert argument_of(now) == weighed
    assert (now.debate_outcome.direction, now.debate_outcome.confidence) == (
        weighed.direction,
        weighed.confidence,
    )
    assert (found.before.motion, found.after.motion) == (graph.motion, weighed.motion)
    assert (found.before.action, found.before.confidence) == (first.verdict.action, first.verdict.confidence)
    assert (found.after.action, found.after.confidence) == (now.verdict.action, now.verdict.confidence)
    assert now.expert_results == first.expert_results
    (gone,) = [shift for shift in found.claims if shift.id == STRIKE["claim"]]
    assert (gone.before, gone.after) == (graph.strengths[STRIKE["claim"]], None)
    assert gone.says == next(claim.says["en-US"] for claim in graph.claims if claim.id == STRIKE["claim"])
    assert [(shift.id, shift.says) for shift in found.dimensions] == [
        ("valuation.price", "Price against value")
    ]

    session = await desk.session(found.after.session_id)
    assert (session.trigger_source, str(session.parent_session_id)) == ("contest", first.session_id)
    assert (session.contest, session.holder) == ([moot.Move(**STRIKE)], moot.Holder(**HOLDER))
    assert (session.as_of, session.locale) == (first.as_of, "en-US")
    decisions = await desk.governance.decisions.of_session(session.id, "default")
    assert {record.decision_id for record in decisions} >= {"research_request", "node:judge", "verdict"}


async def test_a_what_if_can_be_contested_and_never_counts_as_a_verdict(desk):
    first = await desk.research(SYMBOL, **DAY)
    added = {"move": "add", "claim": "financial.roic", "says": "The moat is gone", "strength": 0.9}
    once = await desk.contest(first.session_id, [added])
    twice = await desk.contest(once.after.session_id, [{"move": "strike", "claim": "contest.1"}])
    assert twice.before == once.after
    assert argument_of(await desk.result(twice.after.session_id)) == argument_of(first)
    assert twice.after.motion == once.before.motion

    later = await desk.session((await desk.research(SYMBOL, **DAY | NEXT_DAY)).session_id)
    assert str(later.previous.session_id) == first.session_id
    contested = await desk.contest(later.id, [STRIKE])
    assert (await desk.session(contested.after.session_id)).previous == later.previous


async def test_replay_and_pack_cover_the_argument_and_the_what_if(desk):
    first = await desk.research(SYMBOL, **DAY)
    found = await desk.contest(
        first.session_id, [STRIKE, {"move": "strength", "claim": "financial.roic", "strength": 0.1}]
    )
    for session_id in (UUID(first.session_id), found.after.session_id):
        replayed = await desk.replay(session_id)
        assert (replayed.equal, "debate" in {node.node_type for node in replayed.nodes}) == (True, True)
        packed = await desk.export(session_id)
        checked = check_session_pack(packed, "en-US")
        assert (checked.intact, checked.compared) == (True, True)
        files = unzip_files(packed)
        result = json.loads(files["result.json"])
        assert (
            result["debate_outcome"]["argument"] == (await desk.result(session_id)).debate_outcome["argument"]
        )
    question = json.loads(files["session.json"])["question"]
    assert [move["move"] for move in question["contest"]] == ["strike", "strength"]


async def test_a_changed_argument_breaks_the_replay(desk, monkeypatch):
    first = await desk.research(SYMBOL, **DAY)
    monkeypatch.setattr(Weighing, "motion", property(lambda _: 0.123))
    (debate,) = [node for node in (await desk.replay(first.session_id)).nodes if node.node_type == "debate"]
    assert (debate.outcome, {d.path for d in debate.differences} & {"argument.motion"}) == (
        "differs",
        {"argument.motion"},
    )


async def test_experts_that_failed_stay_failed_and_count_as_asked(desk):
    """On the third day of the market there are too few bars for most."""
    first = await desk.research(SYMBOL, as_of="2018-01-04", locale="en-US")
    failed = [name for name, item in first.expert_results.items() if item.status == "failed"]
    claim = argument_of(first).claims[0].id
    found = await desk.contest(first.session_id, [{"move": "strike", "claim": claim}])
    now = await desk.result(found.after.session_id)
    assert failed
    assert now.expert_results == first.expert_results
    assert (now.overall_status, now.verdict_status) == ("partial", first.verdict_status)
    again = await desk.contest(
        found.after.session_id, [{"move": "strike", "claim": argument_of(now).claims[0].id}]
    )
    assert (await desk.result(again.after.session_id)).expert_results == first.expert_results
    assert (await desk.replay(found.after.session_id)).equal


async def test_no_model_is_asked_even_where_one_judges(llm_server, home, clock):
    llm_server.default = careful
    settings = Settings(home=home, log_level="error", llm_base_url=llm_server.url, llm_model="careful-1")
    async with Moot(settings, clock=TickingClock(clock.now())) as desk:
        first = await desk.research(SYMBOL, **DAY)
        asked = len(llm_server.requests)
        claim = argument_of(first).claims[0].id
        found = await desk.contest(first.session_id, [{"move": "strike", "claim": claim}])
        now = await desk.result(found.after.session_id)
        assert (first.verdict.engine, now.verdict.engine, now.usage.requests) == ("llm", "rubric", 0)
        assert (await desk.replay(found.after.session_id)).equal
        assert len(llm_server.requests) == asked > 0


async def test_over_rest(client):
    first = (
        await client.post(
            "/api/v1/coordinator/research",
            json={"symbol": SYMBOL, "experts": ["valuation_modeler", "financial_auditor"], **DAY},
        )
    ).json()
    answer = await client.post(
        f"{SESSIONS}/last/contest", json={"moves": [{**STRIKE, "claim": "valuation.gra"}]}
    )
    body = answer.json()
    assert (answer.status_code, body["before"]["session_id"]) == (200, first["session_id"])
    assert body["moves"] == [{**STRIKE, "strength": None, "says": None, "kind": "attack"}]
    listed = (await client.get(SESSIONS, params={"trigger_source": "contest"})).json()["items"]
    assert [item["id"] for item in listed] == [body["after"]["session_id"]]
    parent = (await client.get(f"{SESSIONS}/{first['session_id']}")).json()
    assert (parent["retries"], parent["what_ifs"]) == ([], [body["after"]["session_id"]])


BAD: list[tuple[dict[str, Any], str, str, str]] = [
    ({"moves": []}, "INVALID_REQUEST", "too few", "太少"),
    (
        {"moves": [{"move": "strike", "claim": "valuation.grahm"}]},
        "CLAIM_NOT_FOUND",
        "valuation.graham",
        "valuation.graham",
    ),
    ({"moves": [{"move": "strike", "claim": "valuation"}]}, "CLAIM_NOT_FOUND", "more than one", "多条"),
    ({"moves": [STRIKE, STRIKE]}, "CLAIM_NOT_FOUND", "no such claim", "没有这条"),
    (
        {"moves": [{**STRIKE, "move": "strength"}]},
        "INVALID_REQUEST",
        "moves.0.strength: is required",
        "moves.0.strength",
    ),
    ({"moves": [{**STRIKE, "move": "strength", "strength": 1.2}]}, "INVALID_REQUEST", "out of range", "超出"),
    ({"moves": [{**STRIKE, "move": "add"}]}, "INVALID_REQUEST", "moves.0.says: is required", "moves.0.says"),
    (
        {"moves": [{**STRIKE, "move": "add", "says": "  "}]},
        "INVALID_REQUEST",
        "must not be empty",
        "不能为空",
    ),
    ({"moves": [{**STRIKE, "move": "add", "says": "a\x00b"}]}, "INVALID_REQUEST", "not allowed", "字符"),
    ({"moves": [{**STRIKE, "clam": "x"}]}, "INVALID_REQUEST", "Did you mean claim?", "claim"),
]


async def test_what_cannot_be_contested_is_refused_in_the_readers_language(client):
    asked = {"symbol": SYMBOL, "experts": ["valuation_modeler"], **DAY}
    session = (await client.post("/api/v1/coordinator/research", json=asked)).json()["session_id"]
    for body, code, said, in_chinese in BAD:
        english, chinese = [
            (
                await client.post(
                    f"{SESSIONS}/{session}/contest", json=body, headers={"Accept-Language": locale}
                )
            ).json()
            for locale in ("en-US", "zh-CN")
        ]
        assert (english["code"], said in english["message"]) == (code, True), (body, english)
        assert in_chinese in chinese["message"], (body, chinese)
    assert len((await client.get(SESSIONS)).json()["items"]) == 1, "a refusal opens no session"


async def test_a_session_that_runs_or_argued_nothing_cannot_be_contested(client, desk):
    running = a_session(workspace_id="default")
    await desk.coordinator.sessions._repository.save_session(running)
    answer = await client.post(f"{SESSIONS}/{running.id}/contest", json={"moves": [STRIKE]})
    assert (answer.status_code, answer.json()["code"]) == (409, "SESSION_RUNNING")
    skipped = await desk.research(SYMBOL, ["valuation_modeler"], skip_debate=True, **DAY)
    answer = await client.post(f"{SESSIONS}/{skipped.session_id}/contest", json={"moves": [STRIKE]})
    assert (answer.status_code, answer.json()["code"]) == (400, "NOTHING_TO_CONTEST")
    answer = await client.post(f"{SESSIONS}/{'0' * 32}/contest", json={"moves": [STRIKE]})
    assert answer.status_code == 404


async def test_from_elsewhere_it_is_the_same(app, desk):
    async with serving(app) as url, RemoteMoot(url) as remote:
        first = await desk.research(SYMBOL, ["valuation_modeler"], **DAY)
        here = await desk.contest(first.session_id, [moot.Move(**STRIKE)])
        there = await remote.contest(first.session_id, [moot.Move(**STRIKE)])
        known = {"after": {"session_id"}}
        assert there.model_dump(exclude=known) == here.model_dump(exclude=known)
        skipped = await desk.research(SYMBOL, ["valuation_modeler"], skip_debate=True, **DAY)
        with pytest.raises(moot.NothingToContest):
            await remote.contest(skipped.session_id, [STRIKE])


async def test_on_the_command_line(home, monkeypatch):
    run = inside(home, monkeypatch)
    await run("research", SYMBOL, "--as-of", "2026-03-31", "--experts", "valuation_modeler,financial_auditor")
    claims = (await run("contest", "last")).stdout
    assert "valuation.graham" in claims and "against" in claims
    answered = ("--add", "The moat is gone", "--against", "financial.roic=0.9")
    seen = await run(
        "contest", "last", "--strike", "valuation.gra", "--strength", "valuation.peg=0.1", *answered
    )
    assert (seen.returncode, seen.stderr) == (0, "")
    assert "What if: 900001.DEMO" in seen.stdout
    assert "(weight of the argument 0." in seen.stdout
    lines = {line.split()[0]: line.split()[1:3] for line in seen.stdout.splitlines() if "." in line[:30]}
    assert lines["valuation.graham"][1] == "—"
    assert lines["valuation.peg"][1] == "0.100"
    assert lines["contest.1"] == ["—", "0.900"]
    shown = (await run("sessions", "show", "last", MOOT_LOCALE="zh-CN")).stdout
    assert "反驳 financial.roic：The moat is gone" in shown
    assert "假设：" in (await run("sessions", "list", MOOT_LOCALE="zh-CN")).stdout
    told = json.loads((await run("contest", "last", "--strike", "contest.1", "--json")).stdout)
    assert told["claims"][0]["id"] == "contest.1"
    mixed = (
        "--add",
        "It grows",
        "--for=financial.roic",
        *answered,
        "--add",
        "--for",
        "--for",
        "valuation.peg",
    )
    told = json.loads((await run("contest", "last", *mixed, "--json")).stdout)
    assert [(move["says"], move["kind"], move["claim"]) for move in told["moves"]] == [
        ("It grows", "support", "financial.roic"),
        ("The moat is gone", "attack", "financial.roic"),
        ("--for", "support", "valuation.peg"),
    ]
    for locale, said in (
        ("en-US", "there are 2 of the one and 1 of the others"),
        ("zh-CN", "前者有 2 个，后者共有 1 个"),
    ):
        refused = await run("contest", "last", *answered, "--add", "x", MOOT_LOCALE=locale)
        assert (refused.returncode, said in refused.stderr.replace("\n", " ")) == (2, True), refused.stderr
