"""What every expert does alike: it opens a case, has what it gathered judged by rule or by a model, and reports.

An expert is a folder of its name beside this file: a service, the snapshot it takes, rules, prompts and texts.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationError, create_model

from moot.modules.research.domain.claims import make_claims
from moot.modules.research.domain.evidence import (
    DimensionAnalysis,
    ExpertResult,
    Opinion,
    Snapshot,
    evidence_of,
    write_evidence,
)
from moot.modules.research.domain.facts import SAY, Case, Cited, MarketFacts, name_industry
from moot.modules.research.domain.rubric import Rule, Scorecard, Voice, load_rules
from moot.shared.domain.claims import Claim
from moot.shared.domain.errors import AppError, InvalidInput, Unavailable
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import DailyBar
from moot.shared.domain.messages import LOCALES, Catalogue, Locale, Message
from moot.shared.domain.symbol import Market, Symbol
from moot.shared.domain.validation import refuse

S = TypeVar("S", bound=Snapshot)
R = TypeVar("R", bound=ExpertResult)
W = TypeVar("W", bound="Reported")
T = TypeVar("T")
Answer = dict[str, Any]


def judge_each(names: type[StrEnum], result: type[R]) -> type[R]:
    """`result` with one judgement on each of `names`, put into their order; its schema spells the names out."""
    judgement = create_model(f"{names.__name__}Analysis", __base__=DimensionAnalysis, dimension=(names, ...))
    judgements = Annotated[
        list[judgement],
        Field(min_length=len(names), max_length=len(names)),
        AfterValidator(partial(_in_order, list(names))),
    ]
    return create_model(result.__name__, __base__=result, dimension_analyses=(judgements, ...))


def _in_order(names: list[str], judged: list[DimensionAnalysis]) -> list[DimensionAnalysis]:
    found = [str(one.dimension) for one in judged]
    if len(set(found)) < len(names):
        raise refuse("out_of_range", got=found, allowed=names)
    return sorted(judged, key=lambda one: names.index(one.dimension))


def refuse_answer(kind: str, *where: str, got: Any, **context: Any) -> ValidationError:
    """Reads as if the model of the answer had found it."""
    error = refuse(kind, got=got, **context)
    return ValidationError.from_exception_data("answer", [{"type": error, "loc": where, "input": got}])


Freshness = Literal["oneWeek", "oneMonth"]
HOME_LANGUAGES: Mapping[Market, Locale] = {Market.CN: "zh-CN", Market.DEMO: "zh-CN"}
"""Where the news is written in one language, that is the one to ask in; elsewhere it is the reader's."""

WEB_ID = ".web."


class Reported(Snapshot):
    """What was reported about a company, as texts, with the addresses it was read at."""

    stock_name: str
    third_code: str
    industry: str
    current_date: date
    all_source_urls: list[str]


@dataclass(frozen=True)
class WebSearch:
    """What one dimension asks the web: `query.<dimension>` in the expert's catalogue.

    `context` is the field of the snapshot that tells the answer.
    """

    dimension: str
    context: str
    count: int
    freshness: Freshness

    def query(self, texts: Catalogue, case: Case) -> str:
        language = HOME_LANGUAGES.get(case.symbol.market, case.locale)
        said = texts(
            f"query.{self.dimension}",
            market=SAY(f"web.market.{case.symbol.market}"),
            company=case.company.name_in(language),
            industry=case.company.industry_in(language),
            year=case.today.year,
        )
        return " ".join(said.in_locale(language).split())


class Passage(Cited):
    """What a page says, on one line and cut to what fits. `published` None: nobody said when."""

    text: str
    published: date | None


Findings = Mapping[WebSearch, Sequence[Passage]]


FindOnWeb = Callable[[Mapping[WebSearch, str], Symbol, datetime], Awaitable[Findings]]
"""The web as research sees it: nothing that was published after that moment; a page without a date is seen in the
present only. The made-up market and the real one never quote each other. A search that fails has found nothing.
"""


Analyst = Callable[["ExpertService[Any, Any]", Any, Sequence[Evidence], Case], Awaitable[Opinion[Any]]]
"""Judges an expert's snapshot by the evidence alone: no number and no event that was not given."""


