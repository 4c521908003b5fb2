"""Importing a user's files into the lake: row by row, and without losing what another file told before."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from moot.modules.market_data.domain import facts
from moot.modules.market_data.domain.provider import Batch, FactStore, Range, Refusal, fill, screen
from moot.modules.market_data.domain.series import cover
from moot.modules.market_data.domain.texts import SAY
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import Conflict
from moot.shared.domain.facts import FlowDay, IndexBar
from moot.shared.domain.messages import Message
from moot.shared.domain.symbol import Market, Symbol

ReadImport = Callable[[Path, Path | None], tuple[Mapping[facts.Dataset[Any], Batch[Any]], Sequence[Message]]]
PARTIAL = (*facts.VERSIONED, facts.COMPANIES, facts.FLOWS)
"""What people have in several files: a row that is kept already keeps what the new one does not tell."""
BASICS = (facts.BARS, facts.VALUATIONS, facts.REPORTS)


@dataclass(frozen=True)
class Import:
    """What became of one kind of data in a file."""

    name: Message
    rows: int
    symbols: tuple[str, ...]
    refused: tuple[Refusal, ...]


@dataclass(frozen=True)
class Imports:
    """Of one file; `notes` say what was assumed about it, `next_step` what a person does now, if anything."""

    done: list[Import]
    notes: Sequence[Message]
    next_step: Message | None


@dataclass(frozen=True)
class ImportService:
    read_file: ReadImport
    store: FactStore
    clock: Clock

    async def bring_in(self, file: Path, mapping: Path | None) -> Imports:
        """Read a file a user has and keep it; rows that make no sense are refused by name."""
        found, notes = await asyncio.to_thread(self.read_file, file, mapping)
        done = [await self._keep(dataset, batch) for dataset, batch in found.items()]
        if facts.COMPANIES in found:
            return Imports(done, notes, SAY("import.more"))
        first = next((symbol for one in done for symbol in one.symbols), None)
        return Imports(done, notes, self._advise(first) if first else None)

    async def _keep(self, dataset: facts.Dataset[Any], batch: Batch[Any]) -> Import:
        """A share that does not go with what is kept costs no other."""
        refused, symbols, rows, span = list(batch.refused), [], 0, _span(batch)
        for subject, told in _by_subject(dataset, batch).items():
            new = await self._check_values(subject, told) if dataset is facts.VALUATIONS else Batch(told)
            kept = await self.store.read(dataset, subject) if dataset in PARTIAL else []
            whole = merge(dataset, kept, new) if dataset in PARTIAL else new
            refused += new.refused
            try:
                self.store.store(
                    dataset, subject, whole, covered=cover(_span(new), span), at=self.clock.now()
                )
            except Conflict as e:
                refused.append(Refusal(subject, str(e), SAY("refused.row", who=subject, why=e.message)))
            else:
                symbols.append(subject)
                rows += len(new)
        return Import(dataset.label, rows, tuple(symbols) if dataset.by_symbol else (), tuple(refused))

    async def _check_values(self, symbol: str, days: Sequence[Any]) -> Batch[Any]:
        """Market values against price times the shares of the nearest statements kept, where the file tells none."""
        kept = await self.store.read(facts.STATEMENTS, symbol)
        told = [(each.period_end, each.shares) for each in kept if each.shares]
        good, odd = [], list[Refusal]()
        for day in days:
            near = [] if day.shares else sorted(told, key=lambda each: abs(each[0] - day.trade_date))[:2]
            rows = [{**dict(day), "shares": shares} for _, shares in near]
            checks = [screen(facts.VALUATIONS, [row], ("symbol", "trade_date")) for row in rows]
            if checks and not any(checks):
                odd += checks[0].refused
            else:
                good.append(day)
        return Batch(good, odd)

    def _advise(self, symbol: str) -> Message:
        """What is missing for a verdict about one of the companies, or how to ask for it."""
        keeps = self.store.coverage
        if keeps(facts.COMPANIES, Symbol.parse(symbol).market.value) is None:
            return SAY("import.directory")
        if missing := [each.label for each in BASICS if keeps(each, symbol) is None]:
            return SAY("import.missing", symbol=symbol, missing=missing)
        bars = keeps(facts.BARS, symbol)
        return SAY("import.ready", symbol=symbol, day=bars.span[1] if bars else "")


def merge(dataset: facts.Dataset[Any], kept: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """Both, oldest version first, each with what those before it told of the same and it does not."""
    same = [part for part in dataset.key if part != "available_at"]
    latest: dict[tuple[Any, ...], Any] = {}
    whole = []
    for fact in sorted([*kept, *new], key=lambda fact: str(getattr(fact, "available_at", ""))):
        identity = tuple(getattr(fact, part) for part in same)
        latest[identity] = fill(fact, latest.get(identity, fact))
        whole.append(latest[identity])
    return whole


def _by_subject(dataset: facts.Dataset[Any], batch: Batch[Any]) -> dict[str, list[BaseModel]]:
    """By symbol or market; figures and indexes without a symbol are those of China."""
    groups = defaultdict[str, list[BaseModel]](list)
    for fact in batch:
        symbol = getattr(fact, "symbol", None)
        market = Symbol.parse(symbol).market if symbol else Market.CN
        groups[symbol if dataset.by_symbol and symbol else market.value].append(fact)
    return groups


def _span(imported: Sequence[BaseModel]) -> Range | None:
    """What is imported by trading day is complete between its first and last, unless it tells a part of each."""
    whole = (fact for fact in imported if not isinstance(fact, IndexBar | FlowDay))
    days = [day for fact in whole if (day := getattr(fact, "trade_date", None))]
    return (min(days), max(days)) if days else None
