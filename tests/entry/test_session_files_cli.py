"""`moot sessions export`, `verify` of a file, and `prune`, as a user runs them."""

import re
import sqlite3
import zipfile
from pathlib import Path

import pytest
from rich import filesize

from moot.desk import Moot
from moot.modules.coordinator.application import session_pack
from moot.shared.infrastructure.settings import Settings
from tests.coordinator.recorded import Recorder, trail_of
from tests.coordinator.test_session_pruning import LAST_YEAR

NOBODY = "7d3c8a52-0c3e-4f0e-9d0a-5b1f6a1c2e3d"


async def a_session(home: Path) -> str:
    """One that ended last year, with all its texts."""
    async with Moot(Settings(home=home)) as desk:
        return str((await Recorder(trail_of(desk), LAST_YEAR).session(ended=LAST_YEAR)).id)


def sql(home: Path, statement: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(home / "moot.db") as db:
        found = db.execute(statement).fetchall()
    db.close()
    return found


class TestExport:
    async def test_writes_a_pack_that_verifies_on_a_machine_without_a_desk(self, moot, home, tmp_path):
        session, file = await a_session(home), tmp_path / "session.zip"
        made = await moot("sessions", "export", session, "--pack", str(file))
        assert (made.returncode, made.stderr) == (0, "")
        packed, record, head = made.stdout.splitlines()
        assert packed == f"Packed: {file} ({filesize.decimal(file.stat().st_size)})"
        assert record == "The record is intact: all 15 entries hold up to its head."
        (digest,) = re.findall("[0-9a-f]{64}", head)
        assert len(zipfile.ZipFile(file).namelist()) == 15

        elsewhere = {"MOOT_HOME": str(tmp_path / "nothing"), "MOOT_NODE_TIMEOUT": "wrong"}
        seen = await moot("sessions", "verify", str(file), **elsewhere)
        assert (seen.returncode, seen.stderr) == (0, "")
        assert "The report and all other files of the pack follow from it." in seen.stdout
        assert f"Session {session}, head of the record: {digest}." in seen.stdout
        assert not (tmp_path / "nothing").exists()
        chinese = await moot("sessions", "verify", str(file), LANG="zh_CN.UTF-8")
        assert chinese.stdout.startswith(
            "记录完整：15 条记录与链头全部相符。\n报告及包内其他文件均与记录相符。\n"
        )

    async def test_replaces_no_file_unless_told_to(self, moot, home, tmp_path):
        session, file = await a_session(home), tmp_path / "session.zip"
        file.write_text("mine")
        refused = await moot("sessions", "export", session, "--pack", str(file))
        assert (refused.returncode, refused.stdout, file.read_text()) == (2, "", "mine")
        assert f"{file} is there already. Choose another name, or replace it with --force." in refused.stderr
        assert (await moot("sessions", "export", session, "--pack", str(file), "--force")).returncode == 0
        assert zipfile.is_zipfile(file)
        assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []

    async def test_says_what_is_in_the_way(self, moot, home, tmp_path):
        session = await a_session(home)
        nowhere = await moot("sessions", "export", session, "--pack", str(tmp_path / "no" / "x.zip"))
        assert (nowhere.returncode, "cannot be written: No such file" in nowhere.stderr) == (1, True)
        unknown = await moot("sessions", "export", NOBODY, "--pack", str(tmp_path / "x.zip"))
        assert (unknown.returncode, "There is no session" in unknown.stderr) == (1, True)
        malformed = await moot("sessions", "export", "x", "--pack", str(tmp_path / "x.zip"))
        assert (malformed.returncode, "is not an id" in malformed.stderr) == (2, True)
        sql(home, "UPDATE research_sessions SET status = 'running'")
        running = await moot("sessions", "export", session, "--pack", str(tmp_path / "x.zip"))
        assert (running.returncode, "is still running" in running.stderr) == (1, True)
        assert not (tmp_path / "x.zip").exists()

    async def test_of_a_broken_record_says_so(self, moot, home, tmp_path):
        session = await a_session(home)
        sql(home, "UPDATE llm_call_logs SET prompt_text = 'another'")
        made = await moot("sessions", "export", session, "--pack", str(tmp_path / "x.zip"))
        assert made.stderr.startswith("Entry 2 was changed: model_call")
        seen = await moot("sessions", "verify", str(tmp_path / "x.zip"))
        assert seen.returncode == 1
        assert seen.stderr.startswith("Error: The pack does not hold: Entry 2 was changed: model_call")


class TestVerify:
    async def test_names_what_was_changed_in_a_pack(self, moot, home, tmp_path):
        session, file = await a_session(home), tmp_path / "session.zip"
        await moot("sessions", "export", session, "--pack", str(file))
        with zipfile.ZipFile(file) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        files["report.md"] = files["report.md"].replace(b"**BUY**", b"**SELL**")
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        seen = await moot("sessions", "verify", str(file))
        assert (seen.returncode, seen.stdout) == (1, "")
        assert seen.stderr == (
            "Error: The pack does not hold: report.md was changed after the pack was made.\n"
        )
        chinese = await moot("sessions", "verify", str(file), LANG="zh_CN.UTF-8")
        assert "文件包未通过核对：report.md 在文件包生成后被改动。" in chinese.stderr

    async def test_takes_what_is_a_file_or_called_one_for_a_pack(self, moot, tmp_path):
        missing = await moot("sessions", "verify", str(tmp_path / "none.zip"))
        assert (missing.returncode, "cannot be read: No such file" in missing.stderr) == (1, True)
        (tmp_path / "notes").write_text("no pack at all")
        notes = await moot("sessions", "verify", str(tmp_path / "notes"))
        assert (notes.returncode, "it is not a ZIP file that Moot wrote" in notes.stderr) == (1, True)
        (tmp_path / "folder.zip").mkdir()
        folder = await moot("sessions", "verify", str(tmp_path / "folder.zip"))
        assert (folder.returncode, "Is a directory" in folder.stderr) == (1, True)
        neither = await moot("sessions", "verify", "neither")
        assert (neither.returncode, "is not an id" in neither.stderr) == (2, True)

    async def test_still_takes_an_id(self, moot, home):
        session = await a_session(home)
        seen = await moot("sessions", "verify", session)
        assert (seen.returncode, "all 14 entries hold" in seen.stdout) == (0, True)

    async def test_of_another_version_compares_nothing_and_says_so_with_a_code_of_its_own(
        self, moot, home, tmp_path, monkeypatch
    ):
        session, file = await a_session(home), tmp_path / "session.zip"
        with monkeypatch.context() as then:
            then.setattr(session_pack, "version", lambda _: "0.0.7")
            await moot("sessions", "export", session, "--pack", str(file))
        seen = await moot("sessions", "verify", str(file))
        assert (seen.returncode, "made by Moot 0.0.7, another version" in seen.stdout) == (3, True)

    async def test_compares_the_head_with_the_one_noted_down(self, moot, home, tmp_path):
        session, file = await a_session(home), tmp_path / "session.zip"
        made = await moot("sessions", "export", session, "--pack", str(file))
        (head,) = re.findall("[0-9a-f]{64}", made.stdout)
        for target in (str(file), session):
            assert (await moot("sessions", "verify", target, "--head", head)).returncode == 0
            other = await moot("sessions", "verify", target, "--head", "0" * 64)
            assert (other.returncode, f"it is {head}" in other.stderr) == (1, True)

    async def test_without_a_target_examines_every_session(self, moot, home):
        session, gone = await a_session(home), await a_session(home)
        seen = await moot("sessions", "verify")
        assert (seen.returncode, seen.stderr) == (0, "")
        assert seen.stdout.startswith(
            "All sessions of the workspace (2) hold, and none is missing.\nHead of the"
        )
        (head,) = re.findall("[0-9a-f]{64}", seen.stdout)
        assert (await moot("sessions", "verify", "--head", head)).returncode == 0
        for table in ("audit_heads", "audit_chain"):
            sql(home, f"DELETE FROM {table} WHERE session_id = '{gone.replace('-', '')}'")
        seen = await moot("sessions", "verify")
        assert seen.returncode == 1
        assert f"{gone}: Session {gone} was removed: its workspace lists it" in seen.stderr
        assert session not in seen.stderr

    async def test_with_a_key_wants_signatures(self, moot, home, tmp_path):
        session, file, key = await a_session(home), tmp_path / "session.zip", {"MOOT_AUDIT_KEY": "k" * 20}
        unsigned = await moot("sessions", "verify", **key)
        assert (unsigned.returncode, "is not signed with MOOT_AUDIT_KEY" in unsigned.stderr) == (1, True)
        assert (await moot("sessions", "verify", "--sign", **key)).returncode == 0
        assert (await moot("sessions", "verify", session, **key)).returncode == 0
        await moot("sessions", "export", session, "--pack", str(file), **key)
        seen = await moot("sessions", "verify", str(file), **key)
        assert (seen.returncode, "is not signed with MOOT_AUDIT_KEY" in seen.stderr) == (1, True)


class TestPrune:
    async def test_says_what_went_and_what_room_was_won(self, moot, home):
        session = await a_session(home)
        sql(home, "CREATE TABLE ballast AS SELECT zeroblob(500000) AS b")
        sql(home, "DROP TABLE ballast")
        seen = await moot("sessions", "prune", "--before", "2026-01-01", "--yes")
        assert (seen.returncode, seen.stderr) == (0, "")
        gone, room = seen.stdout.splitlines()
        assert gone.startswith("Pruned: the texts of 3 calls in 1 session, ")
        assert re.fullmatch(r"The database took up [\d.]+ [kM]B and now takes up [\d.]+ kB\.", room)
        assert sql(home, "SELECT DISTINCT prompt_text, completion_text FROM llm_call_logs") == [("", None)]
        verified = await moot("sessions", "verify", session)
        assert "The texts of 3 calls were pruned." in verified.stdout
        again = await moot("sessions", "prune", "--before", "2026-01-01")
        assert (again.returncode, again.stdout.startswith("Nothing to prune")) == (0, True)

    async def test_goes_ahead_only_when_somebody_said_so(self, moot, home, monkeypatch):
        await a_session(home)
        unasked = await moot("sessions", "prune", "--before", "2026-01-01")
        assert (unasked.returncode, "--yes" in unasked.stderr) == (2, True)

        monkeypatch.setattr("moot.cli.options.somebody_is_there", lambda: True)
        asked = await moot("sessions", "prune", "--before", "2026-01-01", typed="n\n")
        assert "Drop the prompts, answers and responses of 3 calls, in 1 session" in asked.stdout
        assert asked.stdout.endswith("Nothing was pruned.\n")
        assert len(sql(home, "SELECT 1 FROM llm_call_logs WHERE prompt_text = ''")) == 0
        agreed = await moot("sessions", "prune", "--before", "2026-01-01", typed="y\n")
        assert (agreed.returncode, "Pruned: the texts of 3 calls" in agreed.stdout) == (0, True)

    async def test_leaves_other_workspaces_alone_and_names_broken_records(self, moot, home):
        session = await a_session(home)
        other = await moot("sessions", "prune", "--before", "2026-01-01", "--workspace", "another", "--yes")
        assert other.stdout.startswith("Nothing to prune")
        sql(home, "UPDATE llm_call_logs SET cost = 0")
        broken = await moot("sessions", "prune", "--before", "2026-01-01", "--yes")
        assert f"because its record does not hold: {session}" in broken.stderr
        assert "Pruned: the texts of 0 calls in 0 sessions" in broken.stdout

    @pytest.mark.parametrize(
        ("before", "sentence"),
        [
            ("soon", "--before: soon is not a date"),
            ("", "--before: '' is not a date"),
            ("2999-01-01", "lies in the future"),
        ],
    )
    async def test_needs_a_day_that_has_been(self, moot, before, sentence):
        seen = await moot("sessions", "prune", "--before", before, "--yes")
        assert (seen.returncode, sentence in seen.stderr) == (2, True)


@pytest.mark.parametrize(("lang", "words"), [("en_US.UTF-8", "revision 0001, "), ("zh_CN.UTF-8", "0001，")])
async def test_doctor_shows_how_large_the_database_is(moot, lang, words):
    seen = await moot("doctor", LANG=lang, COLUMNS="300")
    assert re.search(words + r"\d+\.\d kB", seen.stdout)
