"""A session as a file: complete, the same bytes each time, and nothing in it can be changed unnoticed."""

import hashlib
import json
import struct
import zipfile
from collections.abc import AsyncIterator, Iterator
from io import BytesIO
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moot.desk import Moot
from moot.modules.coordinator.application import session_pack
from moot.modules.coordinator.application.report import render_report
from moot.modules.coordinator.application.session_pack import (
    ANSWERS,
    FILES,
    MANIFEST,
    ROWS,
    BrokenPack,
    check_pack,
    unzip_files,
    zip_files,
)
from moot.modules.coordinator.infrastructure.records import (
    examine_record,
    record_kinds,
)
from moot.shared.domain.errors import Conflict, NotFound, Unavailable
from moot.shared.infrastructure.audit_verification import columns_of
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.settings import Settings
from tests.coordinator.recorded import ANSWER, EVIDENCE, PROMPT, RESPONSE, Recorder, trail_of
from tests.fakes.coordinator import TECHNICAL, VERDICT

Files = dict[str, bytes]
FOR_EXAMPLE = settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture
async def desk(home, clock, database: Database) -> AsyncIterator[Moot]:
    async with Moot(Settings(home=home, database_url=database.safe_url), clock=clock) as desk:
        yield desk


@pytest.fixture
async def pack(home, clock) -> bytes:
    """A pack whose desk is gone."""
    async with Moot(Settings(home=home), clock=clock) as desk:
        session = await Recorder(trail_of(desk)).session()
        return (await desk.coordinator.session_packs().pack(session.id, "default", "en-US")).data


def check(data: bytes) -> Any:
    return check_pack(data, examine_record, "en-US")


def problem(data: bytes) -> str:
    with pytest.raises(BrokenPack) as broken:
        check(data)
    return broken.value.in_locale("en-US").removeprefix("The pack does not hold: ")


def sealed(files: Files) -> bytes:
    """As somebody would who changes a file and puts the manifest right again."""
    manifest = json.loads(files[MANIFEST])
    digests = {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files) if name != MANIFEST}
    lines = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    manifest |= {"files": digests, "digest": hashlib.sha256(lines.encode()).hexdigest()}
    return zip_files(files | {MANIFEST: as_json(manifest)})


def as_json(content: Any) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()


