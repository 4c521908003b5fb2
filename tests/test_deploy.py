"""What is shipped to run Moot on servers names what there is: commands, settings, files; and leaves enough time."""

import asyncio
import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest
import typer
import yaml

from moot.cli.server import CONNECTIONS_CLOSE_IN
from moot.modules.jobs.infrastructure.engine import LEEWAY
from moot.shared.infrastructure.settings import Settings
from tests.entry.forked import Forge
from tests.entry.serving import IN_TIME, Client, calling, free_port, question
from tests.test_docs import ROOT, VARIABLE, command_in, read, variables

DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "Dockerfile"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE: dict[str, Any] = yaml.safe_load(read(DEPLOY / "compose.yaml"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "moot"}
LONGEST_STOP = Settings().shutdown_grace + LEEWAY + CONNECTIONS_CLOSE_IN

every_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)


def instructions(name: str) -> list[str]:
    lines = re.sub(r"^#.*\n", "", read(DOCKERFILE), flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    return [line.removeprefix(name).strip() for line in lines if line.startswith(f"{name} ")]


def health_check() -> list[str]:
    (check,) = instructions("HEALTHCHECK")
    words: list[str] = yaml.safe_load(check.partition("CMD ")[2])
    return words


def parsed(unit: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(unit)
    return parser


def accept(words: list[str]) -> None:
    """Parse the arguments of `moot` as the command line would."""
    assert Path(words[0]).name == "moot"
    command, rest = command_in(words[1:])
    try:
        command.make_context("moot", rest)
    except typer.Exit as shown:
        assert not shown.exit_code


def test_compose_runs_commands_there_are() -> None:
    assert [service["command"][1] for service in OURS.values()] == ["db", "serve", "worker", "worker"]
    for service in OURS.values():
        accept(service["command"])


def test_the_image_runs_a_command_there_is() -> None:
    (command,) = instructions("CMD")
    accept(yaml.safe_load(command))


@every_unit
def test_units_run_commands_there_are(unit: Path) -> None:
    accept(shlex.split(parsed(unit)["Service"]["ExecStart"].replace("%i", "1")))


def test_variables_are_settings() -> None:
    files = [path for path in DEPLOY.rglob("*") if path.is_file()]
    named = {name for path in files for name in VARIABLE.findall(read(path))}
    assert named >= {"MOOT_HOME", "MOOT_DATABASE_URL", "MOOT_SECRET_KEY"}
    assert sorted(named - variables()) == []


def test_the_example_holds_no_secret_and_can_be_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for line in read(DEPLOY / "moot.env.example").splitlines() if line and line[0] != "#"]
    given = dict(line.split("=", 1) for line in lines)
    assert set(given.values()) == {""}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert Settings().database_url == ""


def test_the_file_with_secrets_is_no_part_of_the_repository_or_the_image() -> None:
    (file,) = {service["env_file"] for service in OURS.values()}
    assert f"deploy/{file}" in read(ROOT / ".gitignore").splitlines()
    assert not any(file in copied.split() for copied in instructions("COPY"))
    assert "env_file" not in SERVICES["postgres"]  # the key that signs records stays away from the database


def test_what_is_copied_exists_and_is_let_in() -> None:
    let_in = re.findall(r"^!(.+)$", read(DEPLOY / "Dockerfile.dockerignore"), re.MULTILINE)
    copied = [name for line in instructions("COPY") if "--from" not in line for name in line.split()[:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert sorted(copied) == sorted(let_in)


def test_the_image_is_not_run_by_root_and_keeps_its_home() -> None:
    assert instructions("USER") == ["moot"]
    (home,) = instructions("VOLUME")
    assert f"MOOT_HOME={home}" in instructions("ENV")[-1].split()
    assert {volume for service in OURS.values() for volume in service["volumes"]} == {f"home:{home}"}


def test_the_image_installs_what_is_locked() -> None:
    """The extra for PostgreSQL, as it is locked for the tests, beside what the product needs."""
    blocks = re.split(r"^(?=\S)", read(DEPLOY / "postgres.lock"), flags=re.MULTILINE)[1:]
    tested = re.split(r"^(?=\S)", read(ROOT / "requirements-dev.lock"), flags=re.MULTILINE)
    assert [block for block in blocks if block not in tested] == []
    extra = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]["postgres"]
    installed = re.findall(
        r"^([\w-]+)==", read(DEPLOY / "postgres.lock") + read(ROOT / "requirements.lock"), re.M
    )
    assert {re.split(r"[\[>]", need)[0] for need in extra} <= set(installed)
    (locked,) = [line for line in instructions("RUN") if "/locks/" in line]
    assert {"--require-hashes", "/locks/requirements.lock", "/locks/postgres.lock"} <= set(locked.split())


def test_health_is_asked_where_servers_and_workers_tell_it() -> None:
    (port,) = re.findall(r"'127\.0\.0\.1', (\d+)", health_check()[-1])
    assert instructions("EXPOSE") == [port]
    assert command_in(["serve"])[0].make_context("moot", []).params["port"] == int(port)
    workers = [service["command"] for service in OURS.values() if "worker" in service["command"]]
    assert [command[-2:] for command in workers] == [["--health-port", port]] * 2


def healthy(port: int) -> bool:
    """What the image's own check says of whoever answers at `port`."""
    *_, code = health_check()
    check = [sys.executable, "-S", "-c", code.replace("8000", str(port))]
    return subprocess.run(check, stderr=subprocess.DEVNULL, check=False).returncode == 0


async def test_what_compose_starts_works_together(
    forge: Forge, bare_home: Path, empty_postgres_url: str
) -> None:
    """Database, key, API and a worker, in the order of the page; but for the ports, which may be taken here."""
    home, env = bare_home, {"MOOT_DATABASE_URL": empty_postgres_url}
    upgrade, api, worker = (SERVICES[name]["command"][1:] for name in ("upgrade", "api", "worker-1"))
    assert forge.run(*upgrade, home=home, **env).returncode == 0
    served, worked = free_port(), free_port()
    key = forge.run("keys", "create", "ada", "--scope", "admin", home=home, **env).stdout.strip()
    env |= {"MOOT_HOME": str(home)}
    processes = [
        await forge.start(*command, log=home / f"{command[0]}.txt", **env)
        for command in ([*api, "--port", str(served)], [*worker[:-1], str(worked)])
    ]
    for port in (served, worked):
        async with asyncio.timeout(IN_TIME):
            while not await asyncio.to_thread(healthy, port):
                await asyncio.sleep(0.2)
    async with calling(served, key) as http:
        desk = Client(http)
        ended = await desk.ended(await desk.start(question()))
        assert ended["status"] == "completed"
    for process in processes:
        os.kill(process, SIGTERM)
    assert [await forge.ended(process) for process in processes] == [0, 0]


def test_only_what_has_a_key_is_reached_from_outside() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"api": ["127.0.0.1:8000:8000"]}
    assert "--open" not in SERVICES["api"]["command"]


def test_there_is_time_to_stop() -> None:
    graces = {service["stop_grace_period"] for service in OURS.values()}
    stops = {f"{parsed(unit)['Service']['TimeoutStopSec']}s" for unit in UNITS}
    (seconds,) = graces | stops
    assert int(seconds.removesuffix("s")) > LONGEST_STOP


@every_unit
def test_units_come_back_and_are_told_to_stop(unit: Path) -> None:
    told = parsed(unit)
    service = told["Service"]
    assert (service["Restart"], service["KillSignal"], service["KillMode"]) == ("always", "SIGTERM", "mixed")
    assert told["Unit"]["StartLimitIntervalSec"] == "0"  # however often it was killed
    assert (service["User"], service["NoNewPrivileges"], service["ProtectSystem"]) == (
        "moot",
        "yes",
        "strict",
    )


def test_units_differ_in_what_they_run_alone() -> None:
    server, worker = (read(unit).splitlines() for unit in UNITS)
    different = [one for one, other in zip(server, worker, strict=True) if one != other]
    assert [line.partition("=")[0] for line in different] == ["Description", "ExecStart"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    """With the program where it is here; of what else the machine has, it says what it likes."""
    for unit in UNITS:
        text = read(unit).replace("/opt/moot/bin/moot", str(Path(sys.executable).with_name("moot")))
        (tmp_path / unit.name.replace("@", "@1")).write_text(text, encoding="utf-8")
    names = [str(path) for path in tmp_path.iterdir()]
    seen = subprocess.run(["systemd-analyze", "verify", *names], capture_output=True, text=True, check=False)
    assert [line for line in seen.stderr.splitlines() if "moot-" in line] == []
