"""An expert like any other, as its folder would stand in `research/application`: how easily a share is traded."""

from datetime import datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from moot.modules.research.application.expert_service import ExpertService
from moot.modules.research.domain.evidence import Confidence, ExpertResult, Snapshot, cite
from moot.modules.research.domain.facts import COMMON
from moot.modules.research.domain.rubric import Scorecard, Voice
from moot.shared.domain import units
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import Catalogue, Locale

FOLDER = Path(__file__).parent


class LiquiditySnapshot(Snapshot):
    stock_name: str
    traded_days: units.Count
    average_volume: units.Ratio


class LiquidityResult(ExpertResult):
    signal: Literal["Liquid", "Illiquid"]
    confidence: Confidence
    summary_reasoning: str
    risk_warning: str


class LiquidityWatcherService(ExpertService[LiquiditySnapshot, LiquidityResult]):
    expert = ExpertType.LIQUIDITY_WATCHER
    folder, texts = FOLDER, Catalogue(COMMON, FOLDER)
    answer = LiquidityResult
    shows = ("stock_name",)

    def conclude(self, snapshot: LiquiditySnapshot, card: Scorecard, say: Voice) -> LiquidityResult:
        signal: Literal["Liquid", "Illiquid"] = "Liquid" if (card.score or 0) > 0 else "Illiquid"
        conclusion, stance = say(f"conclusion.{signal}"), self.expert.stances[signal]
        return LiquidityResult(
            signal=signal,
            confidence=card.confidence,
            summary_reasoning=card.summarise(say, conclusion, stance),
            risk_warning=say("risk"),
            narrative_report=card.narrate(say, view=say(f"view.{signal}"), stance=stance),
        )

    async def run(self, symbol: str, *, as_of: datetime, locale: Locale) -> dict[str, Any]:
        case = await self._open(symbol, as_of, locale)
        start = case.today - timedelta(days=90)
        days = await self._facts.daily_bars(case.symbol, start, case.today, as_of=as_of)
        bars = [bar for bar in days if not bar.suspended]
        if not bars:
            raise self._refusal(case, "no_trading")
        volume = fmean(bar.volume for bar in bars)
        snapshot = LiquiditySnapshot(stock_name=case.stock_name, traded_days=len(bars), average_volume=volume)
        return await self._report(case, snapshot, cite(self.expert.prefix, snapshot, bars[-1]))


SERVICE = LiquidityWatcherService
