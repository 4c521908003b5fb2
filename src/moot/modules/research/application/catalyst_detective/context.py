"""All that the detective knows of a company at a moment, and the evidence it is."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from moot.modules.research.application.catalyst_detective.disclosed import FIGURES, PART, Disclosed
from moot.modules.research.application.expert_service import Reported, WebSearch
from moot.modules.research.domain.event_study import Study
from moot.modules.research.domain.events import WINDOW_DAYS, Event, tell_events
from moot.modules.research.domain.evidence import cite, evidence_of
from moot.modules.research.domain.facts import Case, Cited
from moot.shared.domain import units
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.facts import (
    DailyBar,
    Dividend,
    Fact,
    FinancialReport,
    FlowDay,
    MarginDay,
    Pledge,
    Unlock,
)

SEARCHES = (
    WebSearch("company", "company_events_context", 8, "oneWeek"),
    WebSearch("industry", "industry_catalyst_context", 6, "oneMonth"),
    WebSearch("sentiment", "market_sentiment_context", 8, "oneWeek"),
    WebSearch("earnings", "earnings_context", 6, "oneMonth"),
)
"""By topic: where its events are tell_events, and how many at most, be they known or found."""


class CatalystContext(Reported):
    """The newest events of each dimension, and the same as texts; how money moves over 20 sessions, what is to come,
    and how the share reacted to its last report, in per cent: `adjusted` by the market or not.
    """

    window_days: units.Count
    company_events_context: str
    industry_catalyst_context: str
    market_sentiment_context: str
    earnings_context: str
    event_count: units.Count
    positive_count: units.Count
    negative_count: units.Count
    events: list[Event]
    margin_change_20d: units.Percent = None
    inflow_share_20d: units.Percent = None
    northbound_percent: units.Rate = None
    northbound_change_20d: units.RatePoints = None
    pledged_percent: units.Percent = None
    unlock_ahead: units.Rate = None
    unlock_date: date | None = None
    dividend_ahead: units.Price = None
    ex_date: date | None = None
    report_due_days: units.Days = None
    report_due: date | None = None
    report_period: date | None = None
    reaction_3d: units.Percent = None
    usual_3d: units.Percent = None
    reaction_times: units.Times = None
    reported_on: date | None = None
    reported: date | None = None
    adjusted: bool = False
    studies: tuple[Study, ...] = ()


def catalyst_context(case: Case, events: Sequence[Event], **measured: Any) -> CatalystContext:
    """`events` are newest first; each dimension keeps what is grave, then its newest."""
    events = sorted(events, key=lambda event: not event.grave)
    kept = {s.context: [e for e in events if e.topic == s.dimension][: s.count] for s in SEARCHES}
    chosen = [event for of_topic in kept.values() for event in of_topic]
    return CatalystContext(
        stock_name=case.stock_name,
        third_code=case.company.symbol,
        industry=case.industry,
        current_date=case.today,
        window_days=WINDOW_DAYS,
        **{context: tell_events(of_topic, case.locale) for context, of_topic in kept.items()},
        all_source_urls=list(dict.fromkeys(event.url for event in chosen if event.kind != "fact")),
        event_count=len(chosen),
        positive_count=sum(event.points > 0 for event in chosen),
        negative_count=sum(event.points < 0 for event in chosen),
        events=chosen,
        **measured,
    )


def list_events(context: CatalystContext) -> Iterator[tuple[str, str, Event]]:
    """Each event by its name, that of a fact the same in every session that knows it, and where its evidence is."""
    for n, event in enumerate(context.events, start=1):
        if event.kind == "fact":
            yield f"fact.{event.category}.{event.published:%Y%m%d}", f"fact.{n}", event
        else:
            yield f"event.{n}", f"event.{n}", event


def cite_context(expert: str, context: CatalystContext, found: Disclosed, as_of: datetime) -> list[Evidence]:
    """Every measurement by the newest fact of its kind, what was published, the days to come, and the studies; what
    was counted is as of the moment of counting.
    """
    origins: dict[str, Fact] = {f: fact for f, kind in ORIGINS.items() if (fact := found.newest(kind))}
    origin = next(iter(context.events), None) or next(iter(origins.values()), None)
    counted = {name: date_at(origins.get(name, origin), as_of) for name in COUNTED} if origin else {}
    days = {name: day for name, field in CALENDAR.items() if (day := getattr(context, field))}
    return [
        *(cite(expert, context, origin, origins={**origins, **counted}) if origin else []),
        *(
            item
            for _, place, event in list_events(context)
            for item in _cite_event(f"{expert}.{place}", event)
        ),
        *(evidence_of(origins[CALENDAR[name]], f"{expert}.{name}", str(days[name])) for name in days),
        *(
            evidence_of(origins["reaction_3d"], f"{expert}.study.{one.category}.{name}", value, unit)
            for one in context.studies
            for name, unit in (STUDY_UNITS if one.mean is not None else {"n": ""}).items()
            if (value := getattr(one, name)) is not None
        ),
    ]


def date_at(fact: Fact | Cited, as_of: datetime) -> Cited:
    """Where a fact is read, at another moment."""
    return Cited(available_at=as_of, source=fact.source, url=getattr(fact, "url", fact.source))


def _cite_event(place: str, event: Event) -> list[Evidence]:
    """A fact by its figures, what others wrote by its title."""
    figures = event.figures.items()
    cited = [
        evidence_of(event, f"{place}.{name}", value, FIGURES.get(name, PART).symbol)
        for name, value in figures
    ]
    return cited or [evidence_of(event, place, event.title)]


COUNTED = ("window_days", "event_count", "positive_count", "negative_count", "report_due_days")
STUDY_UNITS = {"n": "", "horizon": "sessions", "mean": "%", "low": "%", "high": "%", "level": "%"}
CALENDAR = {"calendar.report": "report_due", "ex_dividend.due": "ex_date", "unlock.due": "unlock_date"}
"""Days to come, by the ids of their evidence; the judge awaits what is due."""
ORIGINS: Mapping[str, type[Fact]] = {
    **dict.fromkeys(("reaction_3d", "usual_3d", "reaction_times"), DailyBar),
    **dict.fromkeys(("report_due", "report_due_days"), FinancialReport),
    **dict.fromkeys(("ex_date", "dividend_ahead"), Dividend),
    **dict.fromkeys(("unlock_date", "unlock_ahead"), Unlock),
    "pledged_percent": Pledge,
    "margin_change_20d": MarginDay,
    **dict.fromkeys(("inflow_share_20d", "northbound_percent", "northbound_change_20d"), FlowDay),
}
"""What each measurement comes from."""
