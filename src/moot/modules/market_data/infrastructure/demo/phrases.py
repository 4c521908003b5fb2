"""Headlines in two languages, from `phrases.toml`, and the news items that carry them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from moot.modules.market_data.domain.facts import NewsItem
from moot.modules.market_data.infrastructure.demo.calendar import SOURCE
from moot.modules.market_data.infrastructure.demo.companies import Firm
from moot.modules.market_data.infrastructure.demo.noise import digest

Kind = Literal["announcement", "news", "policy"]


@dataclass(frozen=True)
class Bilingual:
    zh: str
    en: str


class Phrase(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    zh: str
    en: str

    def say(self, **values: object) -> Bilingual:
        """Fill the placeholders; a `Bilingual` value goes into each language in that language."""
        zh = {name: value.zh if isinstance(value, Bilingual) else value for name, value in values.items()}
        en = {name: value.en if isinstance(value, Bilingual) else value for name, value in values.items()}
        return Bilingual(self.zh.format(**zh), self.en.format(**en))


class Story(Phrase):
    id: str
    kind: Kind
    tone: Literal[-1, 0, 1]
    share: tuple[float, float] = (0, 0)


class Policy(Phrase):
    id: str
    for_industry: bool


class Phrases(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    period: Mapping[int, Phrase]
    report: Mapping[str, Phrase]
    event: Mapping[str, Phrase]
    story: tuple[Story, ...]
    policy: tuple[Policy, ...]


@cache
def phrases() -> Phrases:
    return Phrases(**tomllib.loads(Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8")))


def name_of(firm: Firm) -> Bilingual:
    return Bilingual(firm.company.name, firm.company.name_en)


def money(amount: float) -> dict[str, str]:
    """In hundred millions for the Chinese headline, in millions for the English one."""
    return {"amount": f"{amount / 1e8:.2f}", "million": f"{amount / 1e6:,.0f}"}


def news_item(
    seed: int,
    kind: Kind,
    key: str,
    title: Bilingual,
    times: tuple[datetime, datetime],
    *,
    symbol: str | None = None,
    industry: str | None = None,
) -> NewsItem:
    """`times` are when it was written and when the public could read it."""
    written, visible = times
    return NewsItem(
        kind=kind,
        title=title.zh,
        title_en=title.en,
        url=f"demo://news/{digest(seed, symbol, industry, key, written.isoformat())[:6].hex()}",
        symbol=symbol,
        industry=industry,
        event_time=written,
        available_at=visible,
        source=SOURCE,
    )
