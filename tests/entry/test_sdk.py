"""The SDK as a program uses it: one shape, attributes, frames, errors, and a desk for code that does not await."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from uuid import UUID, uuid4

import polars
import pytest

import moot
from moot import MootSync
from moot.desk import Moot
from moot.modules.coordinator.domain.dtos.research_dtos import ExpertResultItem
from moot.remote.desk import BlockingDesk
from moot.shared.infrastructure.settings import Settings
from tests.fakes.coordinator import OUTCOME, TECHNICAL, VERDICT

SYMBOL = "900001.DEMO"


@pytest.fixture
def desk(home, clock) -> Iterator[BlockingDesk[Moot]]:
    with MootSync(Settings(home=home), clock=clock) as desk:
        yield desk


def a_result() -> moot.ResearchResult:
    view = {"signal": "BULLISH", "confidence": 0.7, "evidence": []}
    heard = ExpertResultItem(expert_type=TECHNICAL, status="success", data=view)
    silent = ExpertResultItem(expert_type="financial_auditor", status="failed", error="no figures")
    return moot.ResearchResult(
        symbol=SYMBOL,
        overall_status="partial",
        expert_results=[heard, silent],
        verdict=VERDICT,
        debate_outcome=OUTCOME,
    )


class TestAResult:
    def test_has_the_shape_of_its_json(self) -> None:
        result = a_result()
        told = json.loads(result.model_dump_json())
        assert told["verdict"] == VERDICT
        assert told["debate_outcome"] == OUTCOME
        assert list(told["expert_results"]) == list(result.expert_results) == [TECHNICAL, "financial_auditor"]
        assert result.expert_results["technical_analyst"].data.signal == "BULLISH"
        assert told["expert_results"]["financial_auditor"] == {"status": "failed", "error": "no figures"}
        assert moot.ResearchResult.model_validate(told) == result

    def test_names_what_is_in_verdict_and_debate(self) -> None:
        result = a_result()
        assert result.verdict is not None
        assert result.debate_outcome is not None
        assert (result.verdict.action, result.verdict.confidence) == (
            VERDICT["action"],
            VERDICT["confidence"],
        )
        assert result.debate_outcome.bull_case.core_thesis == OUTCOME["bull_case"]["core_thesis"]
        assert [row.risk for row in result.debate_outcome.risk_matrix] == [
            row["risk"] for row in OUTCOME["risk_matrix"]
        ]
        with pytest.raises(AttributeError, match="there is no 'acton' here, only action"):
            _ = result.verdict.acton

    def test_is_a_table_of_experts(self) -> None:
        wanted = {
            "expert": ["technical_analyst", "financial_auditor"],
            "status": ["success", "failed"],
            "signal": ["BULLISH", None],
            "confidence": [0.7, None],
            "error": [None, "no figures"],
        }
        assert a_result().to_polars().to_dict(as_series=False) == wanted
        assert list(a_result().to_pandas()["expert"]) == wanted["expert"]


def test_every_type_and_error_is_exported() -> None:
    names = [name for name in vars(importlib.import_module("moot.remote.types")) if name[0].isupper()]
    assert {"AppError", "InvalidInput", "AllExpertsFailed", "SessionNotFound", "Verdict", "Debate"} <= {
        *names
    }
    assert all(getattr(moot, name).__name__ == name for name in names)
    with pytest.raises(AttributeError, match="module 'moot' has no attribute 'Nothing'"):
        _ = moot.Nothing


class TestADeskThatBlocks:
    def test_answers_with_what_the_other_does(self, desk) -> None:
        told: list[moot.SessionEvent] = []
        result = desk.research(SYMBOL, ["technical_analyst", "valuation_modeler"], watch=told.append)
        assert isinstance(result, moot.ResearchResult)
        session_id = UUID(result.session_id)
        assert desk.result(session_id) == result
        assert [event.seq for event in desk.events(session_id)] == sorted(event.seq for event in told)
        assert desk.verify(session_id).intact
        assert desk.session(result.session_id) == desk.session(session_id)
        with pytest.raises(moot.InvalidInput, match="session_id: 'nonsense' is not an id"):
            desk.session("nonsense")
        assert desk.export(session_id).startswith(b"PK"), "what only a desk of one's own can do"
        page = desk.sessions()
        assert page.to_polars().select("id", "symbol", "status").rows() == [
            (result.session_id, SYMBOL, "completed")
        ]

    def test_answers_queries_as_frames(self, desk) -> None:
        found = desk.query(
            "SELECT symbol, close FROM bars WHERE symbol = '900001.DEMO' ORDER BY trade_date LIMIT 3"
        )
        frame = found.to_polars()
        assert (frame.columns, frame.height) == (["symbol", "close"], 3)
        assert frame.schema["close"] == polars.Float64

    def test_raises_what_the_other_does_in_one_sentence(self, desk) -> None:
        with pytest.raises(moot.SessionNotFound) as missing:
            desk.session(uuid4())
        assert "\n" not in str(missing.value)
        with pytest.raises(moot.InvalidInput) as wrong:
            desk.research(SYMBOL, ["nobody"])
        assert "\n" not in str(wrong.value)
        with pytest.raises(moot.InvalidInput) as unknown:
            desk.query("SELECT nothing FROM bars")
        assert "\n" not in str(unknown.value)
        with pytest.raises(AttributeError):
            desk.nothing()

    def test_speaks_to_a_desk_elsewhere(self) -> None:
        with MootSync(base_url="http://127.0.0.1:9", timeout=5) as desk, pytest.raises(moot.Unavailable):
            desk.session(uuid4())


def test_without_pandas_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(moot.Unavailable, match="pip install pandas"):
        a_result().to_pandas()


PROGRAM = """
import asyncio, structlog
from moot import Moot, Settings

async def main():
    async with Moot(Settings(persistence=False)):
        a_secret_local = "canary"
        try:
            raise ValueError("it went wrong")
        except ValueError as e:
            structlog.get_logger().warning("node failed", error=str(e), exc_info=True)

asyncio.run(main())
"""


def test_logs_a_line_for_an_error_and_no_locals(home) -> None:
    """Structlog as it comes prints every local variable, where a program has not set it up."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"MOOT_HOME": str(home), "PATH": "", "MOOT_LOCALE": "en-US"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert ran.stdout == ""
    assert len(ran.stderr.splitlines()) == 1
    assert "it went wrong" in ran.stderr
    assert "canary" not in ran.stderr
