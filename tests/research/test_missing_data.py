"""An expert without data says so at once; what it can do without takes nothing else down."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from moot.modules.market_data.application.fresh_data import StaleData
from moot.modules.market_data.application.market_data import MarketData
from moot.modules.market_data.domain.facts import NEWS, Dataset
from moot.modules.market_data.domain.provider import Batch, NotOffered
from moot.modules.research.application.catalyst_detective import CatalystDetectiveService
from moot.modules.research.application.catalyst_detective.context import SEARCHES
from moot.modules.research.application.expert_service import Passage, Sources
from moot.modules.research.container import ResearchContainer
from moot.modules.research.domain.evidence import Opinion
from moot.modules.research.domain.rubric import Voice
from moot.shared.domain.symbol import Market
from tests.fakes.market_data import SYMBOL, FakeMarketDataProvider, a_company, an_observation
from tests.fakes.research import AS_OF, FakeMarketFacts
from tests.research.cases import RISING

M = TypeVar("M", bound=BaseModel)
NO_NEWS = "the stub has no announcements and news."


@dataclass
class WithoutNews(FakeMarketDataProvider):
    async def read(
        self, dataset: Dataset[M], subject: str, start: date = date.min, end: date = date.max
    ) -> Batch[M]:
        if dataset is NEWS:
            raise NotOffered(NO_NEWS)
        return await super().read(dataset, subject, start, end)


def a_source(kind: type[FakeMarketDataProvider] = FakeMarketDataProvider) -> FakeMarketDataProvider:
    """Everything an expert reads, up to 30 June 2026."""
    return kind(
        directory=[a_company()],
        bars=list(RISING.daily),
        valuations=list(RISING.history),
        reports=list(RISING.filed),
        observations=list(RISING.figures),
        items=list(RISING.published),
    )


async def run(expert: str, source: FakeMarketDataProvider, as_of: datetime = AS_OF) -> dict[str, Any]:
    service = ResearchContainer(MarketData({Market.DEMO: source})).service(expert)
    day = (as_of.date(),) if expert == "technical_analyst" else ()
    found = await service.run(SYMBOL, *day, as_of=as_of, locale="en-US")
    return found if isinstance(found, dict) else found.model_dump(mode="json")


@pytest.mark.parametrize(
    ("expert", "told"),
    [
        ("technical_analyst", r"daily bars of 900001.DEMO are of 2026-06-30, \d+ sessions before"),
        ("valuation_modeler", r"daily valuations of 900001.DEMO are of 2026-06-30, \d+ sessions before"),
        ("financial_auditor", r"financial reports of 900001.DEMO are of 2026-03-31, 671 days before"),
        ("macro_intelligence", r"macro figures of DEMO are of 2026-05-31, 610 days before"),
    ],
)
async def test_an_expert_whose_data_end_19_months_before_the_question_has_no_data(
    expert: str, told: str
) -> None:
    with pytest.raises(StaleData, match=told):
        await run(expert, a_source(), datetime(2028, 1, 31, 10, tzinfo=UTC))


@pytest.mark.parametrize(
    ("expert", "used"),
    [
        ("technical_analyst", {"bars": "2026-06-30"}),
        ("valuation_modeler", {"valuations": "2026-06-30", "reports": "2026-03-31", "macro": "2026-05-31"}),
        ("financial_auditor", {"reports": "2026-03-31"}),
        ("macro_intelligence", {"macro": "2026-05-31", "news": "2026-06-27"}),
        ("catalyst_detective", {"news": "2026-06-27", "bars": "2026-06-30", "reports": "2026-03-31"}),
    ],
)
async def test_a_result_tells_how_new_the_data_were(expert: str, used: dict[str, str]) -> None:
    found = await run(expert, a_source())
    assert found["data_until"] == used
    assert found["warnings"] == []


async def test_macro_runs_without_policy_news_and_says_so() -> None:
    found = await run("macro_intelligence", a_source(WithoutNews))
    assert found["macro_environment"] == "Favorable (有利)"
    assert found["macro_indicators"]["policy_events"] == []
    assert found["warnings"] == [NO_NEWS]
    assert found["data_until"] == {"macro": "2026-05-31"}


async def test_an_old_series_of_macro_figures_is_told_with_the_result() -> None:
    source = a_source()
    source.observations.append(
        an_observation(date(2026, 1, 31), AS_OF - timedelta(days=120), series="gdp_yoy")
    )
    found = await run("macro_intelligence", source)
    assert found["warnings"] == ["Left out as too old: macro figures (GDP on the year), of 2026-01-31."]


async def test_the_detective_without_news_goes_by_what_was_disclosed_and_says_so() -> None:
    source = a_source(WithoutNews)
    source.bars.clear()
    found = await run("catalyst_detective", source)
    assert found["result"]["catalyst_assessment"] == "Neutral (中性)"
    assert found["result"]["confidence_score"] < 0.1
    assert [claim["kind"] for claim in found["claims"]] == [
        "catalyst.unlock.none",
        "catalyst.results",
        "catalyst.report_due.ahead",
    ]
    assert found["warnings"] == [NO_NEWS]


async def test_the_detective_without_anything_says_why() -> None:
    source = a_source(WithoutNews)
    source.reports.clear()
    with pytest.raises(NotOffered, match=NO_NEWS):
        await run("catalyst_detective", source)


async def test_the_detective_without_news_goes_by_the_web() -> None:
    page = Passage(text="A page", url="demo://page", source="web", published=None, available_at=AS_OF)

    class Silent(FakeMarketFacts):
        async def news(self, *_asked: object, **_more: object) -> list[Any]:
            raise NotOffered(NO_NEWS)

    async def web(*_asked: object) -> dict[Any, list[Passage]]:
        return {search: [page] for search in SEARCHES}

    async def analyst(service: CatalystDetectiveService, context: Any, evidence: Any, case: Any) -> Any:
        say = Voice(service.texts, context, case.locale)
        return Opinion(service.conclude(context, service.mark(context, say), say), "", "", "llm")

    service = CatalystDetectiveService(Sources(Silent(), lambda bars: {}, web, analyst))
    found = await service.run(SYMBOL, as_of=AS_OF, locale="en-US")
    assert found.catalyst_context.all_source_urls == ["demo://page"]
    assert found.warnings == [NO_NEWS]
