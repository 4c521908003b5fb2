"""A list of companies, made searchable: by code, name, former name, English name and pinyin initials."""

import difflib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from operator import eq

from moot.modules.market_data.domain.facts import Company
from moot.modules.market_data.domain.spelling import bare_name, canonical, fold, initials


class How(StrEnum):
    """What of the company matched, the most telling first."""

    CODE = "code"
    NAME = "name"
    ENGLISH_NAME = "english_name"
    PINYIN = "pinyin"
    FORMER_NAME = "former_name"


_ORDER = {how: place for place, how in enumerate(How)}
_FROM_THE_START = {How.CODE, How.PINYIN}  # a part from the middle of these says nothing
_SHORTEST_PART = 2


@dataclass(frozen=True)
class Match:
    """`whole`: all of the code or name, not a part of it."""

    company: Company
    how: How
    whole: bool

    @property
    def listed(self) -> bool:
        """Once a delisting is known, `company.delist_date` has its day."""
        return self.company.delist_date is None

    @property
    def rank(self) -> tuple[bool, int, bool, str]:
        """Smaller is better: whole before part, listed before delisted."""
        return not self.whole, _ORDER[self.how], not self.listed, self.company.symbol


class CompanyIndex:
    def __init__(self, companies: Iterable[Company]) -> None:
        self._keys = [(key, how, company) for company in companies for how, key in _keys(company)]
        self._whole: dict[str, list[tuple[How, Company]]] = defaultdict(list)
        for key, how, company in self._keys:
            self._whole[key].append((how, company))

    def __len__(self) -> int:
        return len({company.symbol for _, _, company in self._keys})

    def search(self, text: str) -> list[Match]:
        """One match per company, its best; the best company first."""
        best: dict[str, Match] = {}
        for match in (*self._wholes(text), *self._parts(text)):
            symbol = match.company.symbol
            if symbol not in best or match.rank < best[symbol].rank:
                best[symbol] = match
        return sorted(best.values(), key=lambda match: match.rank)

    def nearest(self, text: str, count: int = 3) -> list[Company]:
        """Companies whose code or name is nearly the text, for a question back."""
        wanted = _stem(canonical(text) or bare_name(text))
        stems = {_stem(key): company for key, _, company in self._keys}
        likely = [stem for stem in stems if sum(map(eq, stem, wanted)) >= 0.4 * len(wanted)]
        close = [stems[stem] for stem in difflib.get_close_matches(wanted, likely, n=count)]
        return list({company.symbol: company for company in close}.values())

    def _wholes(self, text: str) -> Iterator[Match]:
        for key in {fold(text), bare_name(text), canonical(text)} - {None}:
            for how, company in self._whole.get(str(key), ()):
                yield Match(company, how, whole=True)

    def _parts(self, text: str) -> Iterator[Match]:
        wanted = bare_name(text)
        if len(wanted) < _SHORTEST_PART:
            return
        for key, how, company in self._keys:
            if wanted in key and (how not in _FROM_THE_START or key.startswith(wanted)):
                yield Match(company, how, whole=False)


def _keys(company: Company) -> Iterator[tuple[How, str]]:
    """Everything a company may be looked up by, each once."""
    code = canonical(company.symbol) or fold(company.symbol)
    former = {
        key for alias in company.aliases for key in (canonical(alias), fold(alias), bare_name(alias)) if key
    }
    pinyin = fold(company.pinyin or initials(bare_name(company.name)))
    keys = {
        How.CODE: {code, _digits(code)},
        How.NAME: {fold(company.name), bare_name(company.name)},
        How.ENGLISH_NAME: {fold(company.name_en)},
        How.PINYIN: {pinyin},
        How.FORMER_NAME: former,
    }
    return ((how, key) for how, texts in keys.items() for key in sorted(texts) if key)


def _digits(code: str) -> str:
    """Six digits are known by themselves; a ticker such as `BRK.B` is not its first half."""
    stem = _stem(code)
    return stem if stem.isdigit() else code


def _stem(code: str) -> str:
    return code.partition(".")[0]
