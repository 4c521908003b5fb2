"""`moot ask` as a person uses it: through a pipe, and in a terminal where it asks back."""

import asyncio
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from moot.cli.ask import Laid
from moot.cli.printing import flow
from moot.desk import Moot
from moot.modules.coordinator.infrastructure.adapters.governance_adapter import GovernanceAdapter
from moot.shared.infrastructure.settings import Settings
from tests.entry.forked import Forge
from tests.entry.inside import Run, inside
from tests.entry.serving import IN_TIME, NOBODY, Gate
from tests.fakes.llm_server import Say

ENGLISH, CHINESE = "Is 900001.DEMO cheap?", "900001.DEMO 估值高吗？"
PLAN = "  1. Research Mirage Hill Distillers (900001.DEMO) · experts: Valuation modeler\n"
ID = re.compile(r"--thread ([0-9a-f-]{36})")
WIDTH = 60
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@pytest.fixture
def moot(home: Path, sqlite_database, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(home)
    return inside(home, monkeypatch)


def thread_in(text: str) -> str:
    found = ID.search(text)
    assert found, text
    return found[1]


async def test_a_pipe_gets_plan_steps_and_the_answer_as_markdown(moot):
    seen = await moot("ask", ENGLISH, "--yes")
    assert (seen.returncode, seen.stderr) == (0, "")
    before, title, answer = seen.stdout.partition("\n# Is 900001.DEMO cheap\n")
    assert before == (
        f"Plan: Is 900001.DEMO cheap\n{PLAN}"
        "     Cost: free, no language model is configured.\n"
        "  … Research Mirage Hill Distillers (900001.DEMO)\n  ✓ Research Mirage Hill Distillers (900001.DEMO)\n"
    )
    parts = [
        answer.index(heading) for heading in ("## Key points", "## Overview", "## Analysis", "## Sources")
    ]
    assert title and parts == sorted(parts)
    assert re.search(r"\n\nTo go on: moot ask --thread [0-9a-f-]{36} \"…\"\n$", answer)
    assert not re.search(r"\x1b| \n", seen.stdout)


async def test_everything_said_is_in_the_language_of_the_question(moot):
    seen = await moot("ask", CHINESE, "--yes", "--style", "brief")
    assert seen.stdout.startswith("计划：900001.DEMO 估值高吗\n")
    assert "· 专家：估值建模师\n" in seen.stdout
    assert "## 要点" in seen.stdout
    assert "## 分析" not in seen.stdout
    assert "继续提问：moot ask --thread" in seen.stdout


async def test_a_plan_that_waits_says_how_to_answer_it(moot):
    waiting = await moot("ask", ENGLISH)
    assert waiting.returncode == 0
    assert PLAN in waiting.stdout
    assert "  ! No language model is configured" in waiting.stdout
    thread = thread_in(waiting.stdout)
    assert f"The plan waits for you: moot ask --thread {thread} --accept" in waiting.stdout
    accepted = await moot("ask", "--thread", thread, "--accept")
    assert (accepted.returncode, "# Is 900001.DEMO cheap\n" in accepted.stdout) == (0, True)
    again = await moot("ask", "--thread", thread)
    assert again.stdout.strip() == accepted.stdout.partition("\n\n")[2].strip()
    too_late = await moot("ask", "--thread", thread, "--accept")
    assert (too_late.returncode, too_late.stdout) == (1, "")
    assert "waits for nobody" in too_late.stderr


async def test_a_plan_is_changed_or_rejected(moot):
    thread = thread_in((await moot("ask", ENGLISH)).stdout)
    edited = await moot("ask", "--thread", thread, "--edit", "the debt too")
    assert (edited.returncode, "takes a language model" in edited.stdout) == (0, True)
    shown = await moot("ask", "--thread", thread)
    assert PLAN in shown.stdout
    rejected = await moot("ask", "--thread", thread, "--reject")
    assert (rejected.returncode, "The plan was rejected." in rejected.stdout) == (0, True)
    further = await moot("ask", "hello", "--thread", thread)
    assert (further.returncode, thread_in(further.stdout)) == (0, thread)


CAREFUL = """
rules:
  - id: test.plan
    name: Somebody looks first
    category: behavior
    condition: payload.step_count > 0
    action: reject
    requires_human: true
    decision_types: [plan]
    examples:
      - violates: true
        payload: {step_count: 1}
      - violates: false
        payload: {step_count: 0}
"""
APPROVE = re.compile(r"moot (escalations approve [0-9a-f-]{36}) ")


async def test_a_plan_that_somebody_has_to_approve_says_how_and_goes_on_after_that(moot, home):
    (home / "careful.yaml").write_text(CAREFUL, encoding="utf-8")
    assert (await moot("rules", "activate", "--yes", "careful.yaml")).returncode == 0
    asked = await moot("ask", ENGLISH, "--yes")
    assert asked.returncode == 0
    assert PLAN in asked.stdout
    assert "✓" not in asked.stdout
    thread, approve = thread_in(asked.stdout), APPROVE.search(asked.stdout)
    assert approve, asked.stdout
    early = await moot("ask", "--thread", thread, "--accept")
    assert (early.returncode, approve[1] in early.stdout, "✓" in early.stdout) == (0, True, False)
    assert (await moot(*approve[1].split(), "--reason", "fine")).returncode == 0
    ended = await moot("ask", "--thread", thread, "--accept")
    assert (ended.returncode, "# Is 900001.DEMO cheap\n" in ended.stdout) == (0, True)
    assert "escalations" not in ended.stdout


async def test_json_is_the_rest_body_and_nothing_else(moot):
    seen = await moot("ask", ENGLISH, "--json")
    body = json.loads(seen.stdout)
    assert (seen.returncode, seen.stderr, body["status"]) == (0, "", "waiting")
    accepted = json.loads((await moot("ask", "--thread", body["id"], "--accept", "--json")).stdout)
    assert (accepted["id"], accepted["status"], len(accepted["turns"])) == (body["id"], "answered", 1)
    (listed,) = json.loads((await moot("ask", "--list", "--json")).stdout)
    assert listed == accepted
    refused = await moot("ask", "", "--json")
    assert (refused.returncode, json.loads(refused.stdout)["code"]) == (2, "INVALID_REQUEST")


async def test_conversations_are_listed_newest_first(moot):
    assert "No conversations yet." in (await moot("ask", "--list")).stdout
    first = thread_in((await moot("ask", "hello\nthere")).stdout)
    second = thread_in((await moot("ask", ENGLISH)).stdout)
    lines = (await moot("ask", "--list")).stdout.splitlines()
    assert [line.split("  ")[0] for line in lines[::2]] == [second, first]
    assert [line.split("  ")[-1] for line in lines[::2]] == ["waits for you", "replied"]
    assert lines[1::2] == [f"  {ENGLISH}", "  hello there"]


BAD = {
    "nothing": ((), 2, 'Ask something: moot ask "Is 900001.DEMO worth buying now?"'),
    "an empty question": (("  ",), 2, "question: must not be empty."),
    "an unknown style": (
        ("hi", "--style", "poem"),
        2,
        "style: 'poem' is not known. Allowed: brief, research, academic, news.",
    ),
    "too many steps": (("hi", "--steps", "11"), 2, ""),
    "a malformed thread": (("hi", "--thread", "first"), 2, "thread: 'first' is not an id;"),
    "an answer to nobody": (("--accept",), 2, "Say which conversation: --thread ID."),
    "resuming nothing": (("--resume",), 2, "Say which conversation: --thread ID."),
    "two answers": (
        ("--thread", NOBODY, "--accept", "--reject"),
        2,
        "These do not go together: --accept, --reject.",
    ),
    "a question and an answer": (
        ("hi", "--thread", NOBODY, "--accept"),
        2,
        "These do not go together: QUESTION, --accept.",
    ),
    "an empty change": (("--thread", NOBODY, "--edit", " "), 2, "Say what is to change about the plan"),
    "an unknown thread": (("--thread", NOBODY), 1, f"There is no conversation {NOBODY}."),
}


@pytest.mark.parametrize(("arguments", "code", "sentence"), BAD.values(), ids=BAD)
async def test_what_cannot_be_done_is_said_with_what_to_do(moot, arguments, code, sentence):
    seen = await moot("ask", *arguments)
    assert (seen.returncode, seen.stdout) == (code, "")
    assert sentence in seen.stderr


@pytest.mark.parametrize(
    ("lang", "sentence"), [("zh_CN.UTF-8", "请提出问题"), ("en_US.UTF-8", "Ask something")]
)
async def test_a_missing_question_is_told_in_the_language_of_the_terminal(moot, lang, sentence):
    assert sentence in (await moot("ask", LANG=lang)).stderr


async def test_a_question_goes_on_with_the_last_conversation_by_a_letter_or_by_the_beginning_of_its_id(moot):
    first = thread_in((await moot("ask", ENGLISH, "--yes")).stdout)
    later = thread_in((await moot("ask", CHINESE, "--yes")).stdout)
    assert thread_in((await moot("ask", "-c", "那负债呢？", "--yes")).stdout) == later
    assert thread_in((await moot("ask", "-c")).stdout) == later
    assert thread_in((await moot("ask", "--thread", "last")).stdout) == later
    assert thread_in((await moot("ask", "--thread", first[:13], "And its debt?", "--yes")).stdout) == first
    assert thread_in((await moot("ask", "-c")).stdout) == first
    listed = json.loads((await moot("ask", "--list", "--json")).stdout)
    assert [len(each["turns"]) for each in listed] == [2, 2]


async def test_the_beginning_of_no_id_and_of_several_is_said(moot):
    assert (await moot("ask", "-c", "hi")).returncode == 1
    ids = [thread_in((await moot("ask", "hi")).stdout) for _ in range(17)]  # of 16 digits, two begin alike
    digit = next(each[0] for each in ids if sum(other[0] == each[0] for other in ids) > 1)
    seen = await moot("ask", "--thread", digit)
    assert (seen.returncode, "Write more of it" in seen.stderr) == (2, True)


@pytest.mark.parametrize("arguments", [("-",), ()], ids=["a dash", "nothing"])
async def test_a_question_may_be_piped_in(moot, arguments):
    seen = await moot("ask", *arguments, "--yes", typed=f"{ENGLISH}\n")
    assert seen.returncode == 0 and PLAN in seen.stdout


async def test_a_dash_with_nothing_behind_it_is_an_empty_question(moot):
    seen = await moot("ask", "-", typed="")
    assert (seen.returncode, "question: must not be empty." in seen.stderr) == (2, True)


@pytest.mark.parametrize(
    ("priced", "said"),
    [
        (
            {},
            "Cost: no price known for the model; some 6 model calls and 30,000 tokens",
        ),
        (
            {"MOOT_LLM_PRICE_IN": "2", "MOOT_LLM_PRICE_OUT": "8"},
            "Cost: about 0.10 CNY, for some 6 model calls and 30,000 tokens",
        ),
    ],
)
async def test_a_plan_says_what_it_may_cost_before_anything_is_spent_on_it(moot, llm_server, priced, said):
    llm_server.default = Say("I would rather not.")
    model = {"MOOT_LLM_BASE_URL": llm_server.url, "MOOT_LLM_MODEL": "careless-1"}
    seen = await moot("ask", ENGLISH, **model, **priced)
    assert said in seen.stdout


async def test_without_a_model_a_plan_costs_nothing(moot):
    assert "Cost: free, no language model is configured." in (await moot("ask", ENGLISH)).stdout
    assert "费用：免费" in (await moot("ask", CHINESE)).stdout


@pytest.mark.parametrize(
    ("question", "lang", "said"),
    [
        ("900001.DEMO", "zh_CN.UTF-8", "计划"),
        ("900001.DEMO", "en_US.UTF-8", "Plan:"),
        (CHINESE, "en_US.UTF-8", "计划"),
        (ENGLISH, "zh_CN.UTF-8", "Plan:"),
    ],
)
async def test_what_is_said_follows_the_question_and_then_the_environment(moot, question, lang, said):
    assert said in (await moot("ask", question, LANG=lang)).stdout


async def test_nothing_found_ends_with_1_and_says_so(moot):
    seen = await moot("ask", "Is there news about 900011.DEMO?", "--yes", MOOT_ANALYST="llm")
    assert (seen.returncode, "Nothing was found" in seen.stdout) == (1, True)


async def test_a_question_that_fails_ends_with_1(moot, llm_server):
    llm_server.default = Say(None, tool_calls=[("c1", "hand_to_planner", "{not json")])
    model = {"MOOT_LLM_BASE_URL": llm_server.url, "MOOT_LLM_MODEL": "careless-1"}
    seen = await moot("ask", "What are the latest AI trends?", **model)
    assert seen.returncode == 1
    assert "Not answered: The model handed the question over in a way nobody can read" in seen.stderr
    assert "Not answered" not in seen.stdout
    told = await moot("ask", "What are the latest AI trends?", "--json", **model)
    body = told.stdout[told.stdout.index("{\n") :]  # what is logged goes to the screen inside of a test
    assert (told.returncode, json.loads(body)["status"]) == (1, "failed")


async def test_what_a_model_says_cannot_command_the_terminal(moot, llm_server):
    llm_server.default = Say("Hello \x1b[2J\x1b]0;mine\x07and welcome.")
    model = {"MOOT_LLM_BASE_URL": llm_server.url, "MOOT_LLM_MODEL": "careless-1"}
    seen = await moot("ask", "hello", **model)
    assert seen.returncode == 0
    assert "and welcome." in seen.stdout
    assert not re.search(r"[\x1b\x07]", seen.stdout)


async def test_a_question_whose_process_died_is_resumed(moot, home, monkeypatch):
    with monkeypatch.context() as patch:
        gate = Gate()
        patch.setattr(GovernanceAdapter, "authorise", gate.authorise)
        async with Moot(Settings(home=home, log_level="error")) as desk:
            asking = asyncio.create_task(desk.ask(ENGLISH, accept_plan=True))
            await gate.reached(1)
            asking.cancel()
            await asyncio.wait({asking})
    (left,) = json.loads((await moot("ask", "--list", "--json")).stdout)
    shown = await moot("ask", "--thread", left["id"])
    assert f"Should its process have died: moot ask --thread {left['id']} --resume" in shown.stdout
    resumed = await moot("ask", "--thread", left["id"], "--resume")
    assert (resumed.returncode, "# Is 900001.DEMO cheap\n" in resumed.stdout) == (0, True)


class Terminal:
    """What is seen on a screen of `WIDTH` columns, and a keyboard."""

    def __init__(self, forge: Forge, pid: int, master: int, slave: int) -> None:
        self._forge, self._pid, self._master, self._read = forge, pid, master, b""
        self._slave: int | None = slave

    def close(self) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            self._forge.wait(self._pid)
        self._leave_it_to_the_other_side()
        os.close(self._master)

    @property
    def text(self) -> str:
        return ESCAPES.sub("", self._read.decode(errors="replace"))

    def until(self, words: str, times: int = 1) -> None:
        deadline = time.monotonic() + 2 * IN_TIME
        while self.text.count(words) < times:
            assert time.monotonic() < deadline, self.text
            if not self._more():
                raise AssertionError(self.text)

    def type(self, text: str) -> None:
        os.write(self._master, f"{text}\n".encode())

    def interrupt(self) -> None:
        """Ctrl-C, and again when nothing happens: `input` misses one that comes just before it waits."""
        for _ in range(int(IN_TIME)):
            os.kill(self._pid, signal.SIGINT)
            if select.select([self._master], [], [], 1)[0]:
                return

    def ended(self) -> int:
        while self._more():
            pass
        pid, self._pid = self._pid, 0
        return self._forge.wait(pid)

    def _leave_it_to_the_other_side(self) -> None:
        """Once it has shown something it holds the terminal open itself, until it ends."""
        if self._slave is not None:
            os.close(self._slave)
        self._slave = None

    def _more(self) -> bool:
        if not select.select([self._master], [], [], 2 * IN_TIME)[0]:
            raise AssertionError(self.text)
        try:
            piece = os.read(self._master, 65536)
        except OSError:  # its other end is closed
            piece = b""
        self._leave_it_to_the_other_side()
        self._read += piece
        return bool(piece)


@pytest.fixture
def terminal(home: Path, sqlite_database, forge: Forge):
    @contextmanager
    def run(*arguments: str, **more: str) -> Iterator[Terminal]:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
        here = {"MOOT_HOME": str(home), "LANG": "en_US.UTF-8", "TERM": "xterm-256color", **more}
        pid = forge.fork(arguments, here, home, *[Path(os.ttyname(slave))] * 3)
        with closing(Terminal(forge, pid, master, slave)) as screen:
            yield screen

    return run


ASKS = {"en_US.UTF-8": "or say what to change] [y]: ", "zh_CN.UTF-8": "或写明要改什么] [y]: "}


def test_a_terminal_asks_before_anybody_researches(terminal):
    with terminal("ask", ENGLISH) as screen:
        screen.until(ASKS["en_US.UTF-8"])
        assert "✓" not in screen.text
        screen.type("y")
        assert screen.ended() == 0
    _, asked, answer = screen.text.partition(ASKS["en_US.UTF-8"])
    parts = [answer.index(word) for word in ("✓ Research", "Key points", "Analysis", "Sources", "To go on")]
    assert asked and parts == sorted(parts)
    assert "##" not in answer
    laid = [line.rstrip() for line in answer.partition("To go on")[0].splitlines()]
    assert max(cell_len(line) for line in laid) <= WIDTH
    assert laid[laid.index("Key points") - 2] == "Is 900001.DEMO cheap"


def test_a_terminal_takes_no_for_an_answer(terminal):
    with terminal("ask", ENGLISH) as screen:
        screen.until(ASKS["en_US.UTF-8"])
        screen.type("n")
        assert screen.ended() == 0
    assert "The plan was rejected. Nothing was researched." in screen.text


def test_anything_else_that_is_typed_changes_the_plan_and_it_asks_again(terminal):
    with terminal("ask", CHINESE, LANG="zh_CN.UTF-8") as screen:
        screen.until(ASKS["zh_CN.UTF-8"])
        screen.type("也看负债")
        screen.until(ASKS["zh_CN.UTF-8"], times=2)
        assert "未能按要求修改计划" in screen.text
        screen.type("好")
        assert screen.ended() == 0
    assert "✓ 研究 幻山酒业" in screen.text


def test_whoever_leaves_the_question_open_finds_it_waiting(terminal):
    with terminal("ask", ENGLISH) as screen:
        screen.until(ASKS["en_US.UTF-8"])
        screen.interrupt()
        assert screen.ended() == 0
    thread = thread_in(screen.text)
    with terminal("ask", "--thread", thread) as screen:
        screen.until(ASKS["en_US.UTF-8"])
        assert "experts: Valuation modeler" in " ".join(screen.text.split())
        screen.type("n")
        assert screen.ended() == 0


def test_a_terminal_does_not_ask_again_for_a_plan_that_somebody_else_has_to_approve(terminal, home):
    (home / "careful.yaml").write_text(CAREFUL, encoding="utf-8")
    with terminal("rules", "activate", "--yes", "careful.yaml") as screen:
        assert screen.ended() == 0
    with terminal("ask", ENGLISH) as screen:
        screen.until(ASKS["en_US.UTF-8"])
        assert "moot escalations approve" in " ".join(screen.text.split())
        screen.type("y")
        assert screen.ended() == 0
    _, _, after = screen.text.partition(ASKS["en_US.UTF-8"])
    assert "The plan waits for you" in after
    assert "✓" not in after
    with terminal("ask", ENGLISH, "--yes") as screen:
        assert screen.ended() == 0
    assert "Accept this plan?" not in screen.text


def test_yes_asks_nothing(terminal):
    with terminal("ask", ENGLISH, "--yes", "--style", "brief") as screen:
        assert screen.ended() == 0
    assert "Accept this plan?" not in screen.text
    assert "Key points" in screen.text


def test_an_answer_in_chinese_fills_its_lines():
    console = Console(width=40, force_terminal=False, color_system=None)
    with console.capture() as seen:
        console.print(
            Laid("# 标题\n\n- 现价 21.06 元，估值偏低，更像机会而非价值陷阱，可以继续观察一段时间。")
        )
    title, _, *lines = [line.rstrip() for line in seen.get().splitlines()]
    assert title == "标题"
    assert lines == [" • 现价 21.06 元，估值偏低，更像机会而非", "   价值陷阱，可以继续观察一段时间。"]


def test_the_example_for_python_runs(home, sqlite_database, forge):
    page = (Path(__file__).parents[2] / "docs" / "intake.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ran = forge.run("-c", example, home=home)
    assert ran.stdout.startswith("waiting ['Research "), ran.stderr
    assert "\n# Is 900001.DEMO cheap\n" in ran.stdout


@pytest.mark.parametrize("width", range(16, 40))
def test_lines_of_an_answer_fit_whatever_the_script(width):
    text = "估值建模师［Undervalued，0.67］：现价 21.06 元，the range is wide，更像机会而非价值陷阱。"
    lines = [line.plain for line in flow(Text(text), width)]
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(cell_len(line) <= width for line in lines)
    assert not any(line.startswith(tuple("，。：；］")) for line in lines)
