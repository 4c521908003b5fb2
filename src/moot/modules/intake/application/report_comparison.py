"""Companies side by side: who is ahead on what was asked, and a table with a column for each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from moot.modules.intake.application.tables import side_by_side
from moot.modules.intake.domain.findings import Finding, View

FEW = 3
"""Experts whose field a question can name and still be about each of them."""


@dataclass(frozen=True)
class Company:
    """What was found about one. `asked`: whether the question named the fields of its experts."""

    name: str
    finding: Finding
    marks: str
    asked: bool

    @property
    def named_views(self) -> tuple[View, ...]:
        return self.finding.views if self.asked else ()


def together(companies: Sequence[Company]) -> str:
    """The marks of all of them."""
    return " " + "".join(company.marks.strip() for company in companies)


def ahead(companies: Sequence[Company], say: Mapping[str, str]) -> Iterator[str]:
    """On each field that was asked about, and by the verdict: a sentence, with its sources at the end."""
    marks = together(companies)
    for views in _shared(companies):
        ranked = sorted(views.items(), key=lambda held: held[1].leaning, reverse=True)
        told = [say["holds"].format(name=name, says=view.says) for name, view in ranked]
        first, second = ranked[0][1], ranked[1][1]
        parts = {"leader": told[0], "others": say["separator"].join(told[1:])}
        key = "ahead" if first.leaning > second.leaning else "level"
        sentence = say[key].format(what=first.who, all=say["separator"].join(told), **parts)
        yield sentence + marks


def _shared(companies: Sequence[Company]) -> Iterator[dict[str, View]]:
    """What the same expert holds of each company, by its name; a verdict on one alone leads nobody ahead."""
    fields = dict.fromkeys(view.who for company in companies for view in company.named_views)
    for who in list(fields)[:FEW]:
        held = {
            company.name: view for company in companies for view in company.named_views if view.who == who
        }
        if len(held) == len(companies):
            yield held
    verdicts = {company.name: company.finding.verdict for company in companies}
    given = {name: verdict for name, verdict in verdicts.items() if verdict is not None}
    if len(given) == len(companies):
        yield given


def table(companies: Sequence[Company]) -> str:
    """Empty where fewer than two have figures."""
    compared = [company.finding for company in companies if company.finding.figures]
    return side_by_side([{**finding.figures, **finding.facts} for finding in compared])
