"""Processing steps: the desk computes from numbers that findings hold, and executes nothing a model wrote."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from moot.modules.intake.application.report_text import side_by_side
from moot.modules.intake.domain.question import Citation, Finding, Step
from moot.modules.intake.infrastructure.agents.processing import Worksheet, compute
from tests.fakes.llm_server import Say, Status
from tests.fakes.search_server import LocalWeb, local_web
from tests.intake.steps_desk import StepsDesk, a_task, steps_desk

STEP = Step(id="p1", type="processing", title="Compare growth", after=("a", "b"))
SOURCE = Citation(title="Report", source="database")
REVENUE = Finding(
    step_id="a",
    status="completed",
    text="Revenue rose from 1,234.5亿 to 1,481.4亿 (2.5%), debt by -7.",
    citations=(SOURCE,),
)
PROFIT = Finding(step_id="b", status="completed", text="Profit was 246.9亿 in 2025.")
FAILED = Finding(step_id="c", status="failed", text="Half of it: 999.", error="The service said 999.")


@pytest.fixture
async def web() -> AsyncIterator[LocalWeb]:
    async with local_web() as served:
        yield served


@pytest.fixture
async def steps(home, clock, web, llm_server) -> AsyncIterator[StepsDesk]:
    async with steps_desk(home, clock, web, llm_server) as desk:
        yield desk


def value(name: str, quote: str, step: str = "a") -> dict[str, str]:
    return {"name": name, "quote": quote, "step": step}


def computation(name: str, operation: str, *of: str) -> dict[str, Any]:
    return {"name": name, "label": f"The {name}", "operation": operation, "of": list(of)}


def sheet(values: list[Any], computations: list[Any]) -> Say:
    return Say(json.dumps({"values": values, "computations": computations}))


async def process(steps: StepsDesk, *findings: Finding, locale: str = "en-US") -> Finding:
    return await steps.processor().process(STEP, findings, a_task("Compare growth", locale))


GROWTH = [value("before", "1,234.5亿"), value("after", "1,481.4亿"), value("profit", "246.9亿", "b")]


async def test_the_desk_computes_what_the_model_asks_for(steps, llm_server):
    llm_server.script(
        sheet(
            GROWTH,
            [
                computation("growth", "growth", "before", "after"),
                computation("margin", "ratio", "profit", "after"),
                computation("order", "rank", "profit", "after", "growth"),
            ],
        )
    )
    finding = await process(steps, REVENUE, PROFIT)
    assert (finding.status, finding.warnings) == ("completed", ())
    assert "| The growth | `growth(before, after)` | 20 |" in finding.text
    assert "| The margin | `ratio(profit, after)` | 0.1667 |" in finding.text
    assert "| The order | `rank(profit, after, growth)` | after > profit > growth |" in finding.text
    assert "before = 1,234.5亿" in finding.text
    assert finding.citations == (SOURCE,)


@pytest.mark.accepts("W43")
@pytest.mark.parametrize(
    ("operation", "of"),
    [
        ("__import__('os').system('touch /tmp/owned')", ["before"]),
        ("exec", ["before"]),
        ("sum", ["().__class__.__mro__"]),
        ("sum", ["open('/etc/passwd').read()"]),
        ("sum", ["before.real"]),
        ("sum", ["__import__"]),
    ],
)
async def test_code_that_a_model_wrote_is_never_executed(steps, llm_server, operation, of):
    llm_server.default = sheet(GROWTH, [computation("it", operation, *of)])
    finding = await process(steps, REVENUE, PROFIT)
    assert (finding.status, finding.text) == ("failed", "")
    assert finding.error


async def test_a_number_that_no_finding_holds_is_asked_for_again_and_then_left_out(steps, llm_server):
    right = [value("before", "1,234.5亿"), value("after", "1,481.4亿")]
    growth = [computation("growth", "growth", "before", "after")]
    llm_server.script(sheet([value("before", "1,000亿"), right[1]], growth), sheet(right, growth))
    assert (await process(steps, REVENUE)).status == "completed"
    assert '"1,000亿"' in llm_server.requests[1].prompt

    wrong = [value("invented", "77"), *right]
    llm_server.default = sheet(wrong, [*growth, computation("other", "product", "invented", "after")])
    finding = await process(steps, REVENUE)
    assert finding.status == "partial"
    assert "| The growth |" in finding.text
    assert "The other" not in finding.text
    assert len(finding.warnings) == 2


@pytest.mark.parametrize("quote", ["234.5亿", "1,234", "34.5", "48", "5%", "7", "rose", "", "2.5% of it"])
async def test_a_part_of_a_number_is_not_that_number(steps, llm_server, quote):
    llm_server.default = sheet([value("it", quote)], [computation("twice", "sum", "it", "it")])
    assert (await process(steps, REVENUE)).status == "failed"


@pytest.mark.accepts("W45")
async def test_what_failed_is_no_evidence_and_not_shown_to_the_model(steps, llm_server):
    llm_server.default = sheet([value("it", "999", "c")], [computation("twice", "sum", "it", "it")])
    finding = await process(steps, REVENUE, FAILED)
    assert finding.status == "failed"
    assert "999" not in llm_server.requests[0].prompt
    assert "1,234.5亿" in llm_server.requests[0].prompt


async def test_an_answer_that_is_no_sheet_is_asked_for_again(steps, llm_server):
    llm_server.script(
        Say("I think 20 %."), sheet(GROWTH[:2], [computation("growth", "ratio", "after", "before")])
    )
    assert "| The growth | `ratio(after, before)` | 1.2 |" in (await process(steps, REVENUE)).text
    llm_server.default = Say('{"values": "many"}')
    finding = await process(steps, REVENUE)
    assert (finding.status, finding.text) == ("failed", "")


def verdict(step_id: str, symbol: str, action: str) -> Finding:
    figures = {"Symbol": symbol, "Verdict": action, "Confidence": "60%"}
    return Finding(step_id=step_id, status="completed", text=f"{symbol}: {action}", figures=figures)


TABLE = """\
| Symbol | 900001.DEMO | 900002.DEMO |
| --- | --- | --- |
| Verdict | BUY | HOLD |
| Confidence | 60% | 60% |"""


async def test_without_a_model_equity_findings_stand_side_by_side(home, clock, web):
    async with steps_desk(home, clock, web) as steps:
        both = verdict("a", "900001.DEMO", "BUY"), verdict("b", "900002.DEMO", "HOLD")
        finding = await process(steps, *both)
        alone = await process(steps, both[0])
    assert (finding.status, finding.text) == ("completed", TABLE)
    assert "No language model" in finding.warnings[0]
    assert (alone.status, alone.text) == ("failed", "")


async def test_a_model_that_fails_leaves_the_comparison(steps, llm_server):
    llm_server.default = Status(401)
    finding = await process(steps, verdict("a", "900001.DEMO", "BUY"), verdict("b", "900002.DEMO", "HOLD"))
    assert (finding.status, finding.text) == ("completed", TABLE)
    assert finding.warnings


def test_what_only_one_finding_says_is_left_open_for_the_other():
    more = verdict("b", "900002.DEMO", "HOLD")
    more = more.model_copy(update={"figures": {**more.figures, "Position": "5|%"}})
    table = side_by_side([verdict("a", "900001.DEMO", "BUY").figures, more.figures])
    assert table.splitlines()[-1] == "| Position | — | 5\\|% |"


NUMBERS = Finding(step_id="a", status="completed", text="a is 10, b is 4, c is -4, none is 0, d is 3 million")


def worked_out(operation: str, *of: str) -> str | None:
    """The result; None where there is none."""
    quotes = {"a": "10", "b": "4", "c": "-4", "none": "0", "d": "3 million"}
    asked = [computation("it", operation, *of)]
    given = {"values": [value(name, quote) for name, quote in quotes.items()], "computations": asked}
    done = compute(Worksheet.model_validate(given), [NUMBERS])
    assert bool(done.rows) != bool(done.problems)
    return done.rows[0][2] if done.rows else None


@pytest.mark.parametrize(
    ("asked", "result"),
    [
        (("sum", "a", "b", "c"), "10"),
        (("difference", "a", "b"), "6"),
        (("product", "a", "b"), "40"),
        (("ratio", "a", "b"), "2.5"),
        (("growth", "b", "a"), "150"),
        (("growth", "c", "b"), "200"),
        (("mean", "a", "b"), "7"),
        (("median", "a", "b", "c"), "4"),
        (("min", "a", "c"), "-4"),
        (("max", "a", "d"), "3,000,000"),
        (("rank", "b", "a", "c"), "a > b > c"),
    ],
)
def test_operations_are_worked_out(asked, result):
    assert worked_out(*asked) == result


@pytest.mark.accepts("W43")
@pytest.mark.parametrize(
    "asked",
    [
        ("ratio", "a", "none"),
        ("growth", "none", "a"),
        ("ratio", "a"),
        ("difference", "a", "b", "c"),
        ("sum", "unknown"),
        ("rank", "a", "unknown"),
    ],
)
def test_what_has_no_result_is_a_problem(asked):
    assert worked_out(*asked) is None
