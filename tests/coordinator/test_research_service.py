"""`ResearchOrchestrationService`: what it refuses, what it hands on, what it records."""

import asyncio
from datetime import UTC, date, datetime
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from moot.modules.coordinator.application.research_orchestration_service import ResearchOrchestrationService
from moot.modules.coordinator.domain.dtos.research_dtos import (
    ExpertResultItem,
    ResearchRequest,
    ResearchResult,
)
from moot.modules.coordinator.domain.exceptions import AllExpertsFailed
from moot.modules.coordinator.domain.model.enums import ExpertType
from moot.modules.coordinator.domain.ports.research_orchestration import IResearchOrchestrationPort
from moot.modules.coordinator.infrastructure.orchestration.graph_builder import NodeLayers
from moot.modules.coordinator.infrastructure.orchestration.langgraph_orchestrator import (
    LangGraphResearchOrchestrator,
)
from moot.shared.domain.errors import AppError, InvalidInput
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.symbol import Symbol
from moot.shared.infrastructure.execution_context import current_execution_ctx
from tests.fakes.clock import FixedClock
from tests.fakes.coordinator import (
    MACRO,
    TECHNICAL,
    FakeDebate,
    FakeJudge,
    FakeResearch,
    FakeSessions,
)

NOW = datetime(2026, 6, 30, 10, 0, tzinfo=UTC)
ALL = [expert.value for expert in ExpertType]


