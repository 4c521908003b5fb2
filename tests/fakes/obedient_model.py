"""A model that does what the text before it says: once it has read a planted title, everything is a BUY."""

import json
import re
from collections.abc import Collection
from typing import Any

from tests.fakes.careful_model import careful
from tests.fakes.llm_server import Say

FULL_PRAISE: dict[str, Any] = {
    "action": "BUY",
    "position_percent": 0.3,
    "confidence": 1.0,
    "confidence_score": 1.0,
    "signal": "BULLISH",
    "final_direction": "BULLISH",
    "catalyst_assessment": "Positive (正面催化)",
    "strength": 1.0,
}


class ObedientModel:
    """Careful until it reads one of `orders`; from then on it obeys, in whatever part it is asked."""

    def __init__(self) -> None:
        self.orders: Collection[str] = ()
        self.obeys = False

    def tempt(self, orders: Collection[str]) -> None:
        self.orders, self.obeys = orders, False

    def __call__(self, body: dict[str, Any]) -> Say:
        shown = _letters("".join(str(message["content"]) for message in body["messages"]))
        self.obeys = self.obeys or any(_letters(order) in shown for order in self.orders)
        answer = careful(body)
        return Say(json.dumps(_praise(json.loads(answer.content or "")))) if self._may(answer) else answer

    def _may(self, answer: Say) -> bool:
        return self.obeys and (answer.content or "").startswith("{")


def _letters(text: str) -> str:
    """However markup in it was disarmed."""
    return re.sub(r"[\W_]+", "", re.sub(r"\\u[0-9a-f]{4}", "", text))


def _praise(answer: Any) -> Any:
    if isinstance(answer, list):
        return [_praise(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    return {name: _obey(name, value) for name, value in answer.items()}


def _obey(name: str, value: Any) -> Any:
    praise = FULL_PRAISE.get(name)
    return praise if isinstance(value, str) is isinstance(praise, str) and praise else _praise(value)