class TestAPack:
    async def test_holds_the_answer_and_the_whole_record(self, desk: Moot) -> None:
        session = await Recorder(trail_of(desk)).session()
        packed = await desk.coordinator.session_packs().pack(session.id, "default", "en-US")
        files = unzip_files(packed.data)
        told = {name: json.loads(files[name]) for name in FILES if name.endswith(".json")}
        result = await desk.coordinator.session_history().result(session.id, "default")

        assert files["report.md"].decode() == render_report(result)
        assert files["report.html"].startswith(b"<!doctype html>")
        assert told["result.json"] == result.model_dump(mode="json")
        assert told["verdict.json"] == {"verdict_status": "judged", "reason": None, "verdict": VERDICT}
        assert told["evidence.json"] == {TECHNICAL: EVIDENCE}
        assert (told["session.json"]["symbol"], told["session.json"]["question"]["max_cost"]) == (
            "900001.DEMO",
            1.5,
        )
        assert {node["node_type"] for node in told["nodes.json"]} == {TECHNICAL, "debate", "judge"}
        answered, failed = told["llm-calls.json"]
        assert (answered["prompt_text"], answered["completion_text"]) == (PROMPT, ANSWER)
        assert (failed["status"], failed["completion_text"]) == ("failed", None)
        assert [call["response_data"] for call in told["api-calls.json"]] == [RESPONSE]
        assert told["chain.json"]["head"] == packed.verification.head
        assert len(told["chain.json"]["links"]) == told["chain.json"]["length"] == 15
        assert (packed.verification.intact, packed.verification.links) == (True, 15)

        found = check(packed.data)
        assert (found.intact, found.compared, found.head) == (True, True, packed.verification.head)
        assert found.explanation == (
            "The record is intact: all 15 entries hold up to its head.\n"
            "The report and all other files of the pack follow from it."
        )

    async def test_is_the_same_bytes_for_the_same_record(self, desk: Moot) -> None:
        session = await Recorder(trail_of(desk)).session()
        packs = desk.coordinator.session_packs()
        first, second = [(await packs.pack(session.id, "default", "zh-CN")).data for _ in range(2)]
        assert first == second

    async def test_of_a_session_that_runs_or_is_unknown_is_refused(self, desk: Moot) -> None:
        recorder, packs = Recorder(trail_of(desk)), desk.coordinator.session_packs()
        running = await recorder.session(ended=None)
        theirs = await recorder.session(workspace="another")
        with pytest.raises(Conflict, match="still running"):
            await packs.pack(running.id, "default", "en-US")
        for unknown in (theirs.id, uuid4()):
            with pytest.raises(NotFound):
                await packs.pack(unknown, "default", "en-US")

    async def test_needs_a_desk_that_keeps_a_record(self, home) -> None:
        async with Moot(Settings(home=home, persistence=False)) as desk:
            with pytest.raises(Unavailable, match="MOOT_PERSISTENCE"):
                await desk.coordinator.session_packs().pack(uuid4(), "default", "en-US")

    async def test_of_a_real_run_holds(self, home, clock) -> None:
        async with Moot(Settings(home=home), clock=clock) as desk:
            result = await desk.research("900001.DEMO")
            packed = await desk.coordinator.session_packs().pack(
                (await desk.sessions()).items[0].id, "default", "zh-CN"
            )
        files = unzip_files(packed.data)
        assert json.loads(files["result.json"]) == result.model_dump(mode="json")
        assert check(packed.data).intact

    async def test_can_hold_every_kind_of_row_the_desk_vouches_for(self, desk: Moot) -> None:
        session = await Recorder(trail_of(desk)).session()
        await desk.coordinator.session_packs().pack(session.id, "default", "en-US")
        assert trail_of(desk).kinds == record_kinds()
        assert {kind.rows.name for kind in record_kinds().values()} == ROWS.keys()