@dataclass(frozen=True)
class Sources:
    """What an expert may draw on; without a `web` nothing is searched, without an `analyst` rules judge.

    `indicators` are computed from at least 30 bars, oldest first.
    """

    facts: MarketFacts
    indicators: Callable[[Sequence[DailyBar]], Mapping[str, Any]]
    web: FindOnWeb | None = None
    analyst: Analyst | None = None


class ExpertService(ABC, Generic[S, R]):
    """`run` takes its own arguments, the moment and the language.

    `folder` holds rules and prompts, `answer` is what a model must give. `shows` and `quotes` are the fields of the
    snapshot a model sees beside the evidence: facts of the desk, and texts that others wrote.
    """

    expert: ClassVar[ExpertType]
    folder: ClassVar[Path]
    texts: ClassVar[Catalogue]
    dimensions: ClassVar[type[StrEnum] | None] = None
    answer: ClassVar[type[ExpertResult]]
    shows: ClassVar[Sequence[str]]
    quotes: ClassVar[Sequence[str]] = ()
    run: Callable[..., Awaitable[Any]]

    def __init__(self, sources: Sources) -> None:
        self._sources, self._facts = sources, sources.facts
        self._unavailable: list[Unavailable] = []

    def mark(self, snapshot: S, say: Voice) -> Scorecard:
        counted = ((rule, self.trust(rule, snapshot)) for rule in self.rules())
        return Scorecard(tuple(rule.find(snapshot, say, trust) for rule, trust in counted if trust))

    @classmethod
    def rules(cls) -> tuple[Rule, ...]:
        return load_rules(cls.folder, cls.dimensions)

    @classmethod
    def trust(cls, rule: Rule, snapshot: S) -> float:
        """How much of what a rule finds counts; nothing where it is no rule for this company."""
        return 1.0 if rule.concerns(snapshot) else 0.0

    @abstractmethod
    def conclude(self, snapshot: S, card: Scorecard, say: Voice) -> R:
        """The result that the scorecard amounts to."""

    def check(self, snapshot: S, answer: Answer) -> Answer:
        """Sees a model's answer before it is validated, and refuses what the snapshot contradicts."""
        return answer

    def settle(self, result: R) -> tuple[R, Sequence[Message]]:
        """Has the last word on what code decides, and tells the reader if it had to speak."""
        return result, ()

    def speak(self, snapshot: S, case: Case, locale: Locale) -> Voice:
        """A voice that calls company and industry as its language does."""
        company = case.company
        names = {"stock_name": company.name_in(locale), "industry": name_industry(company, locale)}
        return Voice(self.texts, snapshot, locale).also(**names)

    async def judge_by_rule(self, snapshot: S, evidence: Sequence[Evidence], case: Case) -> Opinion[R]:
        card, result = self.rule(snapshot, case)
        if result is None:
            raise InvalidInput(self.texts("nothing_to_judge", missing=[hole.name for hole in card.holes]))
        written = card.write(self.speak(snapshot, case, case.locale))
        claims = self.claim(snapshot, card, evidence, case)
        return Opinion(result, write_evidence(evidence), written, "rubric", claims=claims)

    def rule(self, snapshot: S, case: Case) -> tuple[Scorecard, R | None]:
        """What the rules find, and what they conclude if they have anything to judge."""
        say = self.speak(snapshot, case, case.locale)
        card = self.mark(snapshot, say)
        return card, None if card.score is None else self.conclude(snapshot, card, say)

    def claim(
        self, snapshot: S, card: Scorecard, evidence: Sequence[Evidence], case: Case
    ) -> tuple[Claim, ...]:
        """What the rules found, as claims in every language."""
        told = {
            locale: card if locale == case.locale else self.mark(snapshot, self.speak(snapshot, case, locale))
            for locale in LOCALES
        }
        return tuple(make_claims(self.expert, card, evidence, told))

    async def _open(self, text: str, as_of: datetime, locale: Locale, *, field: str = "symbol") -> Case:
        if not text.strip():
            raise InvalidInput(self.texts("symbol_blank", field=field), field=field)
        symbol = Symbol.parse(text)
        company = await self._facts.company(symbol, as_of=as_of)
        return Case(symbol, company, as_of, symbol.local_date(as_of), locale)

    def _refusal(self, case: Case, why: str, *, field: str = "symbol", **values: Any) -> AppError:
        """That there is nothing to judge; what could not be had says better why."""
        if self._unavailable:
            return self._unavailable[0]
        said = self.texts(why, symbol=case.symbol.text, today=case.today, **values)
        return InvalidInput(said, field=field)

    async def _spare(self, reading: Awaitable[T], otherwise: T) -> T:
        """What an expert can do without: where it cannot be had, the reader is told."""
        try:
            return await reading
        except Unavailable as e:
            self._unavailable.append(e)
            return otherwise

    def _remark(self, case: Case) -> list[str]:
        """What is to be known about the data: what could not be had, and what was too old."""
        told = [e.in_locale(case.locale) for e in self._unavailable]
        return [*told, *(message.in_locale(case.locale) for message in self._facts.dropped)]

    async def _judge(self, case: Case, snapshot: S, evidence: Sequence[Evidence]) -> Opinion[R]:
        analyst = self._sources.analyst
        if analyst is None:
            return await self.judge_by_rule(snapshot, evidence, case)
        return await analyst(self, snapshot, evidence, case)

    async def _report(self, case: Case, snapshot: S, evidence: Sequence[Evidence]) -> dict[str, Any]:
        """The documented fields of the result, and beside them what it rests on."""
        opinion = await self._judge(case, snapshot, evidence)
        return {
            **opinion.result.model_dump(mode="json"),
            "input": opinion.input,
            "output": opinion.output,
            f"{self.expert.prefix}_indicators": snapshot.model_dump(mode="json"),
            "evidence": [item.model_dump(mode="json") for item in evidence],
            "claims": [claim.model_dump(mode="json") for claim in opinion.claims],
            "engine": opinion.engine,
            "grounding": opinion.grounding and opinion.grounding.model_dump(mode="json"),
            "warnings": [*opinion.warnings, *self._remark(case)],
            "data_until": {name: day.isoformat() for name, day in self._facts.newest.items()},
        }


