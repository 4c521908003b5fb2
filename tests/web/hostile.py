"""Words of strangers put wherever a session keeps words, past everything that would have refused them."""

import json
from collections.abc import Iterator, Set
from itertools import cycle
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import select

from moot.desk import Moot
from moot.modules.coordinator.infrastructure.tables import NodeExecutionRow, ResearchSessionRow
from moot.modules.llm_platform.infrastructure.tables import LLMCallLog

CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "agentdojo_workspace_banking.jsonl"
TAGS = (
    *("script", "img src=x onerror", "svg onload", "iframe srcdoc", "body onload", "a href", "base href"),
    *(
        "math",
        "style",
        "link rel=stylesheet href",
        "meta http-equiv=refresh content",
        "object data",
        "form action",
    ),
)
ENDINGS = (
    "",
    '"',
    "'",
    "-->",
    "]]>",
    "</script>",
    "</title>",
    "</textarea>",
    "</svg>",
    "</style>",
    "\x00",
    "\u202e",
)
MODEL = "<img src=x onerror=window.pwned=1>"
BREAKS = (
    "{value}",
    '"{value}',
    "'{value}",
    "><{value}",
    "{{{{7*7}}}}{value}",
    "{{% raw %}}{value}",
    "&lt;{value}",
)
LITERALS = {
    *(
        "id",
        "kind",
        "expert",
        "dimension",
        "side",
        "by",
        "direction",
        "action",
        "engine",
        "as_of",
        "day",
        "unit",
    ),
    *(
        "contests",
        "target",
        "scheme",
        "probability",
        "impact",
        "session_id",
        "symbol",
        "experts",
        "heard",
        "horizon",
    ),
    *("decisive", "evidence_ids", "signal", "valuation_verdict", "macro_environment", "catalyst_assessment"),
    *("data_until", "price_series", "trade", "weights", "experts_heard"),
}
"""What code reads and no reader sees as words: it would not get this far."""


def hostile_texts() -> list[str]:
    made = [
        break_.format(value=f"<{tag}=window.pwned=1>{end}")
        for tag in TAGS
        for end in ENDINGS
        for break_ in BREAKS
    ]
    made += [f"javascript:window.pwned={n}" for n in range(20)]
    if not CORPUS.is_file():
        return made
    rows = map(json.loads, CORPUS.read_text(encoding="utf-8").splitlines())
    return made + sorted({f"{row['goal']} {json.dumps(row['calls'])}" for row in rows if row["goal"]})


def poison(value: Any, texts: Iterator[str], name: str = "", *, kept: Set[str] = LITERALS) -> Any:
    """The same shape, with other words. A claim's `evidence` are ids, and so is a relation's `source`."""
    if isinstance(value, dict):
        ids = {"source"} if "target" in value else set()
        return {
            key: inner if key in ids | kept else poison(inner, texts, key, kept=kept)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [
            inner if name == "evidence" and isinstance(inner, str) else poison(inner, texts, name, kept=kept)
            for inner in value
        ]
    return value if not isinstance(value, str) or _is_day(value) else next(texts)


def _is_day(text: str) -> bool:
    return text[:4].isdecimal() and text[4:5] in {"-", "Q"} and len(text) <= 32


async def poison_session(desk: Moot, session_id: str) -> int:
    """How many different texts were put in."""
    used = set[str]()

    def take() -> Iterator[str]:
        for text in cycle(hostile_texts()):
            used.add(text)
            yield text

    texts, known = take(), UUID(session_id)
    assert desk.database is not None
    async with desk.database.session() as db, db.begin():
        for node in await db.scalars(select(NodeExecutionRow).where(NodeExecutionRow.session_id == known)):
            node.result_data, node.evidence = poison(node.result_data, texts), poison(node.evidence, texts)
            node.narrative_report = next(texts)
        for call in await db.scalars(select(LLMCallLog).where(LLMCallLog.session_id == known)):
            call.prompt_text, call.completion_text = next(texts), next(texts)
            call.model_name = MODEL
        session = await db.get_one(ResearchSessionRow, known)
        session.reason = session.reason and next(texts)
    return len(used)
