"""The published scores of a company's accounts, as the auditor's snapshot tells them."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from moot.modules.research.domain import accounting_scores as published
from moot.modules.research.domain.accounting_scores import Formula, Score, compute
from moot.modules.research.domain.books import Books, last_full_year, name_quarter
from moot.modules.research.domain.sectors import Sector


class Altman(NamedTuple):
    """Below `distress` a company is likely to fail, above `safe` it is not."""

    variant: str
    formula: Formula
    distress: float
    safe: float


MANUFACTURERS = Altman("Z", published.altman_z, 1.81, 2.99)
OTHERS = Altman("Z''", published.altman_z2, 1.1, 2.6)


def score_accounts(sector: Sector, books: Books, now: int, market_value: float | None) -> dict[str, Any]:
    """Of the four quarters up to the latest report, or of the last full year where that allows more of them: some
    lines are told once or twice a year. A bank, an insurer and a broker keep no such accounts.
    """
    if sector.trade != "company":
        return {}
    altman = MANUFACTURERS if sector.manufacturer else OTHERS
    formulas: Mapping[str, Formula] = {
        "piotroski": published.piotroski,
        "altman": altman.formula,
        "beneish": published.beneish,
        "accruals": published.accruals,
        "cash_cycle": published.cash_cycle,
    }

    def compute_all(quarter: int) -> dict[str, Score]:
        def find(line: str, back: int) -> float | None:
            return market_value if line == "market_value" else books.year(line, quarter - 4 * back)

        return {name: compute(formula, find) for name, formula in formulas.items()}

    years = {quarter: compute_all(quarter) for quarter in dict.fromkeys((now, last_full_year(now)))}
    best = max(years, key=lambda quarter: _allow(years[quarter].values()))
    before = compute(published.cash_cycle, lambda line, back: books.year(line, best - 4 * back - 4))
    return {"scored_period": name_quarter(best), **_tell(years[best], altman, before.value)}


def _allow(scores: Collection[Score]) -> tuple[int, int]:
    """How many there are, and how little those lack that are not."""
    return sum(score.value is not None for score in scores), -sum(len(score.lacking) for score in scores)


def _tell(scores: Mapping[str, Score], altman: Altman, cycle_before: float | None) -> dict[str, Any]:
    values = {name: score.value for name, score in scores.items()}
    variant, _, distress, safe = altman
    limits = {"altman_variant": variant, "altman_distress": distress, "altman_safe": safe}
    return {
        "piotroski_score": values["piotroski"],
        "altman_score": _round(values["altman"]),
        **({} if values["altman"] is None else limits),
        "beneish_score": _round(values["beneish"]),
        "accruals_share": _round(values["accruals"], times=100),
        "cash_cycle": _round(values["cash_cycle"]),
        "cash_cycle_before": _round(cycle_before),
        **{
            f"{name}_parts": {part: round(value, 4) for part, value in score.parts.items()}
            for name, score in scores.items()
        },
        "lacking": {name: list(score.lacking) for name, score in scores.items() if score.lacking},
    }


def _round(value: float | None, times: int = 1) -> float | None:
    return None if value is None else round(times * value, 2)
