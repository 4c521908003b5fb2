"""A node's result as the journal keeps it, with the evidence in a column of its own, and back again."""

from typing import Any

from moot.modules.coordinator.domain.model.session import NodeExecution


def apart(result: dict[str, Any]) -> dict[str, Any]:
    """The columns a result fills; `result` itself is left as it is."""
    return {
        "evidence": result.get("evidence", []),
        "narrative_report": result.get("narrative_report"),
        "result_data": {name: value for name, value in result.items() if name != "evidence"},
    }


def whole(node: NodeExecution) -> dict[str, Any]:
    """The result as the node gave it. The judge cites no evidence of its own."""
    cited = {} if node.node_type == "judge" and not node.evidence else {"evidence": node.evidence}
    return {**(node.result_data or {}), **cited}
