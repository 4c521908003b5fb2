"""A session as one file to hand on: what it answered, everything that was recorded, and what vouches for it."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from io import BytesIO
from typing import Any, NamedTuple
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo
from zlib import MAX_WBITS, crc32, decompressobj

from pydantic import AwareDatetime, BaseModel
from pydantic_core import from_json, to_json

from moot.modules.coordinator.application.report import render_page, render_report
from moot.modules.coordinator.application.results import past_result
from moot.modules.coordinator.domain.model.session import NodeExecution, ResearchSession
from moot.modules.coordinator.domain.ports.research_session_repository import IResearchSessionRepository
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.audit import Chain, Verification
from moot.shared.domain.errors import AppError, Conflict
from moot.shared.domain.messages import Locale, Message

Files = Mapping[str, bytes]
Examine = Callable[[Chain, Locale], Verification]
"""Whether a chain holds, said in that language. Needs nothing but the chain."""

FORMAT = 3
SESSION, NODES, MODEL_CALLS = "research_sessions", "node_executions", "llm_call_logs"
BOUND = "session_answers"
ROWS = {
    SESSION: "session.json",
    NODES: "nodes.json",
    MODEL_CALLS: "llm-calls.json",
    "external_api_call_logs": "api-calls.json",
    "decisions": "decisions.json",
    "escalations": "escalations.json",
    "session_events": "events.json",
    BOUND: "answers.json",
}
"""The files that hold the rows of a table: in full, and as the chain's digests were made of them."""

CHAIN, MANIFEST = "chain.json", "manifest.json"
ANSWERS = ("report.md", "report.html", "result.json", "verdict.json", "evidence.json")
"""What follows from the rows. The chain holds their digests, too."""

FILES = (*ANSWERS, *ROWS.values(), CHAIN, MANIFEST)
IN_ORDER = (
    *("started_at", "created_at", "decided_at", "requested_at"),
    *("node_type", "ordinal", "attempt", "seq", "moot", "id"),
)

LARGEST = 256 * 1024 * 1024
"""Bytes of a pack, and of all that is in it: a thousand times an ordinary session."""

UNUSABLE = ("unreadable", "gone")
"""Of a record that is broken otherwise a pack can still be made, which shows how."""

LONG_AGO = (1980, 1, 1, 0, 0, 0)
END, LOCATOR_64 = b"PK\x05\x06", b"PK\x06\x07"
DIRECTORY_ENTRY, DIRECTORY_END = 46, 22
"""Bytes of a name in a ZIP's directory, beside the name, and of the end of the directory."""
LARGEST_DIRECTORY = 16 * 1024


class Manifest(BaseModel, frozen=True, extra="forbid"):
    """What is in a pack. `digest` is over the digests of all other files; `created_at` is the session's."""

    format: int = FORMAT
    moot: str
    session_id: UUID
    created_at: AwareDatetime
    currency: str
    files: dict[str, str]
    digest: str


class BrokenPack(AppError, code="PACK_BROKEN"):
    """A file that is no pack, or not the pack that Moot once wrote. Says what was noticed first."""

    def __init__(self, problem: str | Message) -> None:
        super().__init__(SAY("pack.broken", problem=problem))


class PackVerification(Verification):
    """`moot` made the pack. Only the same version can tell whether the answers in it follow from the rows."""

    moot: str
    compared: bool


class SessionPack(NamedTuple):
    """The bytes of the ZIP file, and whether the record in it holds."""

    data: bytes
    verification: Verification