class SpyEngine(IResearchOrchestrationPort):
    """Succeeds for everyone, and remembers what it was asked in which context."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.requests: list[ResearchRequest] = []
        self.contexts = []
        self._error = error

    async def run(self, request: ResearchRequest) -> ResearchResult:
        self.requests.append(request)
        self.contexts.append(current_execution_ctx.get())
        if self._error:
            raise self._error
        items = [ExpertResultItem(expert_type=e, status="success", data={}) for e in request.experts]
        return ResearchResult(symbol=request.symbol, overall_status="completed", expert_results=items)


def service(engine: IResearchOrchestrationPort, **more) -> ResearchOrchestrationService:
    return ResearchOrchestrationService(engine, clock=FixedClock(NOW), **more)


def body(**changes):
    return {"symbol": "000001.SZ", "experts": ["technical_analyst"], **changes}


async def refusal(raw) -> InvalidInput:
    """What the service says to `raw`; the engine must not have been called."""
    engine = SpyEngine()
    with pytest.raises(InvalidInput) as caught:
        await service(engine).execute(raw)
    assert engine.requests == []
    return caught.value


BAD = {
    "no symbol": ({"experts": ALL}, "symbol", "missing"),
    "None for a symbol": (body(symbol=None), "symbol", "string_type"),
    "empty symbol": (body(symbol=""), "symbol", "blank"),
    "blank symbol": (body(symbol="  "), "symbol", "blank"),
    "symbol of a wrong type": (body(symbol=600519), "symbol", "string_type"),
    "no experts": ({"symbol": "000001.SZ"}, "experts", "missing"),
    "empty experts": (body(experts=[]), "experts", "choose_some"),
    "unknown expert": (body(experts=["technical_analyst", "unknown_expert"]), "experts.1", "enum"),
    "experts as text": (body(experts="technical_analyst"), "experts", "list_type"),
    "unknown field": (body(model="gpt"), "body", "unknown_field"),
    "options of an unselected expert": (
        body(options={"financial_auditor": {"limit": 5}}),
        "options",
        "not_selected",
    ),
    "unknown option": (
        body(options={"technical_analyst": {"days": 5}}),
        "options.technical_analyst",
        "unknown_field",
    ),
    "malformed analysis date": (
        body(options={"technical_analyst": {"analysis_date": "13.02.2026"}}),
        "options.technical_analyst.analysis_date",
        "date_malformed",
    ),
    "analysis date as a number": (
        body(options={"technical_analyst": {"analysis_date": 20260213}}),
        "options.technical_analyst.analysis_date",
        "date_malformed",
    ),
    "analysis date after as_of": (
        body(as_of="2026-03-31", options={"technical_analyst": {"analysis_date": "2026-04-01"}}),
        "options.technical_analyst.analysis_date",
        "after_as_of",
    ),
    "limit too large": (
        body(experts=["financial_auditor"], options={"financial_auditor": {"limit": 21}}),
        "options.financial_auditor.limit",
        "less_than_equal",
    ),
    "limit too small": (
        body(experts=["financial_auditor"], options={"financial_auditor": {"limit": 0}}),
        "options.financial_auditor.limit",
        "greater_than_equal",
    ),
    "limit of a wrong type": (
        body(experts=["financial_auditor"], options={"financial_auditor": {"limit": "5"}}),
        "options.financial_auditor.limit",
        "int_type",
    ),
    "skip_debate as text": (body(skip_debate="yes"), "skip_debate", "bool_type"),
    "malformed as_of": (body(as_of="yesterday"), "as_of", "moment_malformed"),
    "as_of without a zone": (body(as_of="2026-03-31T10:00:00"), "as_of", "moment_malformed"),
    "as_of in the future": (body(as_of="2026-07-01"), "as_of", "in_future"),
    "as_of before there were exchanges": (body(as_of="0001-01-01"), "as_of", "too_early"),
    "unknown locale": (body(locale="fr-FR"), "locale", "literal_error"),
    "not an object": (["000001.SZ"], "body", "model_type"),
}


@pytest.mark.accepts("A0-27", "A1S-53", "A1S-54", "A1S-55", "A1S-67", "A1N-28", "A1N-03", "A0-16")
@pytest.mark.parametrize(("raw", "field", "problem"), BAD.values(), ids=BAD)
async def test_a_bad_request_is_refused_by_field_before_anything_starts(raw, field, problem):
    error = await refusal(raw)
    assert [(e["field"], e["problem"]) for e in error.details["errors"]] == [(field, problem)]
    for locale in LOCALES:
        assert error.in_locale(locale).startswith(field)


@pytest.mark.accepts("A1S-55", "A1S-04")
async def test_an_unknown_expert_is_told_which_ones_exist_in_both_languages():
    error = await refusal(body(experts=["unknown_expert"]))
    names = {"en-US": ", ".join(ALL), "zh-CN": "、".join(ALL)}
    assert error.in_locale("en-US") == f"experts.0: 'unknown_expert' is not known. Allowed: {names['en-US']}."
    assert error.in_locale("zh-CN") == f"experts.0：'unknown_expert' 不是可识别的值。可选：{names['zh-CN']}。"
    assert error.details["errors"][0]["allowed"] == ALL


async def test_everything_wrong_is_said_at_once():
    error = await refusal({"symbol": "", "experts": []})
    assert [e["field"] for e in error.details["errors"]] == ["symbol", "experts"]
    assert (
        str(error) == f"symbol: must not be blank. experts: choose at least one. Allowed: {', '.join(ALL)}."
    )


@pytest.mark.accepts("A1S-53")
async def test_a_request_object_is_checked_like_any_other():
    error = await refusal(ResearchRequest.model_construct(symbol=None, experts=[TECHNICAL]))
    assert error.details["errors"][0]["field"] == "symbol"


async def test_a_symbol_no_market_writes_is_unknown():
    error = await refusal(body(symbol="../etc/passwd"))
    assert (error.code, error.details["field"]) == ("SYMBOL_UNKNOWN", "symbol")


class OnlyDemo:
    async def symbol(self, text):
        return Symbol.parse(text)

    async def company(self, symbol, *, as_of):
        if not symbol.synthetic:
            raise InvalidInput("nobody lists it", code="SYMBOL_UNKNOWN", field="symbol")


async def test_a_symbol_nobody_knows_opens_no_session():
    engine, sessions = SpyEngine(), FakeSessions()
    with pytest.raises(InvalidInput):
        await service(engine, directory=OnlyDemo(), repository=sessions).execute(body())
    assert engine.requests == []
    assert sessions.sessions == {}


@pytest.mark.accepts("A1S-56")
def test_there_are_five_experts_with_the_documented_values():
    assert {expert.name: expert.value for expert in ExpertType} == {
        "TECHNICAL_ANALYST": "technical_analyst",
        "FINANCIAL_AUDITOR": "financial_auditor",
        "VALUATION_MODELER": "valuation_modeler",
        "MACRO_INTELLIGENCE": "macro_intelligence",
        "CATALYST_DETECTIVE": "catalyst_detective",
    }


@pytest.mark.accepts("A1S-06", "A1S-57", "A0-18")
async def test_a_full_request_reaches_the_engine_parsed():
    engine = SpyEngine()
    await service(engine).execute(
        {
            "symbol": " 000001.sz ",
            "experts": ["technical_analyst", "macro_intelligence", "technical_analyst"],
            "options": {"technical_analyst": {"analysis_date": "2026-02-13"}},
        }
    )
    (request,) = engine.requests
    assert request.symbol == "000001.SZ"
    assert request.experts == [ExpertType.TECHNICAL_ANALYST, ExpertType.MACRO_INTELLIGENCE]
    assert request.options == {"technical_analyst": {"analysis_date": "2026-02-13"}}
    assert (request.skip_debate, request.locale, request.trigger_source) == (False, "zh-CN", "api")


@pytest.mark.parametrize(
    ("asked", "moment"),
    [
        (None, NOW),
        ("2026-06-30", NOW),  # today: what is known by now
        ("2026-03-31", datetime(2026, 3, 31, 15, 59, 59, 999999, tzinfo=UTC)),  # midnight in Shanghai
        (date(2026, 3, 31), datetime(2026, 3, 31, 15, 59, 59, 999999, tzinfo=UTC)),
        ("2026-03-31T15:00:00+08:00", datetime(2026, 3, 31, 7, 0, tzinfo=UTC)),
    ],
)
async def test_as_of_freezes_the_clock_of_the_session(asked, moment):
    engine = SpyEngine()
    result = await service(engine).execute(body(as_of=asked))
    assert result.as_of == engine.requests[0].as_of == engine.contexts[0].as_of == moment


@pytest.mark.accepts("A2-08", "A2-07")
async def test_the_execution_context_is_set_for_the_run_and_for_nothing_else():
    engine, sessions = SpyEngine(), FakeSessions()
    result = await service(engine, repository=sessions).execute(body(locale="en-US"))
    (context,) = engine.contexts
    assert context.session_id == result.session_id == str(sessions.only_session.id)
    assert (context.locale, context.workspace, context.experts) == (
        "en-US",
        "default",
        ("technical_analyst",),
    )
    assert current_execution_ctx.get() is None


@pytest.mark.accepts("A2-35")
@pytest.mark.parametrize("error", [RuntimeError("engine broke"), asyncio.CancelledError()])
async def test_the_execution_context_is_reset_after_a_crash_too(error):
    with pytest.raises(type(error)):
        await service(SpyEngine(error), repository=FakeSessions()).execute(body())
    assert current_execution_ctx.get() is None


@pytest.mark.accepts("A1S-11", "A1S-10", "A2-17", "A2-27")
async def test_a_session_is_recorded_from_its_opening_to_its_end():
    sessions = FakeSessions()
    engine = LangGraphResearchOrchestrator(
        FakeResearch({MACRO: AppError("no data")}),
        FakeDebate(),
        FakeJudge(),
        layers=NodeLayers(repository=sessions),
    )
    result = await service(engine, repository=sessions).execute(
        body(experts=["technical_analyst", "macro_intelligence"])
    )
    session = sessions.only_session
    assert str(UUID(result.session_id)) == str(session.id)
    assert (session.status, session.verdict_status, session.reason) == ("partial", "judged", None)
    assert (session.symbol, session.trigger_source, session.workspace_id) == ("000001.SZ", "api", "default")
    assert (session.created_at, session.completed_at, session.duration_ms) == (NOW, NOW, 0)
    assert (result.retry_count, session.retry_count, session.audit_gaps) == (0, 0, 0)
    assert len(sessions.nodes) == 4


@pytest.mark.accepts("A2-26")
@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (RuntimeError("engine broke"), "failed", "运行因意外错误结束：engine broke"),
        (asyncio.CancelledError(), "cancelled", "运行已取消。"),
    ],
)
async def test_a_run_that_breaks_off_is_closed_with_the_reason(error, status, reason):
    sessions = FakeSessions()
    with pytest.raises(type(error)):
        await service(SpyEngine(error), repository=sessions).execute(body())
    assert (sessions.only_session.status, sessions.only_session.reason) == (status, reason)
    assert sessions.only_session.completed_at == NOW


@pytest.mark.accepts("A1S-23", "A0-16", "A1S-05")
async def test_all_failed_is_an_error_that_carries_every_experts_error_and_the_session():
    sessions = FakeSessions()
    engine = LangGraphResearchOrchestrator(FakeResearch({TECHNICAL: AppError("no bars")}))
    with pytest.raises(AllExpertsFailed, match="Technical analyst: no bars") as caught:
        await service(engine, repository=sessions).execute(body())
    assert caught.value.details == {
        "overall_status": "failed",
        "expert_results": {"technical_analyst": {"status": "failed", "error": "no bars"}},
        "session_id": str(sessions.only_session.id),
    }
    assert sessions.only_session.status == "failed"


@pytest.mark.accepts("A2-34")
async def test_a_session_that_cannot_be_stored_is_researched_all_the_same():
    with capture_logs() as logs:
        result = await service(SpyEngine(), repository=FakeSessions(broken=True)).execute(body())
    assert result.overall_status == "completed"
    assert UUID(result.session_id)
    assert result.audit_gaps == 1
    assert [log["log_level"] for log in logs if log["event"] == "session not stored"] == ["error", "error"]


@pytest.mark.accepts("A1N-08")
async def test_without_persistence_there_is_no_session_id():
    engine = SpyEngine()
    result = await service(engine).execute(body())
    assert (result.session_id, engine.contexts[0].session_id) == ("", "")


async def test_a_run_made_from_synthetic_data_says_so_in_its_language():
    real = await service(SpyEngine()).execute(body(locale="en-US"))
    demo = await service(SpyEngine()).execute(body(symbol="900001.DEMO", locale="en-US"))
    assert real.notices == ["This is research, not investment advice."]
    assert demo.notices[0].startswith("Synthetic data")


@pytest.mark.accepts("A1N-05", "A1N-29", "A1N-30", "A0-22", "A0-19", "A1S-58")
def test_the_answer_as_others_see_it():
    result = ResearchResult(
        symbol="000001.SZ",
        overall_status="partial",
        expert_results=[
            ExpertResultItem(expert_type=TECHNICAL, status="success", data={"signal": "BULLISH"}),
            ExpertResultItem(expert_type=MACRO, status="failed", error="no data"),
        ],
    )
    seen = result.model_dump(mode="json")
    assert seen["expert_results"] == {
        "technical_analyst": {"status": "success", "data": {"signal": "BULLISH"}},
        "macro_intelligence": {"status": "failed", "error": "no data"},
    }
    documented = ("symbol", "overall_status", "debate_outcome", "verdict", "session_id", "retry_count")
    assert [seen[name] for name in documented] == ["000001.SZ", "partial", None, None, "", 0]
