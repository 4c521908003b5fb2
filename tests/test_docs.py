"""The documentation says what is: its links, commands, settings and routes exist, and nothing private slipped in."""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import SecretStr

from moot.cli import Late, app
from moot.desk import Moot
from moot.main import create_app
from moot.modules.governance.container import RuleBook
from moot.shared.infrastructure.settings import Settings
from moot.web.site import PAGES as CONSOLE

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "moot"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
DECISIONS = ROOT / "docs" / "decisions"
GOVERNANCE = ROOT / "docs" / "governance.md"
FRONT_PAGES = [ROOT / name for name in ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [page for page in [*FRONT_PAGES, *sorted(ROOT.glob("docs/**/*.md"))] if page.exists()]

FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
SHELLS = {"", "sh", "bash", "shell", "console"}
RUNS_MOOT = re.compile(r"(?:[A-Z_]+=\S+ +)*(?:\S*/)?moot((?: [^|&;>#]*)?)(?=$|[|&;>#])")
MAKE = re.compile(r"(?:^|[\s;&])make(?: [A-Z_]+=\S+)* ([a-z][a-z-]*)", re.MULTILINE)
VARIABLE = re.compile(r"\bMOOT_[A-Z_]*[A-Z]")
FILE = re.compile(r"[\w.-]+/[\w./-]*(?:/|\.(?:py|toml|md|lock|yml))")
TO_COME = re.compile(r"liquidity_watcher/rules|providers/house\.py|/de-DE\.toml")
"""What the walks of `extending.md` make."""
ROUTE = re.compile(
    r"""(?: \b(GET|POST|PUT|PATCH|DELETE)\ +        # with its method,
          | (?:localhost|127\.0\.0\.1)(?::\d+)?     # in a URL,
          | (?=/api/v\d/)                           # by its prefix
          | (?<=`)(?=/[a-z]+`)                      # or as a word of code
        )(/[\w/{}-]+)""",
    re.VERBOSE,
)
PRIVATE = [
    *(f"/{folder}/" for folder in ("work", "root")),
    *(f"{host}.org" for host in ("pypi", "files.pythonhosted", "registry.npmjs", "deb.debian")),
]
"""Paths of one machine and hosts of registries, put together here so that this file does not contain them."""

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    return FENCE.sub("", read(page))


def spans(page: Path) -> list[str]:
    """The pieces of code within sentences."""
    return SPAN.findall(prose(page))


def blocks(page: Path, language: str) -> list[str]:
    return [block for marked, block in FENCE.findall(read(page)) if marked == language]


def typed(page: Path) -> Iterator[str]:
    """What a reader would type: the lines after a prompt, or all lines of a block that shows none."""
    for language, block in FENCE.findall(read(page)):
        if language in SHELLS:
            lines = [line.strip() for line in block.replace("\\\n", " ").splitlines()]
            yield from [line[2:] for line in lines if line.startswith("$ ")] or lines


def command_in(words: list[str]) -> tuple[Any, list[str]]:
    """The command that `words` name, and what is left for it."""
    command: Any = typer.main.get_command(app)
    while words and not words[0].startswith("-") and hasattr(command, "commands"):
        assert words[0] in command.commands, f"there is no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
        command = command.load() if isinstance(command, Late) else command
    return command, words


def variables() -> set[str]:
    return {f"MOOT_{name.upper()}" for name in Settings.model_fields}


@every_page
def test_links_lead_to_files(page: Path) -> None:
    targets = [target.partition("#")[0] for target in LINK.findall(prose(page))]
    local = [target for target in targets if target and not re.match(r"\w+:", target)]
    assert [target for target in local if not (page.parent / target).exists()] == []


@every_page
def test_files_are_where_the_page_says(page: Path) -> None:
    """Paths begin at the repository, at the package, or at a context."""
    named = [span for span in spans(page) if FILE.fullmatch(span) and not TO_COME.search(span)]
    homes = (ROOT, SOURCE, SOURCE / "modules")
    assert [name for name in named if not any((home / name).exists() for home in homes)] == []


@every_page
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", read(ROOT / "Makefile"), re.MULTILINE))
    mentioned = MAKE.findall("\n".join([*spans(page), *typed(page)]))
    assert sorted(set(mentioned) - targets) == []


@every_page
def test_commands_in_blocks_are_accepted_by_the_command_line(page: Path) -> None:
    for arguments in [run[1] for line in typed(page) if (run := RUNS_MOOT.match(line))]:
        command, rest = command_in(shlex.split(arguments))
        try:
            command.make_context("moot", rest)
        except typer.Exit as shown:  # --help and --version are answered while parsing
            assert not shown.exit_code, arguments


@every_page
def test_commands_in_sentences_exist(page: Path) -> None:
    for span in [span for span in spans(page) if span.startswith("moot ")]:
        command, rest = command_in(span.split()[1:])
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        assert {word for word in rest if word.startswith("-")} <= known, span


@every_page
def test_rules_that_are_shown_can_be_put_in_force(page: Path) -> None:
    book = RuleBook()
    shown = [block for block in blocks(page, "yaml") if block.startswith("rules:")]
    assert [str(found.said) for text in shown for found in book.inspect_files({"": text}).complaints] == []


def test_the_validator_alone_says_what_the_page_shows() -> None:
    (code,), (*_, shown) = blocks(GOVERNANCE, "python"), blocks(GOVERNANCE, "text")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == (shown, "")


@every_page
def test_variables_are_settings(page: Path) -> None:
    assert sorted(set(VARIABLE.findall(read(page))) - variables()) == []


def test_the_settings_table_is_complete_and_states_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = re.findall(r"^\| `(MOOT_\w+)` \| (.*?) \|", read(ARCHITECTURE), re.MULTILINE)
    stated = {name: "" if default == "(empty)" else default.strip("`") for name, default in rows}
    assert set(stated) == variables()
    for name in stated:
        monkeypatch.delenv(name, raising=False)
    defaults = Settings()
    empty = {f"MOOT_{name.upper()}" for name, value in defaults if value in (None, "", SecretStr(""))}
    assert {name for name, value in stated.items() if not value} == empty
    for name, value in stated.items():
        monkeypatch.setenv(name, value)
    documented = Settings()
    assert documented.model_copy(update={"home": documented.home.expanduser()}) == defaults


@pytest.fixture(scope="module")
def operations() -> dict[str, set[str]]:
    """The methods of every path in the schema, and of the page that shows it."""
    schema = create_app(Moot(Settings(persistence=False, log_level="error"))).openapi()
    paths = {**schema["paths"], "/docs": ["get"]}
    return {path: {method.upper() for method in methods} for path, methods in paths.items()}


@every_page
def test_routes_are_served(page: Path, operations: dict[str, set[str]]) -> None:
    shapes = {re.sub(r"\{\w+\}", "[^/]+", path): methods for path, methods in operations.items()}
    shapes |= {place.path: {"GET"} for place in CONSOLE if place.path not in shapes}
    for method, path in ROUTE.findall(read(page)):
        served = [methods for shape, methods in shapes.items() if re.fullmatch(shape, path.rstrip("/"))]
        assert served, f"no route {path}"
        assert not method or method in served[0], f"no {method} {path}"


def test_every_route_is_documented(operations: dict[str, set[str]]) -> None:
    routes = [f"| `{method} {path}` |" for path, methods in operations.items() for method in methods]
    assert [route for route in routes if route not in read(ARCHITECTURE)] == []


def test_every_import_contract_is_documented() -> None:
    contracts = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    table = read(ARCHITECTURE).partition("| contract |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == [contract["id"] for contract in contracts]


def test_every_context_has_its_line() -> None:
    contexts = [door.parent.name for door in (SOURCE / "modules").glob("*/__init__.py")]
    assert [name for name in contexts if f"| `modules/{name}` |" not in read(ARCHITECTURE)] == []


def test_decisions_are_numbered_once_and_listed() -> None:
    """A number that is missing belongs to a decision that became part of another."""
    records = sorted(DECISIONS.glob("[0-9]*.md"))
    numbers = [int(record.name[:4]) for record in records]
    assert len(set(numbers)) == len(numbers)
    index = re.findall(r"^\| (\d+) \| \[.*\]\((.*)\)", read(DECISIONS / "README.md"), re.MULTILINE)
    assert index == [(str(number), record.name) for number, record in zip(numbers, records, strict=True)]
    for number, record in zip(numbers, records, strict=True):
        title, *sections = re.findall(r"^#+ (.*)", read(record), re.MULTILINE)
        assert title.startswith(f"{number}. ")
        assert sections == ["Context", "Decision", "Consequences"]


@every_page
def test_decisions_that_are_named_exist(page: Path) -> None:
    named = {int(number) for number in re.findall(r"\b[Dd]ecisions? (\d+)\b", read(page))}
    assert named <= {int(record.name[:4]) for record in DECISIONS.glob("[0-9]*.md")}


def test_no_committed_file_names_a_machine_or_a_registry() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    committed = [ROOT / name for name in listed.decode().split("\0") if name]
    texts = {path: path.read_bytes().decode(errors="replace") for path in committed if path.is_file()}
    assert texts
    assert [f"{path}: {word}" for path, text in texts.items() for word in PRIVATE if word in text] == []
