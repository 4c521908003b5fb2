"""Calls the judge with the debate's conclusions; the advocates' arguments and the risks' details stay behind."""

from typing import Any

from moot.modules.coordinator.domain.exceptions import Abstention
from moot.modules.coordinator.domain.ports.judge_gateway import IJudgeGateway
from moot.modules.coordinator.infrastructure.adapters.session_factory import Gateway, current_setting
from moot.modules.judge.application.judge_service import JudgeInput, VerdictAbstained
from moot.modules.judge.container import JudgeContainer


class JudgeGatewayAdapter(Gateway[JudgeContainer], IJudgeGateway):
    async def run_verdict(self, symbol: str, debate_outcome: dict[str, Any]) -> dict[str, Any]:
        try:
            verdict = await self._container().judge_service().run(_judge_input(symbol, debate_outcome))
        except VerdictAbstained as e:
            raise Abstention(e.message) from e
        return verdict.model_dump(mode="json")


def _judge_input(symbol: str, debate_outcome: dict[str, Any]) -> JudgeInput:
    setting = current_setting()
    return JudgeInput.model_validate(
        {
            "symbol": symbol,
            "direction": debate_outcome["direction"],
            "confidence": debate_outcome["confidence"],
            "bull_thesis": debate_outcome["bull_case"]["core_thesis"],
            "bear_thesis": debate_outcome["bear_case"]["core_thesis"],
            "risk_factors": [row["risk"] for row in debate_outcome["risk_matrix"]],
            "key_disagreements": debate_outcome["key_disagreements"],
            "conflict_resolution": debate_outcome["conflict_resolution"],
            "evidence": debate_outcome.get("evidence", []),
            "experts_asked": setting.experts_asked,
            "experts_heard": len(debate_outcome.get("experts", [])),
            "locale": setting.locale,
            "as_of": setting.as_of,
        }
    )
