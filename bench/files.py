"""How heavy the house is, in figures that need no clock: `python -m bench.files`."""

import ast
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import moot

SOURCE = Path(moot.__path__[0])
INTAKE = SOURCE / "modules" / "intake"
RESEARCH = ("research", "900001.DEMO")
ASK = ("ask", "Is 900001.DEMO worth buying?", "--yes")
COUNT = """
import sys, threading

seen, at_work = set(), set()

def importing(frame):
    while frame is not None and (frame.f_code.co_name != "<module>" or frame.f_code.co_filename not in seen):
        frame = frame.f_back
    return frame is not None

def called(frame, event, _):
    code = frame.f_code
    if code.co_filename in at_work or not code.co_filename.startswith(SOURCE):
        return
    seen.add(code.co_filename)
    if code.co_flags & 1 and not importing(frame):  # a function, not the body of a class or a file
        at_work.add(code.co_filename)

sys.settrace(called)  # of a call alone, as nothing comes back: what happens inside is not told
threading.settrace(called)
from moot.cli import main
sys.argv[0] = "moot"
try:
    main()
finally:
    sys.settrace(None)
    print(len(at_work), file=sys.stderr)
"""


class Figure(NamedTuple):
    name: str
    most: int
    measure: Callable[[], int]


def executed(*command: str) -> int:
    """In how many files of the package one command calls a function, on a machine where it never ran before."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-c", f"SOURCE = {str(SOURCE)!r}{COUNT}", *command],
            env={"MOOT_HOME": home, "LANG": "en_US.UTF-8", "PYTHONPATH": str(SOURCE.parent), "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
    return int(done.stderr.split()[-1])


def intake_words() -> int:
    """What intake knows of language without a model: its tables of words, and the patterns in its code."""
    tables = (file for file in INTAKE.rglob("*.toml") if file.parent.name != "texts")
    in_code = (pattern for file in INTAKE.rglob("*.py") for pattern in _compiled(file))
    return sum(file.stat().st_size for file in tables) + sum(len(pattern.encode()) for pattern in in_code)


def patterns(folder: Path) -> Iterator[str]:
    """Every regular expression below `folder`: what code hands to `re`, and what looks like one in a table."""
    for file in folder.rglob("*.py"):
        yield from _compiled(file)
    for file in folder.rglob("*.toml"):
        if file.parent.name != "texts":
            told = _strings(tomllib.loads(file.read_text(encoding="utf-8")))
            yield from (text for text in told if re.search(r"\\[bdsw]|\(\?|\[\^|\.[*+]", text))


def _compiled(file: Path) -> Iterator[str]:
    """In an f-string, what is filled in counts as it is written there."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[pattern, *_]):
                yield "".join(map(str, _written(pattern)))


def _written(pattern: ast.expr) -> Iterator[Any]:
    for node in ast.walk(pattern):
        match node:
            case ast.Constant(value=str() as text):
                yield text
            case ast.FormattedValue(value=value):
                yield ast.unparse(value)


def _strings(told: Any) -> Iterator[str]:
    if isinstance(told, str):
        yield told
    elif isinstance(told, dict | list):
        for member in told.values() if isinstance(told, dict) else told:
            yield from _strings(member)


def _texts(pattern: str) -> Iterator[str]:
    return (file.read_text(encoding="utf-8") for file in SOURCE.rglob(pattern))


FIGURES = (
    Figure("lines of source", 63_600, lambda: sum(len(text.splitlines()) for text in _texts("*.py"))),
    Figure("empty __init__.py", 50, lambda: sum(not text for text in _texts("__init__.py"))),
    Figure("longest pattern, in characters", 300, lambda: max(map(len, patterns(SOURCE)))),
    Figure("intake's words and patterns, in bytes", 8_192, intake_words),
    Figure("files executed by moot research", 150, lambda: executed(*RESEARCH)),
    Figure("files executed by moot ask", 170, lambda: executed(*ASK)),
)


if __name__ == "__main__":
    measured = [(figure, figure.measure()) for figure in FIGURES]
    for figure, value in measured:
        print(f"{'   ' if value <= figure.most else '!! '}{figure.name:<40}{value:>8,} of {figure.most:,}")
    sys.exit(any(value > figure.most for figure, value in measured))
