"""The track record: nothing before there is a verdict, and what a share did once time has passed."""

import re
from datetime import timedelta

from tests.access.desk import HERE, calling, open_app
from tests.fakes.clock import FixedClock
from tests.web.conftest import OURS


async def research(home, clock, count):
    async with open_app(home, clock) as app, calling(app, address=HERE) as client:
        for number in range(1, count + 1):
            body = {"symbol": f"90000{number}.DEMO", "experts": ["valuation_modeler", "technical_analyst"]}
            assert (await client.post("/api/v1/coordinator/research", json=body)).status_code == 200


async def look(home, clock):
    async with open_app(home, clock) as app, calling(app, address=HERE) as client:
        client.headers.update(OURS)
        shown = await client.get("/track-record")
        assert shown.status_code == 200
        return shown.text


async def test_without_a_verdict_the_page_says_how_to_measure(home, clock):
    text = await look(home, clock)
    assert "No verdict yet" in text
    assert "moot evaluate walk" in text


async def test_a_share_is_followed_until_the_horizon_of_its_verdict(home, clock):
    await research(home, clock, 2)
    assert re.findall(r"(\d+) / 20</td>", await look(home, clock)) == ["0", "0"]
    later = await look(home, FixedClock(clock.now() + timedelta(days=70)))
    assert re.findall(r"(\d+) / 20</td>", later) == ["20", "20"]
    returns = [float(found) for found in re.findall(r'data-market="cn">[+−]([\d.]+)%', later)]
    assert len(returns) == 2
    assert any(returns)


async def test_a_what_if_is_no_verdict_of_the_desk(home, clock):
    await research(home, clock, 1)
    async with open_app(home, clock) as app, calling(app, address=HERE) as client:
        moves = {"moves": [{"move": "strike", "claim": "technical.crowding"}]}
        sessions = "/api/v1/coordinator/research/sessions"
        assert (await client.post(f"{sessions}/last/contest", json=moves)).status_code == 200
    text = await look(home, clock)
    assert sum(map(int, re.findall(r'</b></td><td class="figure">(\d+)</td>', text))) == 1
    assert len(re.findall(r"\d+ / 20</td>", text)) == 1
