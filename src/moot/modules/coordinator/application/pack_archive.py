"""The ZIP file of a pack: the same bytes for the same files, and nothing believed of one that others made."""

import struct
from collections.abc import Collection, Mapping
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Message

LARGEST = 256 * 1024 * 1024
"""Bytes of a pack, and of all that is in it: a thousand times an ordinary session."""

LONG_AGO = (1980, 1, 1, 0, 0, 0)
END = struct.Struct("<4s4H2LH")
"""The last bytes of a ZIP file without a comment: signature, …, size of its directory, …, length of the comment."""

LARGEST_DIRECTORY = 16 * 1024
LOCATOR_64 = b"PK\x06\x07"


class BrokenPack(AppError):
    """A file that is no pack, or not the pack that Moot once wrote. Says what was noticed first."""

    code = "PACK_BROKEN"

    def __init__(self, problem: str | Message) -> None:
        super().__init__(SAY("pack.broken", problem=problem))


def zipped(files: Mapping[str, bytes]) -> bytes:
    whole = BytesIO()
    with ZipFile(whole, "w", ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            entry = ZipInfo(name, LONG_AGO)
            entry.compress_type, entry.create_system, entry.external_attr = ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, files[name])
    return whole.getvalue()


def unzipped(data: bytes, expected: Collection[str]) -> dict[str, bytes]:
    """The files of a pack, in memory; exactly those that are `expected`, each once."""
    _refuse_odd(data)
    with ZipFile(BytesIO(data)) as archive:
        entries = archive.infolist()
        _refuse_other([entry.filename for entry in entries], expected)
        left, files = LARGEST, {}
        for entry in entries:
            files[entry.filename] = _bounded(archive, entry, left)
            left -= len(files[entry.filename])
    return files


def _refuse_odd(data: bytes) -> None:
    """Before anything is unpacked: a directory of millions of names is a bomb of its own."""
    if len(data) > LARGEST:
        raise BrokenPack(SAY("pack.too_large", limit=LARGEST))
    end = END.unpack(data[-END.size :]) if len(data) >= END.size else None
    if end is None or end[0] != b"PK\x05\x06" or end[-1] or end[5] > LARGEST_DIRECTORY:
        raise BrokenPack(SAY("pack.no_zip"))
    if data[-END.size - 20 : -END.size].startswith(LOCATOR_64):
        raise BrokenPack(SAY("pack.no_zip"))


def _refuse_other(names: list[str], expected: Collection[str]) -> None:
    for name in names:
        if name not in expected:
            raise BrokenPack(SAY("pack.unexpected", name=name[:80]))
        if names.count(name) > 1:
            raise BrokenPack(SAY("pack.twice", name=name))
    for name in expected:
        if name not in names:
            raise BrokenPack(SAY("pack.missing", name=name))


def _bounded(archive: ZipFile, entry: ZipInfo, limit: int) -> bytes:
    """What an entry says of its own size is not believed."""
    with archive.open(entry) as packed:
        data = packed.read(limit + 1)
    if len(data) > limit:
        raise BrokenPack(SAY("pack.too_large", limit=LARGEST))
    return data