class SessionPacks:
    def __init__(self, repository: IResearchSessionRepository, currency: str, examine: Examine) -> None:
        self._repository, self._currency, self._examine = repository, currency, examine

    async def pack(self, session_id: UUID, workspace_id: str, locale: Locale) -> SessionPack:
        """Raises `SessionNotFound`, or `Conflict` while the session runs. The same record makes the same bytes."""
        found = await self._repository.verify(session_id, workspace_id, locale)
        if found.first_break and found.first_break.problem in UNUSABLE:
            raise Conflict(found.explanation, code="RECORD_BROKEN")
        await self._repository.past_session(session_id, workspace_id)
        chain = await self._repository.chain(session_id)
        answers = answer_files(chain, self._currency)
        digests = _digest(answers)
        if found.intact and not _is_bound(chain, version("moot"), digests):
            await self._repository.bind_answer(session_id, version("moot"), digests)
            chain = await self._repository.chain(session_id)
        files = {**record_files(chain), **answers}
        files[MANIFEST] = manifest_file(chain, files, self._currency, version("moot"))
        return SessionPack(zip_files(files), found if not found.intact else self._examine(chain, locale))


def record_files(chain: Chain) -> dict[str, bytes]:
    rows = {table: _sort(chain.rows.get(table, {}).values()) for table in ROWS}
    files = {file: _json(rows[table]) for table, file in ROWS.items()}
    files[ROWS[SESSION]] = _json(rows[SESSION][0])
    files[CHAIN] = _json(chain.model_dump(mode="json", exclude={"rows"}))
    return files


def answer_files(chain: Chain, currency: str) -> dict[str, bytes]:
    """The session's answer, put together from its rows alone."""
    session = session_of(chain)
    nodes = [NodeExecution.model_validate(row) for row in _sort(chain.rows[NODES].values())]
    result = past_result(session, nodes, _sort(chain.rows[MODEL_CALLS].values()), currency)
    ruling = {"verdict_status": result.verdict_status, "reason": result.reason, "verdict": result.verdict}
    return {
        "report.md": render_report(result).encode(),
        "report.html": render_page(result).encode(),
        "result.json": _json(result.model_dump(mode="json")),
        "verdict.json": _json(ruling),
        "evidence.json": _json({node.node_type: node.evidence for node in nodes if node.evidence}),
    }


def _digest(files: Files) -> dict[str, str]:
    return {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files) if name != MANIFEST}


def _is_bound(chain: Chain, moot: str, digests: Mapping[str, str]) -> bool:
    """Whether the record says that this version handed on these files."""
    return any(row["moot"] == moot and row["files"] == digests for row in chain.rows[BOUND].values())


def manifest_file(chain: Chain, files: Files, currency: str, made_by: str) -> bytes:
    digests = _digest(files)
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