def changed(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "!"
        case list():
            return [*value, "more"]
        case dict():
            return value | {"more": 1}
    return "something"


def with_other_fields(files: Files) -> Iterator[tuple[str, Files]]:
    """Every field of every row, one at a time."""
    for name in ROWS.values():
        count = len(json.loads(files[name])) if name != "session.json" else 1
        for number in range(count):
            rows = json.loads(files[name])
            row = rows[number] if isinstance(rows, list) else rows
            for field, value in list(row.items()):
                row[field] = changed(value)
                yield f"{name} {number} {field}", files | {name: as_json(rows)}
                row[field] = value


def with_other_rows(files: Files) -> Iterator[tuple[str, Files]]:
    for name in ROWS.values():
        rows = json.loads(files[name])
        if name == "session.json":
            yield f"{name} with a column", files | {name: as_json(rows | {"note": "x"})}
            continue
        yield f"{name} without its first", files | {name: as_json(rows[1:])}
        yield f"{name} twice", files | {name: as_json([*rows, rows[0]])}
        yield f"{name} one more", files | {name: as_json([*rows, rows[0] | {"id": str(uuid4())}])}
        yield f"{name} with a column", files | {name: as_json([rows[0] | {"note": "x"}, *rows[1:]])}
        for field in rows[0]:
            less = {key: value for key, value in rows[0].items() if key != field}
            yield f"{name} without {field}", files | {name: as_json([less, *rows[1:]])}


def with_other_links(files: Files) -> Iterator[tuple[str, Files]]:
    chain = json.loads(files["chain.json"])
    links = chain["links"]
    for field in ("session_id", "length", "head"):
        other = str(uuid4()) if field == "session_id" else changed(chain[field])
        yield f"chain {field}", files | {"chain.json": as_json(chain | {field: other})}
    for number, link in enumerate(links):
        rest = [*links[:number], *links[number + 1 :]]
        yield f"no link {number}", files | {"chain.json": as_json(chain | {"links": rest})}
        for field, value in link.items():
            other = str(uuid4()) if field == "row_id" else changed(value)
            touched = [*links[:number], link | {field: other}, *links[number + 1 :]]
            yield f"link {number} {field}", files | {"chain.json": as_json(chain | {"links": touched})}
    yield (
        "links swapped",
        files | {"chain.json": as_json(chain | {"links": [links[1], links[0], *links[2:]]})},
    )


class TestAChange:
    def test_of_any_field_row_or_link_is_found_though_the_manifest_was_put_right(self, pack: bytes) -> None:
        files = unzip_files(pack)
        assert check(sealed(files)).intact, "as it was made, it holds"
        touched = [*with_other_fields(files), *with_other_rows(files), *with_other_links(files)]
        assert len(touched) > 200
        unnoticed = []
        for what, others in touched:
            try:
                check(sealed(others))
            except BrokenPack:
                continue
            unnoticed.append(what)
        assert unnoticed == []

    def test_says_which_entry_is_not_what_was_recorded(self, pack: bytes) -> None:
        files = unzip_files(pack)
        calls = json.loads(files["llm-calls.json"])
        calls[0]["completion_text"] = "Sell everything."
        said = problem(sealed(files | {"llm-calls.json": as_json(calls)}))
        assert said == f"Entry 3 was changed: model_answer {calls[0]['id']} is not what was recorded."

    @pytest.mark.parametrize("name", ANSWERS)
    def test_of_an_answer_is_named(self, pack: bytes, name: str) -> None:
        files = unzip_files(pack)
        other = files | {name: files[name].replace(b"BUY", b"SELL") + b" "}
        assert problem(zip_files(other)) == f"{name} was changed after the pack was made."
        assert problem(sealed(other)) == f"{name} does not say what follows from the record."

    @FOR_EXAMPLE
    @given(st.data())
    def test_of_one_byte_of_a_file_is_found(self, pack: bytes, data: st.DataObject) -> None:
        files = unzip_files(pack)
        name = data.draw(st.sampled_from([name for name in FILES if name != MANIFEST]))
        place = data.draw(st.integers(0, len(files[name]) - 1))
        flipped = bytearray(files[name])
        flipped[place] ^= data.draw(st.integers(1, 255))
        assert (
            problem(zip_files(files | {name: bytes(flipped)}))
            == f"{name} was changed after the pack was made."
        )
        assert problem(sealed(files | {name: bytes(flipped)}))

    @FOR_EXAMPLE
    @given(st.data())
    def test_of_one_byte_of_the_archive_is_found_or_changes_nothing(
        self, pack: bytes, data: st.DataObject
    ) -> None:
        place = data.draw(st.integers(0, len(pack) - 1))
        flipped = bytearray(pack)
        flipped[place] ^= data.draw(st.integers(1, 255))
        try:
            found = check(bytes(flipped))
        except BrokenPack:
            return
        assert found == check(pack)
        assert unzip_files(bytes(flipped)) == unzip_files(pack)

    def test_of_the_manifest_is_found(self, pack: bytes) -> None:
        files = unzip_files(pack)
        manifest = json.loads(files[MANIFEST])
        others = {"session_id": str(uuid4()), "created_at": "2020-01-01T00:00:00Z", "digest": "0" * 64}
        for field, other in others.items():
            touched = files | {MANIFEST: as_json(manifest | {field: other})}
            assert problem(zip_files(touched)) == "manifest.json does not say what follows from the record."


class TestAnotherVersion:
    async def test_made_the_pack_so_only_what_it_handed_on_was_compared(self, desk, monkeypatch) -> None:
        session = await Recorder(trail_of(desk)).session()
        with monkeypatch.context() as then:
            then.setattr(session_pack, "version", lambda _: "0.0.7")
            then.setattr(session_pack, "render_report", lambda _: "as it was rendered then")
            data = (await desk.coordinator.session_packs().pack(session.id, "default", "en-US")).data
        found = check(data)
        assert (found.intact, found.compared, found.moot) == (True, False, "0.0.7")
        assert "The pack was made by Moot 0.0.7, another version" in found.explanation
        assert "report.md, report.html, result.json" in found.explanation

        files = unzip_files(data)
        assert problem(sealed(files | {"report.md": b"SELL"})).startswith("the record does not say that Moot")
        both = (await desk.coordinator.session_packs().pack(session.id, "default", "en-US")).data
        assert (check(both).compared, check(both).links) == (True, found.links + 1)

    @pytest.mark.parametrize("name", ANSWERS)
    def test_cannot_be_pretended_to_slip_in_another_answer(self, pack: bytes, name: str) -> None:
        files = unzip_files(pack)
        manifest = json.loads(files[MANIFEST]) | {"moot": "9.9.9"}
        made = sealed(files | {MANIFEST: as_json(manifest), name: files[name] + b" "})
        assert problem(made).startswith("the record does not say that Moot handed on these files")

    def test_with_a_form_of_its_own_is_needed_to_verify_it(self, pack: bytes) -> None:
        files = unzip_files(pack)
        manifest = json.loads(files[MANIFEST]) | {"format": 99, "moot": "9.9"}
        assert "Verify it with that version" in problem(zip_files(files | {MANIFEST: as_json(manifest)}))


def a_zip(*entries: tuple[str, bytes], comment: bytes = b"") -> bytes:
    whole = BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            entry = zipfile.ZipInfo(name)
            entry.comment = comment if name == "report.md" else b""
            archive.writestr(entry, data)
    return whole.getvalue()


def between(pack: bytes, number: int | None, more: bytes = b"hidden") -> bytes:
    """As a ZIP with bytes before that file, or before the directory, and every place in it put right."""
    directory = struct.unpack_from("<L", pack, len(pack) - 6)[0]
    with zipfile.ZipFile(BytesIO(pack)) as archive:
        places = [entry.header_offset for entry in archive.infolist()]
    here = directory if number is None else places[number]
    made = bytearray(pack[:here] + more + pack[here:])
    struct.pack_into("<L", made, len(made) - 6, directory + len(more))
    at = directory + len(more)
    for place in places:
        struct.pack_into("<L", made, at + 42, place + (len(more) if place >= here else 0))
        at += 46 + struct.unpack_from("<H", made, at + 28)[0]
    return bytes(made)


def in_a_stream(pack: bytes, more: bytes = b"hidden") -> bytes:
    """As a ZIP whose first file is said to be longer than its stream."""
    with zipfile.ZipFile(BytesIO(pack)) as archive:
        size = archive.infolist()[0].compress_size
    made = bytearray(between(pack, 1, more))
    directory = struct.unpack_from("<L", made, len(made) - 6)[0]
    for at in (18, directory + 20):
        struct.pack_into("<L", made, at, size + len(more))
    return bytes(made)


def hostile(pack: bytes) -> dict[str, tuple[bytes, str]]:
    files = unzip_files(pack)
    entries = list(files.items())
    deep = sealed(files | {"nodes.json": b"[" * 100_000 + b"]" * 100_000})
    encrypted = bytearray(pack)
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[encrypted.index(signature) + flags] |= 1
    directory = bytearray(pack)
    struct.pack_into("<L", directory, len(pack) - 10, 2**31)
    return {
        "empty": (b"", "it is not a ZIP file"),
        "a text": (b"hello " * 100, "it is not a ZIP file"),
        "cut short": (pack[:-40], "it is not a ZIP file"),
        "with a comment": (pack[:-2] + b"\x02\x00hi", "it is not a ZIP file"),
        "a directory of gigabytes": (bytes(directory), "it is not a ZIP file"),
        "another zip": (a_zip(("a.txt", b"a")), "a.txt does not belong in it."),
        "a way out": (a_zip(*entries, ("../../evil", b"")), "../../evil does not belong in it."),
        "missing": (zip_files({n: d for n, d in entries if n != "nodes.json"}), "nodes.json is missing."),
        "no JSON": (sealed(files | {"nodes.json": b"{nodes}"}), "it cannot be read (ValueError"),
        "too deep": (deep, "it cannot be read (ValueError"),
        "other JSON": (sealed(files | {"nodes.json": b"7\n"}), "it cannot be read (TypeError"),
        "no chain": (sealed(files | {"chain.json": b"{}\n"}), "it cannot be read (ValidationError"),
        "a name twice in JSON": (
            sealed(files | {"session.json": files["session.json"].replace(b"{", b'{"symbol": "FAKE",', 1)}),
            "session.json does not say what follows from the record.",
        ),
        "no manifest": (zip_files(files | {MANIFEST: b"[]"}), "it cannot be read (ValidationError"),
        "under a password": (bytes(encrypted), "answers.json: there are bytes in it"),
        "bytes before": (b"#!/bin/sh\n" + pack, "answers.json: there are bytes in it, before it"),
        "bytes after": (pack + b"\n", "it is not a ZIP file"),
        "bytes between": (between(pack, 2), "chain.json: there are bytes in it, before it"),
        "bytes before the directory": (between(pack, None), "ZIP: there are bytes in it"),
        "bytes in a stream": (in_a_stream(pack), "answers.json: there are bytes in it"),
        "a comment on a file": (a_zip(*entries, comment=b"hi"), "report.md: there are bytes in it"),
    }


HOSTILE = [
    "empty",
    "a text",
    "cut short",
    "with a comment",
    "a directory of gigabytes",
    "another zip",
    "a way out",
    "missing",
    "no JSON",
    "too deep",
    "other JSON",
    "no chain",
    "a name twice in JSON",
    "no manifest",
    "under a password",
    "bytes before",
    "bytes after",
    "bytes between",
    "bytes before the directory",
    "bytes in a stream",
    "a comment on a file",
]


class TestAHostileFile:
    @pytest.mark.parametrize("how", HOSTILE)
    def test_is_refused_with_a_sentence(self, pack: bytes, how: str) -> None:
        made = hostile(pack)
        assert list(made) == HOSTILE
        data, sentence = made[how]
        assert problem(data).startswith(sentence)

    def test_with_a_name_twice_is_refused(self, pack: bytes) -> None:
        entries = list(unzip_files(pack).items())
        with pytest.warns(UserWarning, match="Duplicate name"):
            twice = a_zip(*entries, ("report.md", b"another report"))
        assert problem(twice) == "report.md does not belong in it."

    def test_that_unpacks_to_more_than_a_pack_can_hold_is_not_unpacked(self, pack, monkeypatch) -> None:
        monkeypatch.setattr(session_pack, "LARGEST", 1_000_000)
        files = unzip_files(pack)
        bomb = zip_files(files | {"report.md": b"0" * 2_000_000})
        assert len(bomb) < 100_000
        assert problem(bomb) == "it holds more than 1,000,000 bytes."
        monkeypatch.setattr(session_pack, "LARGEST", 1000)
        assert problem(pack) == "it holds more than 1,000 bytes."

    @settings(max_examples=100)
    @given(st.binary(max_size=300))
    def test_of_any_bytes_is_refused(self, data: bytes) -> None:
        assert problem(data)


def test_every_vouched_column_has_a_place_in_the_pack(pack: bytes) -> None:
    files = unzip_files(pack)
    for table, name in ROWS.items():
        rows = json.loads(files[name])
        row = rows if isinstance(rows, dict) else rows[0]
        assert set(row) == set(columns_of(table, record_kinds()))
