"""What every expert does alike: it opens a case, has its analyst judge what it gathered, and reports.

An expert is a folder of its name beside this file: a service, the snapshot it takes, a rubric, prompts and texts.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from moot.modules.research.application.remit import Remit
from moot.modules.research.domain.analyst import Analyst, ExpertResult
from moot.modules.research.domain.evidence import Snapshot
from moot.modules.research.domain.facts import Case, MarketFacts
from moot.modules.research.domain.indicators import IndicatorCalculator
from moot.modules.research.domain.rubric import Rubric
from moot.modules.research.domain.web_context import (
    Reported,
    Web,
    WebSearch,
    beyond,
    told_with,
    web_evidence,
)
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Locale
from moot.shared.domain.symbol import Symbol

S = TypeVar("S", bound=Snapshot)
R = TypeVar("R", bound=ExpertResult)
W = TypeVar("W", bound=Reported)


@dataclass(frozen=True)
class Sources:
    """What an expert may draw on; without a `web`, nothing is searched."""

    facts: MarketFacts
    indicators: IndicatorCalculator
    web: Web | None = None


class ExpertService(Generic[S, R]):
    """Without another `analyst` the rubric judges. `run` takes its own arguments, the moment and the language."""

    expert: ClassVar[ExpertType]
    rubric: ClassVar[Rubric[Any, Any]]
    remit: ClassVar[Remit[Any, Any]]
    searches: ClassVar[Sequence[WebSearch]] = ()
    run: Callable[..., Awaitable[Any]]

    def __init__(self, sources: Sources, analyst: Analyst[S, R] | None = None) -> None:
        self._sources, self._facts = sources, sources.facts
        self._analyst: Analyst[S, R] = analyst or self.rubric

    async def _open(self, text: str, as_of: datetime, locale: Locale, *, field: str = "symbol") -> Case:
        if not text.strip():
            raise InvalidInput(self.rubric.texts("symbol_blank", field=field), field=field)
        symbol = Symbol.parse(text)
        company = await self._facts.company(symbol, as_of=as_of)
        return Case(symbol, company, as_of, symbol.local_date(as_of), locale)

    def _refusal(self, case: Case, why: str, *, field: str = "symbol", **values: Any) -> InvalidInput:
        said = self.rubric.texts(why, symbol=case.symbol.text, today=case.today, **values)
        return InvalidInput(said, field=field)

    async def _search(self, case: Case, known: W) -> tuple[W, list[Evidence]]:
        """What is known, with what the web adds to it."""
        web = self._sources.web
        if web is None:
            return known, []
        queries = {search: search.query(self.rubric.texts, case) for search in self.searches}
        found = beyond(known, await web.find(queries, case.symbol, as_of=case.as_of))
        return told_with(known, found, case.locale), web_evidence(self.expert.prefix, found)

    async def _report(self, case: Case, snapshot: S, evidence: Sequence[Evidence]) -> dict[str, Any]:
        """The documented fields of the result, and beside them what it rests on."""
        opinion = await self._analyst.analyse(snapshot, evidence, case)
        return {
            **opinion.result.model_dump(mode="json"),
            "input": opinion.input,
            "output": opinion.output,
            f"{self.expert.prefix}_indicators": snapshot.model_dump(mode="json"),
            "evidence": [item.model_dump(mode="json") for item in evidence],
            "engine": opinion.engine,
            "grounding": opinion.grounding and opinion.grounding.model_dump(mode="json"),
            "warnings": list(opinion.warnings),
        }
