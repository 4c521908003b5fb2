"""The screen of many shares: the experts' own rules over all of them in one pass, ranked by what the debate's weights
make of it. No model is asked, and nothing is known that was not at the moment.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import polars as pl

from moot.modules.research.application.marking import Asked, Weights, find_leans
from moot.modules.research.application.scope import ManyBars, ManyFacts, Scope, Screener
from moot.modules.research.application.technical_analyst import LOOKBACK_DAYS
from moot.modules.research.domain.facts import SAY
from moot.modules.research.domain.rubric import Rule, plain_name
from moot.shared.domain.errors import AppError, InvalidInput
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.facts import Company
from moot.shared.domain.messages import Locale
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.universe import Screened, Screening

Status = Literal["ranked", "suspended", "too_old", "too_little", "no_data", "damaged", "not_listed"]


class ScreenedShare(Screened):
    """Its `lean` goes by the weights of the debate, before the rules answer each other. `missing` are the rules that
    had no data; `notes` say it in words.
    """

    status: Status
    missing: tuple[str, ...] = ()


class Screen(Screening):
    shares: tuple[ScreenedShare, ...] = ()


@dataclass(frozen=True)
class ScreenService:
    facts: ManyFacts
    screeners: Sequence[Screener]
    weights: Weights

    async def run(
        self,
        symbols: Sequence[str],
        *,
        as_of: datetime,
        locale: Locale,
        experts: Collection[ExpertType] = tuple(ExpertType),
    ) -> Screen:
        chosen = [screener for screener in self.screeners if screener.service.expert in experts]
        heard = {screener.service.expert for screener in chosen}
        shares, refused = _read_symbols(symbols)
        companies, unlisted = await self.facts.list_companies(shares, as_of=as_of)
        listed = [share for share in shares if share.text in companies]
        bars = await self.facts.read_bars(listed, LOOKBACK_DAYS, as_of=as_of)
        table = _Table(companies, bars, locale)
        aside = [*table.refuse({**refused, **unlisted}), *table.list_hindered()]
        gone = {share.symbol for share in aside}
        fit = {share.text: companies[share.text] for share in listed if share.text not in gone}
        scope = Scope(self.facts, fit, bars.traded.filter(pl.col("symbol").is_in(list(fit))), as_of)
        rows = [await screener.measure(scope) for screener in chosen]
        judged = sorted(set().union(*rows))
        aside += [table.set_aside(symbol, "too_little") for symbol in fit.keys() - set(judged)]
        asked = [
            Asked(screener.service, screener.service.rules(), [found.get(symbol) for symbol in judged])
            for screener, found in zip(chosen, rows, strict=True)
        ]
        ranked = table.rank(judged, asked, find_leans(asked, self.weights)) if judged else []
        return Screen(
            shares=(*ranked, *sorted(aside, key=lambda share: share.symbol)),
            left_out=tuple(expert for expert in ExpertType if expert in experts and expert not in heard),
            notes=tuple(SAY("screen.one_by_one", source=name).in_locale(locale) for name in bars.one_by_one),
        )


def _read_symbols(symbols: Sequence[str]) -> tuple[list[Symbol], dict[str, AppError]]:
    """Each once; what is no symbol is a row that says so."""
    shares: dict[str, Symbol] = {}
    refused: dict[str, AppError] = {}
    for text in symbols:
        try:
            share = Symbol.parse(text)
            shares[share.text] = share
        except InvalidInput as e:
            refused[text] = e
    return list(shares.values()), refused


@dataclass(frozen=True)
class _Table:
    companies: Mapping[str, Company]
    bars: ManyBars
    locale: Locale

    def refuse(self, errors: Mapping[str, AppError]) -> Iterator[ScreenedShare]:
        for symbol, error in errors.items():
            said = (error.in_locale(self.locale),)
            yield ScreenedShare(symbol=symbol, name=symbol, status="not_listed", notes=said)

    def list_hindered(self) -> Iterator[ScreenedShare]:
        """Those that cannot be ranked, whatever is asked."""
        for symbol in self.companies:
            standing = self.bars.standings.get(symbol)
            if standing is None:
                yield self.set_aside(symbol, "damaged" if symbol in self.bars.damaged else "no_data")
            elif standing.too_old or standing.suspended:
                yield self.set_aside(symbol, "too_old" if standing.too_old else "suspended")

    def set_aside(self, symbol: str, why: Status) -> ScreenedShare:
        standing = self.bars.standings.get(symbol)
        newest = standing and standing.newest
        said = SAY(f"screen.{why}", symbol=symbol, day=newest, sessions=standing and standing.sessions_old)
        return self._row(symbol, status=why, notes=(said.in_locale(self.locale),))

    def rank(
        self, symbols: Sequence[str], asked: Sequence[Asked], leans: Sequence[float]
    ) -> list[ScreenedShare]:
        """Those that lean most towards buying first, equals by symbol."""
        scores = {each.name(d): each.score(d) for each in asked for d in each.dimensions}
        missing = [each.list_missing() for each in asked]
        order = sorted(range(len(symbols)), key=lambda n: (-leans[n], symbols[n]))
        return [
            self._row(
                symbols[n],
                status="ranked",
                rank=rank,
                lean=leans[n],
                scores={name: column[n] for name, column in scores.items()},
                **self._tell_missing([(each, holes[n]) for each, holes in zip(asked, missing, strict=True)]),
            )
            for rank, n in enumerate(order, 1)
        ]

    def _tell_missing(self, missing: Sequence[tuple[Asked, Sequence[Rule]]]) -> dict[str, Any]:
        rules = [(each, rule) for each, holes in missing for rule in holes]
        if not rules:
            return {}
        parts = {(each.service, plain_name(rule.dimension)): None for each, rule in rules}
        names = [service.texts(f"dimension.{part}") for service, part in parts]
        said = SAY("screen.missing", names=names).in_locale(self.locale)
        return {"missing": tuple(each.name(rule.name) for each, rule in rules), "notes": (said,)}

    def _row(self, symbol: str, **told: Any) -> ScreenedShare:
        standing = self.bars.standings.get(symbol)
        name = self.companies[symbol].name_in(self.locale)
        return ScreenedShare(symbol=symbol, name=name, newest=standing and standing.newest, **told)
