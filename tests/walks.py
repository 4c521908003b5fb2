"""The walks of `docs/extending.md`, taken on a copy of the package as the page says."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

import moot

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "extending.md"
STEP = re.compile(
    r"^`(?P<file>[\w./-]+)`(?:, (?P<how>new|after|before|instead of)(?: `(?P<line>[^`\n]+)`)?| has):\n\n"
    r"```\w+\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
"""An edit of a file at the one line that begins so; or what the file has already."""
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TRIED = re.compile(
    r"^```python\n(?P<code>(?:(?!^```$).)*)^```\n\n```text\n(?P<shown>.*?)^```$", re.MULTILINE | re.DOTALL
)

EACH = """
import json, os, sys, tempfile
import moot.cli.research, moot.main
from moot.modules.market_data.domain.facts import COMPANIES, DATASETS
from moot.modules.market_data.infrastructure.demo.provider import WHOLE, DemoMarket
from moot.shared.domain.clock import SystemClock

history = DemoMarket(1, SystemClock())._all()
for dataset in DATASETS.values():
    if dataset is not COMPANIES:
        list(history.all_of(dataset, "900001.DEMO").between(*WHOLE))  # what takes each of them seconds
told = []
for code, *arguments in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryDirectory() as home:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.environ["MOOT_HOME"] = home
            sys.argv[1:] = arguments
            exec(code, {"__name__": "__main__"})
            sys.stdout.flush()
            os._exit(0)
        failed = os.waitpid(child, 0)[1]
        out.seek(0)
        told.append(f"failed: {out.read()}" if failed else out.read())
print(json.dumps(told))
"""


@dataclass(frozen=True)
class Walk:
    """A section of the page."""

    text: str

    @property
    def edits(self) -> list[re.Match[str]]:
        return list(STEP.finditer(self.text))

    @property
    def tried(self) -> tuple[str, str]:
        """What the reader runs at the end, and what it prints."""
        (found,) = TRIED.finditer(self.text)
        return found["code"], found["shown"]

    def take(self, root: Path) -> None:
        for commands in SHELL.findall(self.text):
            subprocess.run(["sh", "-e", "-c", commands], cwd=root, check=True)
        for edit in self.edits:
            _make(edit, root / "src/moot" / edit["file"])


def read_walks() -> dict[str, Walk]:
    """By heading."""
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {heading: Walk(text) for heading, _, text in (section.partition("\n") for section in sections)}


def copy_with(root: Path, *walks: str) -> Path:
    """A copy of the package below `root`, after these walks; its folder is what Python has to be told."""
    copytree(
        Path(moot.__file__).parent, root / "src/moot"
    )  # with what was compiled: only what is edited is anew
    (root / "tests").symlink_to(ROOT / "tests")
    known = read_walks()
    for heading in walks:
        known[heading].take(root)
    return root / "src"


def run(package: Path, home: Path, *arguments: str) -> str:
    """What Python prints with the copy in place of the package."""
    env = os.environ | {"PYTHONPATH": str(package), "MOOT_HOME": str(home), "LANG": "en_US.UTF-8"}
    seen = subprocess.run(
        [sys.executable, *arguments],
        env=env,
        cwd=package,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert seen.returncode == 0, seen.stdout + seen.stderr
    return seen.stdout


def run_each(package: Path, home: Path, *orders: Sequence[str]) -> list[str]:
    """What each prints by itself, `-c`-wise: code and its arguments. The copy is imported once for all of them."""
    return [str(each) for each in json.loads(run(package, home, "-c", EACH, json.dumps(orders)))]


def _make(edit: re.Match[str], file: Path) -> None:
    if edit["how"] == "new":
        assert not file.exists(), f"{file} is there already"
        file.write_text(edit["text"], "utf-8")
        return
    text = file.read_text("utf-8")
    if edit["how"] is None:
        assert edit["text"] in text, f"{file} does not have it"
        return
    lines = text.splitlines(keepends=True)
    (place,) = [n for n, line in enumerate(lines) if line.strip().startswith(edit["line"])]
    first, last = {
        "after": (place + 1, place + 1),
        "before": (place, place),
        "instead of": (place, place + 1),
    }[edit["how"]]
    file.write_text("".join([*lines[:first], edit["text"], *lines[last:]]), "utf-8")
