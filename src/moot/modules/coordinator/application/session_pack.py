"""A session as one file to hand on: what it answered, everything that was recorded, and what vouches for it."""

import hashlib
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict
from pydantic_core import to_json

from moot.modules.coordinator.application.pack_archive import zipped
from moot.modules.coordinator.application.past_result import past_result, past_usage
from moot.modules.coordinator.application.report import render_report
from moot.modules.coordinator.application.report_page import render_page
from moot.modules.coordinator.application.session_history import SessionHistory
from moot.modules.coordinator.domain.model.session import NodeExecution, ResearchSession
from moot.modules.coordinator.domain.ports.session_record import Examine, RecordChains
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.audit import Chain, Verification
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.messages import Locale

FORMAT = 2
SESSION, NODES, MODEL_CALLS = "research_sessions", "node_executions", "llm_call_logs"
ROWS = {
    SESSION: "session.json",
    NODES: "nodes.json",
    MODEL_CALLS: "llm-calls.json",
    "external_api_call_logs": "api-calls.json",
    "decisions": "decisions.json",
}
"""The files that hold the rows of a table: in full, and as the chain's digests were made of them."""

CHAIN, MANIFEST = "chain.json", "manifest.json"
ANSWERS = ("report.md", "report.html", "result.json", "verdict.json", "evidence.json")
"""What follows from the rows."""

FILES = (*ANSWERS, *ROWS.values(), CHAIN, MANIFEST)
IN_ORDER = ("started_at", "created_at", "decided_at", "node_type", "ordinal", "attempt", "id")


class Manifest(BaseModel):
    """What is in a pack. `digest` is over the digests of all other files; `created_at` is the session's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    moot: str
    session_id: UUID
    created_at: AwareDatetime
    currency: str
    files: dict[str, str]
    digest: str


class SessionPack(NamedTuple):
    """The bytes of the ZIP file, and whether the record in it holds."""

    data: bytes
    verification: Verification


class SessionPacks:
    def __init__(self, history: SessionHistory, chains: RecordChains | None, examine: Examine) -> None:
        self._history, self._chains, self._examine = history, chains, examine

    async def pack(self, session_id: UUID, workspace_id: str, locale: Locale) -> SessionPack:
        """Raises `SessionNotFound`, or `Conflict` while the session runs. The same record makes the same bytes."""
        currency = (await self._history.result(session_id, workspace_id)).usage.currency
        if self._chains is None:
            raise Unavailable(SAY("persistence_off"), code="PERSISTENCE_OFF")
        chain = await self._chains.chain(session_id)
        files = {**record_files(chain), **answer_files(chain, currency)}
        files[MANIFEST] = manifest_file(chain, files, currency, moot_version())
        return SessionPack(zipped(files), self._examine(chain, locale))


def moot_version() -> str:
    return version("moot")


def record_files(chain: Chain) -> dict[str, bytes]:
    rows = {table: _sorted(chain.rows.get(table, {}).values()) for table in ROWS}
    files = {file: _json(rows[table]) for table, file in ROWS.items()}
    files[ROWS[SESSION]] = _json(rows[SESSION][0])
    files[CHAIN] = _json(chain.model_dump(mode="json", exclude={"rows"}))
    return files


def answer_files(chain: Chain, currency: str) -> dict[str, bytes]:
    """The session's answer, put together from its rows alone."""
    session = session_of(chain)
    nodes = [NodeExecution.model_validate(row) for row in _sorted(chain.rows[NODES].values())]
    usage = past_usage(_sorted(chain.rows[MODEL_CALLS].values()), currency)
    result = past_result(session, nodes, usage)
    ruling = {"verdict_status": result.verdict_status, "reason": result.reason, "verdict": result.verdict}
    return {
        "report.md": render_report(result).encode(),
        "report.html": render_page(result).encode(),
        "result.json": _json(result.model_dump(mode="json")),
        "verdict.json": _json(ruling),
        "evidence.json": _json({node.node_type: node.evidence for node in nodes if node.evidence}),
    }


def manifest_file(chain: Chain, files: Mapping[str, bytes], currency: str, made_by: str) -> bytes:
    digests = {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files) if name != MANIFEST}
    lines = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    manifest = Manifest(
        moot=made_by,
        session_id=chain.session_id,
        created_at=session_of(chain).created_at,
        currency=currency,
        files=digests,
        digest=hashlib.sha256(lines.encode()).hexdigest(),
    )
    return _json(manifest.model_dump(mode="json"))


def session_of(chain: Chain) -> ResearchSession:
    return ResearchSession.model_validate(chain.rows[SESSION][chain.session_id])


def _sorted(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """In the order in which things happened."""
    return sorted(rows, key=lambda row: [row[name] for name in IN_ORDER if name in row])


def _json(content: Any) -> bytes:
    return to_json(content, indent=2, inf_nan_mode="null") + b"\n"
