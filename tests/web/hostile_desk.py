"""A desk with something on every page, and the words of strangers wherever a page shows words."""

import csv
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
from pydantic import SecretStr
from sqlalchemy import select

from moot.desk import Moot
from moot.modules.access.infrastructure import ApiKeyRow
from moot.modules.coordinator.infrastructure.tables import NodeExecutionRow, ResearchSessionRow
from moot.modules.governance.infrastructure.persistence.tables import EscalationRow
from moot.modules.intake.infrastructure.conversations import ConversationRow
from moot.modules.jobs.application.destinations import DestinationBody
from moot.modules.jobs.infrastructure.batch_store import BatchRow
from moot.modules.jobs.infrastructure.causes import DestinationRow
from moot.modules.jobs.infrastructure.schedule_store import ScheduleRow, ScheduleRunRow
from moot.modules.jobs.infrastructure.watch_store import WatchedSymbolRow
from moot.modules.llm_platform.infrastructure.tables import LLMConfigRow
from moot.modules.market_data.domain.facts import COMPANIES
from moot.shared.infrastructure.tables import ExternalAPICallLog
from tests.web.hostile import LITERALS, hostile_texts, poison

API = "/api/v1"
SHOWN: Mapping[Any, tuple[str, ...]] = {
    ApiKeyRow: ("name",),
    BatchRow: ("name", "requested_by", "reason", "left_out"),
    ConversationRow: ("requested_by", "title", "turns"),
    ExternalAPICallLog: (
        *("service_name", "operation", "request_params"),
        *("response_data", "error_message"),
    ),
    DestinationRow: ("name", "facts"),
    EscalationRow: (
        *("decision_type", "payload", "context", "why", "requester"),
        *("decided_by", "reason", "approved_payload"),
    ),
    LLMConfigRow: ("facts",),
    NodeExecutionRow: ("error_message",),
    ResearchSessionRow: ("requested_by", "trigger_source", "reason"),
    ScheduleRow: ("facts",),
    ScheduleRunRow: ("facts",),
    WatchedSymbolRow: ("list_name",),
}
"""By table, what pages show of it. Names of schedules and the words of rules are hostile from the beginning."""
CODE = LITERALS | {
    *("at", "batch_id", "every", "events", "id", "intent", "locale", "market", "occasions", "period"),
    *("question_kind", "status", "step_id", "url", "style", "type", "provider_type", "schedule_id"),
    *("handed_locale", "detected_locale", "escalation_id", "after", "how", "scope", "companies", "mentions"),
}
"""What code reads of that."""
MOUTHFUL, SHORT = 80, 64
TELLING = "<img src=x onerror=window.pwned=1>"
"""What names a file too."""
NAME = re.compile(r"[^\s/?#%]{1,64}")
"""What a schedule may be called."""
CITED = [
    {"title": "t", "url": "https://example.com/", "quote": "q", "source": "s"},
    {"title": "t", "url": "javascript:window.pwned=1", "quote": "q", "source": "s"},
]
"""Beside what the desk cites by itself."""


