"""What the desk keeps can be read by its owner alone."""

from pathlib import Path

from moot.desk import Moot
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.home import make_private_folder
from moot.shared.infrastructure.settings import Settings


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o7777)


async def test_home_databases_and_reports_are_their_owners(tmp_path):
    home = tmp_path / "new" / "home"
    async with Moot(Settings(home=home, log_level="error")) as desk:
        result = await desk.research("900001.DEMO", ["macro_intelligence"], skip_debate=True)
        await desk.ask("hello")
        report = desk.write_report(result)
        databases = sorted(file.name for file in home.glob("*.db*"))
        assert {"moot.db", "moot.db-wal", "moot.db-shm", "conversations.db"} <= set(databases)
        assert {mode(home / name) for name in databases} == {"0o600"}
        assert (mode(home), mode(report.parent), mode(report)) == ("0o700", "0o700", "0o600")


async def test_what_was_open_to_others_is_closed(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    files = [home / name for name in ("moot.db", "moot.db-wal", "moot.db-shm")]
    async with Moot(Settings(home=home, log_level="error")):
        for file in files:
            file.chmod(0o644)
        other = Database(f"sqlite:///{files[0]}")
        await other.current()
        await other.close()
        assert {mode(file) for file in files} == {"0o600"}
    assert mode(home) == "0o700"


def test_a_folder_that_is_everybodys_by_design_stays_so(tmp_path):
    tmp_path.chmod(0o1777)
    make_private_folder(tmp_path)
    assert mode(tmp_path) == "0o1777"
