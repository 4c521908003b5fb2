"""What was used adds up from the record, and what will be used is guessed from it."""

from datetime import date, timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from moot.modules.llm_platform.application.call_logs import By, Estimate, UsageService, Used
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.presentation.routes import router
from moot.shared.domain.errors import Unavailable
from moot.shared.infrastructure.database import Database
from moot.shared.presentation.errors import install_error_handlers
from tests.fakes.clock import FixedClock
from tests.llm_platform.call_rows import NOON, a_failed_call, a_model_call, journal_of, keep

A_DAY = timedelta(days=1)
SMALL = LLMConfig(alias="small", base_url="http://127.0.0.1/v1", model_name="small-1")
PRICED = SMALL.model_copy(update={"price_in": 2.0, "price_out": 10.0})


@pytest.fixture
def service(database: Database) -> UsageService:
    return UsageService(journal_of(database).usage, FixedClock(NOON), "CNY")


async def names(service: UsageService, by: By, **wanted: Any) -> list[str]:
    report = await service.usage(by, wanted.pop("workspace", "default"), **wanted)
    return [line.name for line in report.lines]


class TestUsage:
    async def test_adds_up_calls_tokens_and_cost(self, database: Database, service: UsageService) -> None:
        await keep(
            database,
            a_model_call(latency_ms=1000),
            a_model_call(prompt_tokens=10, completion_tokens=5, total_tokens=20, cost=0.25, latency_ms=2000),
            a_failed_call(),
        )
        report = await service.usage("model", "default")

        assert (report.by, report.currency, report.since) == ("model", "CNY", None)
        (line,) = report.lines
        assert line.model_dump() == {
            "name": "small-1",
            "calls": 3,
            "failed": 1,
            "prompt_tokens": 1010,
            "completion_tokens": 205,
            "total_tokens": 1220,
            "cost": 0.75,
            "cost_unknown": 0,
            "mean_latency_ms": 1500.0,
        }

    async def test_says_of_how_many_calls_the_cost_is_not_known(
        self, database: Database, service: UsageService
    ) -> None:
        await keep(
            database,
            a_model_call(cost=0.5),
            a_model_call(cost=None),
            a_model_call(cost=None, status="unknown", latency_ms=None),
            a_model_call(cost=None, status="started", latency_ms=None),
            a_failed_call(),
        )
        (line,) = (await service.usage("model", "default")).lines

        assert (line.cost, line.cost_unknown, line.calls) == (0.5, 3, 5)

    async def test_counts_what_the_vendor_said_when_it_did_not_say_the_total(
        self, database: Database, service: UsageService
    ) -> None:
        await keep(database, a_model_call(total_tokens=None), a_model_call(completion_tokens=None))

        (line,) = (await service.usage("model", "default")).lines
        assert (line.prompt_tokens, line.completion_tokens, line.total_tokens) == (2000, 200, 2400)

    async def test_of_calls_that_all_failed_has_no_latency(
        self, database: Database, service: UsageService
    ) -> None:
        await keep(database, a_failed_call())

        (line,) = (await service.usage("model", "default")).lines
        assert (line.mean_latency_ms, line.cost, line.total_tokens) == (None, 0.0, 0)

    async def test_leaves_out_answers_from_the_record(
        self, database: Database, service: UsageService
    ) -> None:
        await keep(database, a_model_call(), a_model_call(origin="record"), a_model_call(origin="cache"))

        assert (await service.usage("model", "default")).total.calls == 1

    async def test_by_model_or_agent_puts_the_most_tokens_first(
        self, database: Database, service: UsageService
    ) -> None:
        await keep(
            database,
            a_model_call(model_name="a", caller_agent="bull_advocate", total_tokens=10),
            a_model_call(model_name="c", caller_agent="judge", total_tokens=30),
            a_model_call(model_name="b", caller_agent=None, caller_module="intake", total_tokens=30),
        )
        assert await names(service, "model") == ["b", "c", "a"]
        assert await names(service, "agent") == ["intake", "judge", "bull_advocate"]

    async def test_by_day_goes_by_utc_and_puts_the_newest_first(
        self, database: Database, service: UsageService
    ) -> None:
        midnight = NOON.replace(hour=0)
        await keep(
            database,
            a_model_call(created_at=midnight),
            a_model_call(created_at=midnight + A_DAY - timedelta(microseconds=1)),
            a_model_call(created_at=midnight - timedelta(microseconds=1)),
        )
        report = await service.usage("day", "default")

        assert [(line.name, line.calls) for line in report.lines] == [("2026-06-30", 2), ("2026-06-29", 1)]

    async def test_by_day_goes_by_utc_on_a_server_that_lives_elsewhere(
        self, postgres_database: Database
    ) -> None:
        async with postgres_database.session() as db:
            await db.execute(text("SET TIME ZONE 'Asia/Shanghai'"))
            await db.commit()
        await keep(postgres_database, a_model_call(created_at=NOON.replace(hour=20)))
        (line,) = await journal_of(postgres_database).usage("day", "default", None)

        assert line.name == "2026-06-30"

    async def test_starts_with_the_day_asked_for(self, database: Database, service: UsageService) -> None:
        midnight = NOON.replace(hour=0)
        await keep(
            database,
            a_model_call(model_name="on the day", created_at=midnight),
            a_model_call(model_name="before", created_at=midnight - timedelta(microseconds=1)),
        )
        assert await names(service, "model", since=date(2026, 6, 30)) == ["on the day"]

    async def test_of_one_workspace_does_not_show_another(
        self, database: Database, service: UsageService
    ) -> None:
        await keep(
            database,
            a_model_call(workspace_id="north", model_name="a"),
            a_model_call(workspace_id="south", model_name="b"),
        )
        assert await names(service, "model", workspace="north") == ["a"]

    async def test_has_a_total(self, database: Database, service: UsageService) -> None:
        await keep(
            database,
            *(a_model_call(model_name=name, cost=0.1) for name in "abc"),
            a_model_call(model_name="d", cost=None),
            a_failed_call(model_name="d"),
        )
        assert (await service.usage("model", "default")).total == Used(
            calls=5,
            failed=1,
            prompt_tokens=4000,
            completion_tokens=800,
            total_tokens=4800,
            cost=0.3,
            cost_unknown=1,
        )

    async def test_of_nothing_is_empty(self, service: UsageService) -> None:
        report = await service.usage("day", "default")
        assert (report.lines, report.total.calls, report.total.cost) == ([], 0, 0.0)

    async def test_is_unknown_where_nothing_is_stored(self, clock: FixedClock) -> None:
        with pytest.raises(Unavailable) as refused:
            await UsageService(None, clock, "CNY").usage("model", "default")
        assert refused.value.code == "PERSISTENCE_OFF"
        assert "MOOT_PERSISTENCE" in refused.value.in_locale("zh-CN")


