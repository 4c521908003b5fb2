"""What model calls have used so far, and what a run is likely to use."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.domain.texts import SAY
from moot.modules.llm_platform.domain.usage import (
    By,
    Estimate,
    UsageLine,
    UsageReader,
    UsageReport,
    estimate,
    total_of,
)
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import Unavailable

__all__ = ["By", "Estimate", "UsageLine", "UsageReport", "UsageService"]

RECENT = timedelta(days=30)


class UsageService:
    """Without a reader, when nothing is stored, there is no usage to report and an estimate is not measured."""

    def __init__(self, reader: UsageReader | None, clock: Clock, currency: str) -> None:
        self._reader, self._clock, self._currency = reader, clock, currency

    async def usage(self, by: By, workspace: str, since: date | None = None) -> UsageReport:
        """`since` is the first UTC day that counts."""
        if self._reader is None:
            raise Unavailable(SAY("usage.not_stored"), code="PERSISTENCE_OFF")
        start = datetime.combine(since, time.min, UTC) if since else None
        lines = _ordered(by, await self._reader.usage(by, workspace, start))
        return UsageReport(
            by=by,
            workspace=workspace,
            since=since,
            currency=self._currency,
            lines=lines,
            total=total_of(lines),
        )

    async def estimate(
        self, agents: Sequence[str], config: LLMConfig, critical_path: Sequence[Sequence[str]]
    ) -> Estimate:
        """`critical_path` are stages one after another, each of agents that run side by side."""
        measured = (
            await self._reader.typical(config.model_name, config.workspace_id, self._clock.now() - RECENT)
            if self._reader
            else {}
        )
        return estimate(agents, config, critical_path, measured, self._currency)


def _ordered(by: By, lines: list[UsageLine]) -> list[UsageLine]:
    if by == "day":
        return sorted(lines, key=lambda line: line.name, reverse=True)
    return sorted(lines, key=lambda line: (-line.total_tokens, line.name))