def _sort(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """In the order in which things happened."""
    return sorted(rows, key=lambda row: [row[name] for name in IN_ORDER if name in row])


def _json(content: Any) -> bytes:
    return to_json(content, indent=2, inf_nan_mode="null") + b"\n"


def check_pack(data: bytes, examine: Examine, locale: Locale) -> PackVerification:
    """Raises `BrokenPack`, which names the first thing that does not hold."""
    try:
        return _verify(unzip_files(data), examine, locale)
    except AppError:
        raise
    except Exception as e:  # bulkhead: a file made to do harm may break any reader, and must get no further
        reason = f"{type(e).__name__}: {e}".splitlines()[0][:200]
        raise BrokenPack(SAY("pack.unreadable", reason=reason)) from e


def _verify(files: Files, examine: Examine, locale: Locale) -> PackVerification:
    manifest = _manifest(files)
    chain = _chain(files)
    found = examine(chain, locale)
    if not found.intact:
        raise BrokenPack(found.explanation)
    bound = _is_bound(chain, manifest.moot, _digest({name: files[name] for name in ANSWERS}))
    compared = manifest.moot == version("moot")
    made = record_files(chain) | (answer_files(chain, manifest.currency) if compared else {})
    made[MANIFEST] = manifest_file(chain, files, manifest.currency, manifest.moot)
    for name, content in made.items():
        if files[name] != content:
            raise BrokenPack(SAY("pack.other", name=name))
    if not bound:
        raise BrokenPack(SAY("pack.unbound", answers=list(ANSWERS)))
    key = "pack.holds" if compared else "pack.not_compared"
    said = SAY(key, made_by=manifest.moot[:40], answers=list(ANSWERS)).in_locale(locale)
    known = found.model_dump() | {"explanation": f"{found.explanation}\n{said}"}
    return PackVerification(**known, moot=manifest.moot, compared=compared)


def _manifest(files: Files) -> Manifest:
    """A file that was merely changed is found here, by name; a manifest that was changed along with it, later."""
    manifest = Manifest.model_validate_json(files[MANIFEST])
    if manifest.format != FORMAT:
        raise BrokenPack(SAY("pack.other_format", made_by=manifest.moot[:40]))
    for name in sorted(set(files) - {MANIFEST}):
        if hashlib.sha256(files[name]).hexdigest() != manifest.files.get(name):
            raise BrokenPack(SAY("pack.changed", name=name))
    return manifest


def _chain(files: Files) -> Chain:
    """Of a row that is there twice one is left, and the file is found to be another."""
    read = {table: from_json(files[file]) for table, file in ROWS.items()}
    read[SESSION] = [read[SESSION]]
    rows = {table: {UUID(row["id"]): row for row in found} for table, found in read.items()}
    return Chain.model_validate(from_json(files[CHAIN]) | {"rows": rows})


def zip_files(files: Files) -> bytes:
    whole = BytesIO()
    with ZipFile(whole, "w", ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            entry = ZipInfo(name, LONG_AGO)
            entry.compress_type, entry.create_system, entry.external_attr = ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, files[name])
    return whole.getvalue()


def unzip_files(data: bytes) -> dict[str, bytes]:
    """The files of a pack, in memory; exactly those that belong in one, each once, and nothing around them."""
    _refuse_odd(data)
    with ZipFile(BytesIO(data)) as archive:
        entries = archive.infolist()
    if odd := Counter(entry.filename for entry in entries) - Counter(FILES):
        raise BrokenPack(SAY("pack.unexpected", name=next(iter(odd))[:80]))
    if missing := set(FILES).difference(entry.filename for entry in entries):
        raise BrokenPack(SAY("pack.missing", name=min(missing)))
    if sum(entry.file_size for entry in entries) > LARGEST:
        raise BrokenPack(SAY("pack.too_large", limit=LARGEST))
    return _unpack(data, sorted(entries, key=lambda entry: entry.header_offset))


def _refuse_odd(data: bytes) -> None:
    """Before anything is unpacked: a directory of millions of names is a bomb of its own."""
    if len(data) > LARGEST:
        raise BrokenPack(SAY("pack.too_large", limit=LARGEST))
    end, before = data[-DIRECTORY_END:], data[-42:-DIRECTORY_END]
    size = int.from_bytes(end[12:16], "little")
    if not end.startswith(END) or size > LARGEST_DIRECTORY or before.startswith(LOCATOR_64):
        raise BrokenPack(SAY("pack.no_zip"))


def _unpack(data: bytes, entries: Iterable[ZipInfo]) -> dict[str, bytes]:
    """File after file, from the first byte to the last: each begins where the one before it ended."""
    files, place, directory = {}, 0, 0
    for entry in entries:
        header = entry.FileHeader(zip64=False)
        if not data.startswith(header, place) or entry.header_offset != place or entry.comment or entry.extra:
            raise BrokenPack(SAY("pack.padded", name=entry.filename))
        begin = place + len(header)
        place = begin + entry.compress_size
        files[entry.filename] = _inflate(data[begin:place], entry)
        directory += DIRECTORY_ENTRY + len(entry.filename)
    if place + directory + DIRECTORY_END != len(data):
        raise BrokenPack(SAY("pack.padded", name="ZIP"))
    return files


def _inflate(packed: bytes, entry: ZipInfo) -> bytes:
    """No more than the entry says it holds, whatever comes out of it, and nothing after that."""
    inflating, content, whole = decompressobj(-MAX_WBITS), packed, entry.compress_type == ZIP_STORED
    if entry.compress_type == ZIP_DEFLATED:
        content = inflating.decompress(packed, entry.file_size + 1)
        whole = inflating.eof and not inflating.unused_data
    if entry.flag_bits or not whole or len(content) != entry.file_size or crc32(content) != entry.CRC:
        raise BrokenPack(SAY("pack.padded", name=entry.filename))
    return content
