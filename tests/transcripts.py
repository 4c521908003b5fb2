"""Writes what the READMEs show in their `console` blocks anew: `python -m tests.transcripts`.

The commands are those that stand there; what they print is what a terminal of a hundred columns shows. The second
block is about a session of the first one's question, under the rules that the README shows.
"""

import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
READMES = {"README.md": "en_US.UTF-8", "README.zh-CN.md": "zh_CN.UTF-8"}
BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.S)
SESSION = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
REDRAWN = re.compile(r"(?:\x1b\[\d*[A-K]|\r(?!\n))+")
UNSEEN = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
COLUMNS = 100


def run(words: list[str], home: Path, lang: str) -> str:
    """What is left on a terminal when it has ended: of a table that is drawn again and again, the last."""
    env = {"PATH": os.environ["PATH"], "MOOT_HOME": str(home / ".moot"), "HOME": str(home), "LANG": lang}
    env |= {"TERM": "xterm", "COLUMNS": str(COLUMNS), "LINES": "60", "NO_COLOR": "1"}
    reader, writer = pty.openpty()
    command = [sys.executable, "-m", "moot", *words]
    with subprocess.Popen(command, env=env, cwd=home, stdin=writer, stdout=writer, stderr=writer) as process:
        os.close(writer)
        printed = _read_all(reader)
    if process.returncode:
        sys.exit(f"moot {shlex.join(words)}: {printed}")
    last = REDRAWN.split(printed)[-1]
    lines = [line.rstrip() for line in UNSEEN.sub("", last).replace("\r\n", "\n").splitlines()]
    return "\n".join(lines).strip("\n").replace(str(home), "~") + "\n"


def _read_all(reader: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(reader, 65536)
        except OSError:  # nobody holds the other end any more
            break
        if not part:
            break
        parts.append(part)
    os.close(reader)
    return b"".join(parts).decode()


def write_anew(readme: Path, lang: str) -> None:
    page = readme.read_text(encoding="utf-8")
    asked, decided = (block.splitlines()[0] for block in BLOCK.findall(page))
    words = shlex.split(asked.removeprefix("$ "))[1:]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        found = f"{asked}\n{run(words, home, lang)}"
        rules = re.search(r"(?<=```yaml\n)rules:.*?(?=```)", page, re.S)
        assert rules
        (home / "fund.yaml").write_text(rules[0], encoding="utf-8")
        run(["rules", "activate", "fund.yaml", "--yes"], home, lang)
        session = SESSION.findall(run(words, home, lang))[-1]
        told = run(["sessions", "decisions", session], home, lang)
    blocks = iter((found, f"{SESSION.sub(session, decided)}\n{_shorten(told)}"))
    readme.write_text(BLOCK.sub(lambda _: next(blocks), page), encoding="utf-8")


def _shorten(told: str) -> str:
    """The request, and the verdict with all its lines; nothing is shown that the rule did not change."""
    head, first, *rest = told.splitlines()
    verdict = next((n for n, line in enumerate(rest) if line.startswith("verdict") and "→" in line), None)
    if verdict is None:
        sys.exit("The rule shown changes nothing about this verdict: choose a question that ends in a BUY.")
    end = next((n for n, line in enumerate(rest) if n > verdict and line[:1].strip()), len(rest))
    return "\n".join([head, first, "[…]", *rest[verdict:end], ""])


if __name__ == "__main__":
    for name, spoken in READMES.items():
        write_anew(ROOT / name, spoken)
