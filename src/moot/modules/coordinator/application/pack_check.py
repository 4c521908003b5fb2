"""Examines a pack on any machine: no desk, no database, no settings, and no trust in who made the file."""

import hashlib
from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from moot.modules.coordinator.application.pack_archive import BrokenPack, unzipped
from moot.modules.coordinator.application.session_pack import (
    ANSWERS,
    CHAIN,
    FILES,
    FORMAT,
    MANIFEST,
    ROWS,
    SESSION,
    Manifest,
    answer_files,
    manifest_file,
    moot_version,
    record_files,
)
from moot.modules.coordinator.domain.ports.session_record import Examine
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.audit import Chain, Verification
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Locale

M = TypeVar("M", bound=BaseModel)
Files = Mapping[str, bytes]


class PackVerification(Verification):
    """`moot` made the pack. Only the same version can tell whether the answers in it follow from the rows."""

    moot: str
    compared: bool


def check_pack(data: bytes, examine: Examine, locale: Locale) -> PackVerification:
    """Raises `BrokenPack`, which names the first thing that does not hold."""
    try:
        return _checked(data, examine, locale)
    except AppError:
        raise
    except Exception as e:  # bulkhead: a file made to do harm may break any reader, and must get no further
        raise BrokenPack(SAY("pack.unreadable", reason=f"{type(e).__name__}: {e}"[:200])) from e


def _checked(data: bytes, examine: Examine, locale: Locale) -> PackVerification:
    files = unzipped(data, FILES)
    manifest = _manifest(files)
    chain = _chain(files)
    _compare(files, record_files(chain), "malformed")
    found = examine(chain, locale)
    if not found.intact:
        raise BrokenPack(found.explanation)
    compared = manifest.moot == moot_version()
    if compared:
        _compare(files, answer_files(chain, manifest.currency), "other_answer")
    made = manifest_file(chain, files, manifest.currency, manifest.moot)
    _compare(files, {MANIFEST: made}, "malformed")
    return _verified(found, manifest, compared, locale)


def _manifest(files: Files) -> Manifest:
    """A file that was merely changed is found here, by name; a manifest that was changed along with it, later."""
    manifest = _model(Manifest, MANIFEST, from_json(files[MANIFEST]))
    if manifest.format != FORMAT:
        raise BrokenPack(SAY("pack.other_format", made_by=manifest.moot[:40]))
    for name in sorted(set(files) - {MANIFEST}):
        if hashlib.sha256(files[name]).hexdigest() != manifest.files.get(name):
            raise BrokenPack(SAY("pack.changed", name=name))
    return manifest


def _chain(files: Files) -> Chain:
    rows = {table: _by_id(file, from_json(files[file])) for table, file in ROWS.items()}
    chain = _model(Chain, CHAIN, from_json(files[CHAIN]) | {"rows": rows})
    if list(chain.rows[SESSION]) != [chain.session_id]:
        raise BrokenPack(SAY("pack.malformed", name=ROWS[SESSION]))
    return chain


def _by_id(file: str, rows: Any) -> dict[UUID, dict[str, Any]]:
    """Of a row that is there twice one is left, and the file is found to be another."""
    return {UUID(row["id"]): row for row in ([rows] if file == ROWS[SESSION] else rows)}


def _model(model: type[M], name: str, content: Any) -> M:
    try:
        return model.model_validate(content)
    except ValidationError as e:
        raise BrokenPack(SAY("pack.malformed", name=name)) from e


def _compare(files: Files, made: Files, problem: str) -> None:
    for name, content in made.items():
        if files[name] != content:
            raise BrokenPack(SAY(f"pack.{problem}", name=name))


def _verified(found: Verification, manifest: Manifest, compared: bool, locale: Locale) -> PackVerification:
    made_by, answers = manifest.moot[:40], list(ANSWERS)
    said = SAY("pack.holds") if compared else SAY("pack.not_compared", made_by=made_by, answers=answers)
    known = found.model_dump()
    known["explanation"] = f"{found.explanation}\n{said.in_locale(locale)}"
    return PackVerification(**known, moot=manifest.moot, compared=compared)
