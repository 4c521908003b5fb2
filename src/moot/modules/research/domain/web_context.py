"""What the web adds to the view of an expert that reads what others report, and the port it comes through."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, TypeVar

from moot.modules.research.domain.evidence import Snapshot
from moot.modules.research.domain.facts import SAY, Case, Cited
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.messages import Catalogue, Locale
from moot.shared.domain.symbol import Market, Symbol

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


S = TypeVar("S", bound=Reported)


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


def add_findings(snapshot: S, found: Findings, prefix: str, locale: Locale) -> tuple[S, list[Evidence]]:
    """Each context goes on with the pages that the market's own data had not brought, or says that there are none."""
    known = set(snapshot.all_source_urls)
    new = {search: [p for p in passages if p.url not in known] for search, passages in found.items()}
    contexts = {
        search.context: _continue(getattr(snapshot, search.context), passages, locale)
        for search, passages in new.items()
    }
    urls = [*snapshot.all_source_urls, *(p.url for passages in new.values() for p in passages)]
    evidence = [
        Evidence(
            id=f"{prefix}{WEB_ID}{search.dimension}.{n}",
            value=passage.text,
            unit="",
            source=passage.citation,
            as_of=passage.available_at,
        )
        for search, passages in new.items()
        for n, passage in enumerate(passages, start=1)
    ]
    told = snapshot.model_copy(update={**contexts, "all_source_urls": list(dict.fromkeys(urls))})
    return told, evidence


def before_the_web(snapshot: S, evidence: Iterable[Evidence]) -> tuple[S, list[Evidence]]:
    """What there is to cite without the pages that were found."""
    facts = [item for item in evidence if WEB_ID not in item.id]
    sources = {item.source for item in facts}
    urls = [url for url in snapshot.all_source_urls if url in sources]
    return snapshot.model_copy(update={"all_source_urls": urls}), facts


def _continue(context: str, passages: Sequence[Passage], locale: Locale) -> str:
    facts = [] if context == SAY("no_results").in_locale(locale) else [context]
    nothing = SAY("web.nothing" if facts else "no_results")
    lines = [
        SAY("web.line", published=p.published or SAY("web.undated"), text=p.text, url=p.url) for p in passages
    ]
    return "\n".join([*facts, *(line.in_locale(locale) for line in lines or [nothing])])