async def prepare(client: httpx.AsyncClient) -> dict[str, str]:
    """Something on every page; by the name of its kind, where one of it is found."""

    async def send(path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await client.post(f"{API}{path}", json=body, headers={"Accept": "application/json"})
        assert answer.is_success, answer.text
        told: dict[str, Any] = answer.json()
        return told

    asked = {"symbol": "900001.DEMO", "experts": ["macro_intelligence"], "skip_debate": True}
    session = await send("/coordinator/research", asked)
    asked = {"question": "Is 900001.DEMO cheap?", "auto_accepted_plan": True}
    talk = await send("/coordinator/intake", asked)
    batch = await send("/batches", {"universe": ["900001.DEMO", "nobody"], "skip_unknown": True, "top": 0})
    await send("/watchlists", {"symbols": ["900001.DEMO", "600519.SH"]})
    accepted = [text for text in hostile_texts() if "\0" not in text]
    words, names = iter(accepted), [text for text in accepted if NAME.fullmatch(text)][:3]
    for name in names:
        await send("/schedules", {"name": name, "request": {"universe": ["900001.DEMO"], "locale": "en-US"}})
    await send(f"/schedules/{quote(names[0])}/run", {})
    for number in range(4):
        await send("/coordinator/rules", rule(number, words))
    waiting, decided = [
        (await send("/coordinator/decisions", decision(n)))["escalation_id"] for n in range(2)
    ]
    changed = {"reason": "r", "by": "b", "payload": decision(2)["payload"]}
    await send(f"/coordinator/escalations/{decided}/edit", changed)
    model = {
        "alias": "m",
        "base_url": "http://127.0.0.1:1/v1",
        "model_name": "m",
        "api_key": "k",
        "vendor": "v",
    }
    await send("/llm-platform/configs", model)
    return {
        "session": f"/sessions/{session['session_id']}",
        "record": f"/sessions/{session['session_id']}/record",
        "call": f"/sessions/{session['session_id']}/calls/data/1",
        "talk": f"/ask/{talk['id']}",
        "batch": f"/batches/{batch['id']}",
        "schedule": f"/schedules/{quote(names[0])}",
        "rule": "/rules/team.r0",
        "rule set": "/rules/sets/1",
        "waiting": f"/approvals/{waiting}",
        "decided": f"/approvals/{decided}",
    }


def decision(number: int) -> dict[str, Any]:
    """One that a person has to answer."""
    payload = {"tool": "database", "args": {"sql": f"SELECT {number}"}}
    return {"decision_type": "tool_call", "payload": payload, "context": {"open_breakers": ["tushare"]}}


def rule(number: int, words: Iterator[str]) -> dict[str, Any]:
    told = {locale: next(words) for locale in ("zh-CN", "en-US")}
    return {
        "id": f"team.r{number}",
        "name": next(words)[:200],
        "description": " ".join(islice(words, 20)),
        "category": "behavior",
        "condition": "payload.action == 'BUY'",
        "action": "log_warning",
        "decision_types": ["verdict"],
        "metadata": {"suggestion": told, "because": next(words)},
        "examples": [
            {"violates": True, "payload": {"action": "BUY", "note": next(words)}},
            {"violates": False, "payload": {"action": "HOLD"}},
        ],
    }


async def settle(desk: Moot, folder: Path) -> None:
    """What has no door of its own: shares whose names somebody else has written, from sources they named, in a file
    of theirs among others; a key, and who is told."""
    await desk.access.create("k", ["read"], "default")
    told = DestinationBody(name="d", kind="webhook", url=SecretStr("http://127.0.0.1:1/"))
    await desk.jobs.destinations("default").add(told)
    file, texts = folder / "companies.csv", [text.replace("\0", "") for text in hostile_texts()[:40]]
    with file.open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["symbol", "name", "name_en", "industry", "industry_en", "list_date"])
        for number, text in enumerate(texts):
            rows.writerow([f"{600519 + number}.SH", *[text] * 4, "2001-08-27"])
    imports, at = desk.market_data.imports(), datetime.now(UTC)
    await imports.bring_in(file, None)
    kept = await imports.store.read(COMPANIES, "CN")
    sourced = [one.model_copy(update={"source": text}) for one, text in zip(kept, texts, strict=True)]
    imports.store.store(COMPANIES, "CN", sourced, covered=None, at=at)
    next((folder / "lake").rglob("*.parquet")).with_name(f"{TELLING}.parquet").write_bytes(b"x")


async def poison_desk(desk: Moot) -> None:
    """Past everything that would have refused them; where a column is all text, as many of them as a mouth holds."""
    texts, short = (
        cycle(hostile_texts()),
        cycle(text for text in hostile_texts() if len(text) <= SHORT and "\0" not in text),
    )
    mouthfuls = (" ".join(islice(texts, MOUTHFUL)) for _ in cycle([None]))
    assert desk.database is not None
    async with desk.database.session() as db, db.begin():
        asked = {"created_at": datetime.now(UTC), "status": "failed", "request_params": {"q": "x"}}
        said = dict.fromkeys(("service_name", "operation", "response_data", "error_message"), "x")
        for session in await db.scalars(select(ResearchSessionRow.id)):
            db.add(ExternalAPICallLog(id=uuid4(), session_id=session, **asked, **said))
        await db.flush()
        for talk in await db.scalars(select(ConversationRow)):
            talk.turns = deepcopy(talk.turns)
            talk.turns[0]["answer"]["citations"] += CITED
        for table, fields in SHOWN.items():
            for row in await db.scalars(select(table)):
                for name in fields:
                    told = getattr(row, name)
                    setattr(row, name, poison(told, mouthfuls if isinstance(told, str) else short, kept=CODE))
