"""A model that does as it is told: fills the schema it is given, with the evidence it was shown and nothing else."""

import json
import re
from typing import Any

from tests.fakes.llm_server import Say

ON_THE_TABLE = r"^- (\S+) \| {side} \| [^|]+ \| (\S+) \| .+ \| [^|]+[:：]\s?(\w+\.\w+)"
"""A claim that rests on figures: its id, its dimension and the first of them."""
SIDES = {"bull": ("for buying|支持买入", "against buying|反对买入")}
SIDES["bear"] = SIDES["bull"][::-1]
SENTENCE = {
    True: "证据相互印证，结论稳健，仍需留意风险与数据缺口，置信度随证据一致而定。",
    False: "The evidence points one way and the conclusion rests on it; risks and gaps in the data remain. ",
}
MOST = {"dimension_analyses": 9, "risk_matrix": 3, "key_disagreements": 2, "risk_warnings": 2}
OWN = {
    "confidence": 0.6,
    "confidence_score": 0.6,
    "position_percent": 0.0,
    "score": 60,
    "financial_score": 60,
}
PREFERRED = {"BULLISH", "HOLD", "Favorable (有利)", "Fair"}
"""Where nothing says which. `Fair` is what no price refutes."""


def careful(body: dict[str, Any]) -> Say:
    """Answers a request with a schema; without one it says a word."""
    held = body.get("response_format", {}).get("json_schema")
    if held is None:
        return Say("ok")
    prompt = body["messages"][1]["content"]
    schema = held["schema"]
    filler = _Filler(schema.get("$defs", {}), prompt)
    answer = filler.plead() if "core_thesis" in schema["properties"] else filler.fill(schema)
    return Say(json.dumps(answer, ensure_ascii=False))


class _Filler:
    def __init__(self, definitions: dict[str, Any], prompt: str) -> None:
        self._definitions, self._prompt = definitions, prompt
        self._sentence = SENTENCE["研判事项" in prompt]

    def fill(self, schema: dict[str, Any], name: str = "", place: int = 0) -> Any:
        if "$ref" in schema:
            return self.fill(self._definitions[schema["$ref"].rpartition("/")[2]], name, place)
        allowed = schema.get("enum", [schema["const"]] if "const" in schema else [])
        if allowed:
            return self._choice(allowed, name, place)
        match schema["type"]:
            case "object":
                return {key: self.fill(part, key, place) for key, part in schema["properties"].items()}
            case "array":
                return self._list(schema["items"], name)
            case "string":
                return self._sentence * (10 if name == "narrative_report" else 1)
        return OWN[name] if name in OWN else self._given(name)

    def _choice(self, allowed: list[str], name: str, place: int) -> str:
        if name == "dimension":
            return allowed[place % len(allowed)]
        return next((one for one in allowed if one in PREFERRED), allowed[0])

    def _list(self, items: dict[str, Any], name: str) -> list[Any]:
        if name == "information_sources":
            return re.findall(r"[a-z]+://[\w./-]+", self._prompt)[:1]
        if name == "claims":
            return []  # it has nothing to add to what the rules found
        count = MOST.get(name, 1)
        if name == "dimension_analyses":
            named = self._definitions[items["$ref"].rpartition("/")[2]]["properties"]["dimension"]
            count = len(self._definitions[named["$ref"].rpartition("/")[2]]["enum"])
        return [self.fill(items, name, place) for place in range(count)]

    def plead(self) -> dict[str, Any]:
        """The strongest claim of its side said again, and held against the strongest of the other."""
        role = re.findall(r"[:：]\s?debate\.(bull|bear)\.", self._prompt)[-1]
        own, other = (
            re.search(ON_THE_TABLE.replace("{side}", f"(?:{side})"), self._prompt, re.MULTILINE)
            for side in SIDES[role]
        )
        said = (
            {"says": self._sentence, "dimension": own[2], "evidence": [own[3]], "strength": 0.4}
            if own
            else {}
        )
        reply = (
            {"kind": "attack", "claim": other[1], "by": own[1], "why": self._sentence}
            if own and other
            else {}
        )
        return {
            "core_thesis": self._sentence,
            "claims": [said] if said else [],
            "relations": [reply] if reply else [],
            "narrative_report": self._sentence * 10,
        }

    def _given(self, name: str) -> float:
        """A level is the one of the evidence."""
        found = re.search(rf"^technical\.{name} \| ([0-9.]+)", self._prompt, re.MULTILINE)
        assert found, f"no evidence for {name}"
        return float(found[1])