async def the_desk(service: UsageService, **query: Any) -> httpx.Response:
    app = FastAPI()
    app.include_router(router, prefix="/api/v1")
    app.state.llm_platform = SimpleNamespace(usage_service=lambda: service)
    install_error_handlers(app)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://desk") as client:
        return await client.get("/api/v1/llm-platform/usage", params=query)


class TestOverHttp:
    async def test_usage_is_the_report(self, database: Database, service: UsageService) -> None:
        await keep(database, a_model_call(), a_model_call(created_at=NOON - 60 * A_DAY, model_name="old"))
        answer = await the_desk(service, by="model", since="2026-06-01")

        assert answer.status_code == 200
        body = answer.json()
        assert (body["by"], body["since"], body["currency"]) == ("model", "2026-06-01", "CNY")
        assert [(line["name"], line["cost"]) for line in body["lines"]] == [("small-1", 0.5)]
        assert body["total"]["total_tokens"] == 1200

    async def test_an_unknown_grouping_is_refused_with_those_that_exist(self, service: UsageService) -> None:
        answer = await the_desk(service, by="mood")

        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
        assert answer.json()["details"]["errors"][0]["allowed"] == ["model", "agent", "day"]

    async def test_a_day_that_is_none_is_refused(self, service: UsageService) -> None:
        answer = await the_desk(service, since="yesterday")

        assert (answer.status_code, answer.json()["details"]["errors"][0]["field"]) == (400, "since")


class TestAnEstimate:
    async def test_of_a_model_never_asked_is_a_documented_guess(self, service: UsageService) -> None:
        guess = await service.estimate(["a", "b", "judge"], PRICED, [["a", "b"], ["judge"]])

        assert guess == Estimate(
            calls=3,
            tokens=3 * (3_500 + 1_200),
            cost=3 * (3_500 * 2.0 + 1_200 * 10.0) / 1_000_000,
            currency="CNY",
            seconds=40.0,
            measured=False,
        )

    async def test_goes_by_the_calls_of_each_agent(self, database: Database, service: UsageService) -> None:
        await keep(
            database,
            a_model_call(caller_agent="a", prompt_tokens=100, completion_tokens=10, latency_ms=1000),
            a_model_call(caller_agent="a", prompt_tokens=300, completion_tokens=30, latency_ms=3000),
            a_model_call(caller_agent="b", prompt_tokens=1000, completion_tokens=500, latency_ms=7000),
            a_model_call(caller_agent="c", prompt_tokens=50, completion_tokens=5, latency_ms=500),
        )
        guess = await service.estimate(["a", "b", "c"], PRICED, [["a", "b"], ["c"]])

        assert (guess.calls, guess.tokens, guess.seconds, guess.measured) == (3, 220 + 1500 + 55, 7.5, True)
        assert guess.cost == pytest.approx((1250 * 2.0 + 525 * 10.0) / 1_000_000)

    async def test_takes_an_agent_never_heard_to_be_like_the_others(
        self, database: Database, service: UsageService
    ) -> None:
        await keep(
            database,
            a_model_call(caller_agent="a", prompt_tokens=100, completion_tokens=0, latency_ms=1000),
            a_model_call(caller_agent="a", prompt_tokens=100, completion_tokens=0, latency_ms=1000),
            a_model_call(caller_agent="b", prompt_tokens=400, completion_tokens=30, latency_ms=4000),
            a_model_call(caller_agent="trial", prompt_tokens=1, completion_tokens=1, latency_ms=1),
        )
        guess = await service.estimate(["a", "b", "newcomer"], SMALL, [["newcomer"]])

        whole = 100 + 430 + (200 + 10)
        assert (guess.tokens, guess.seconds, guess.measured, guess.cost) == (whole, 2.0, True, None)

    @pytest.mark.parametrize(
        "change",
        [
            {"created_at": NOON - 31 * A_DAY},
            {"model_name": "large-1"},
            {"workspace_id": "another"},
            {"status": "failed"},
            {"origin": "record"},
            {"prompt_tokens": None},
        ],
        ids=lambda change: next(iter(change)),
    )
    async def test_ignores_calls_that_say_nothing_about_the_next(
        self, database: Database, service: UsageService, change: dict[str, Any]
    ) -> None:
        await keep(database, a_model_call(**change))

        assert not (await service.estimate(["technical_analyst"], SMALL, [])).measured

    async def test_needs_no_store(self, clock: FixedClock) -> None:
        guess = await UsageService(None, clock, "CNY").estimate(["a"], SMALL, [["a"], []])
        assert (guess.tokens, guess.seconds, guess.cost, guess.measured) == (4_700, 20.0, None, False)