class ReportedService(ExpertService[W, R]):
    """An expert that reads what others report; a model may name no source that it was not given."""

    shows = ("stock_name", "third_code", "industry", "current_date", "all_source_urls")
    searches: ClassVar[Sequence[WebSearch]]

    async def _search(self, case: Case, known: W) -> tuple[W, list[Evidence]]:
        """Each context goes on with the pages that the market's own data had not brought, or says there are none."""
        web, before = self._sources.web, known.all_source_urls
        if web is None:
            return known, []
        queries = {search: search.query(self.texts, case) for search in self.searches}
        found = await web(queries, case.symbol, case.as_of)
        new = {search: [p for p in passages if p.url not in before] for search, passages in found.items()}
        contexts = {
            search.context: _continue(getattr(known, search.context), passages, case.locale)
            for search, passages in new.items()
        }
        urls = [*before, *(p.url for passages in new.values() for p in passages)]
        evidence = [
            evidence_of(passage, f"{self.expert.prefix}{WEB_ID}{search.dimension}.{n}", passage.text)
            for search, passages in new.items()
            for n, passage in enumerate(passages, start=1)
        ]
        return known.model_copy(update={**contexts, "all_source_urls": list(dict.fromkeys(urls))}), evidence

    async def judge_by_rule(self, snapshot: W, evidence: Sequence[Evidence], case: Case) -> Opinion[R]:
        """Rules cannot read prose: they judge, and cite, what was there before anybody searched the web."""
        facts = [item for item in evidence if WEB_ID not in item.id]
        sources = {item.source for item in facts}
        urls = [url for url in snapshot.all_source_urls if url in sources]
        return await super().judge_by_rule(snapshot.model_copy(update={"all_source_urls": urls}), facts, case)

    def check(self, snapshot: W, answer: Answer) -> Answer:
        sources, given = answer.get("information_sources"), snapshot.all_source_urls
        foreign = [s for s in sources if s not in given] if isinstance(sources, list) else []
        if foreign:
            raise refuse_answer("enum", "information_sources", got=foreign, allowed=given)
        return answer


def _continue(context: str, passages: Sequence[Passage], locale: Locale) -> str:
    facts = [] if context == SAY("no_results").in_locale(locale) else [context]
    nothing = SAY("web.nothing" if facts else "no_results")
    lines = [
        SAY("web.line", published=p.published or SAY("web.undated"), text=p.text, url=p.url) for p in passages
    ]
    return "\n".join([*facts, *(line.in_locale(locale) for line in lines or [nothing])])
