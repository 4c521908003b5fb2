"""A processing step: works with what other steps have found. Models say what to compute; computing is done here."""

import json
import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import structlog
from pydantic import Field, StringConstraints

from moot.modules.intake.application.intake_state import Task
from moot.modules.intake.application.report_text import as_table, side_by_side
from moot.modules.intake.domain.question import Finding, Step
from moot.modules.intake.domain.texts import SAY
from moot.modules.intake.infrastructure.agents.researcher import as_data
from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates, ask_twice
from moot.modules.llm_platform.application.answer_schema import describe_schema
from moot.modules.llm_platform.application.llm_service import ChatMessage, LLMService, parse_llm_json_output
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Message
from moot.shared.domain.stated_numbers import SCALES
from moot.shared.domain.validation import Strict

logger = structlog.get_logger(__name__)

LONGEST_FINDING = 12_000
MOST_VALUES, MOST_RESULTS = 60, 20
NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?")
STARTS, ENDS = r"(?<![\d.,])(?<!(?<!\d)[-−])", r"(?!\d|[.,]\d)"
"""Neither the rest of a longer number, nor one without its sign; in `3-5` there is no sign."""

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,39}$")]
Operation = Literal["sum", "difference", "product", "ratio", "growth", "mean", "median", "min", "max", "rank"]
OPERATIONS: Mapping[Operation, Callable[..., float]] = {
    "sum": lambda *numbers: math.fsum(numbers),
    "product": lambda *numbers: math.prod(numbers),
    "mean": lambda *numbers: statistics.fmean(numbers),
    "median": lambda *numbers: statistics.median(numbers),
    "min": lambda *numbers: min(numbers),
    "max": lambda *numbers: max(numbers),
    "difference": lambda one, other: one - other,
    "ratio": lambda one, other: one / other,
    "growth": lambda before, after: (after - before) / abs(before) * 100,
}


class QuotedValue(Strict):
    name: Name
    quote: str = Field(
        max_length=60, description="the number exactly as a finding writes it, e.g. 1,234.5 or 3.2亿"
    )
    step: str = Field(description="the id of the step whose finding it stands in")


class Computation(Strict):
    name: Name
    label: str = Field(max_length=200, description="what it is, in the reader's language")
    operation: Operation = Field(description="growth: in percent, from the first to the second")
    of: list[Name] = Field(min_length=1, max_length=20, description="names of values or earlier computations")

    @property
    def told(self) -> str:
        return f"{self.operation}({', '.join(self.of)})"


class Worksheet(Strict):
    """What a model may ask to have worked out: operations over values it quotes. Never code."""

    values: list[QuotedValue] = Field(default=[], max_length=MOST_VALUES)
    computations: list[Computation] = Field(default=[], max_length=MOST_RESULTS)


class Computed(NamedTuple):
    """`rows` are label, how, and result; `quotes` what a finding vouches for, as it is written there."""

    rows: list[list[str]]
    quotes: dict[str, str]
    problems: list[Message]


class Processor:
    def __init__(self, llm: LLMService, prompts: PromptTemplates) -> None:
        self._llm, self._prompts = llm, prompts

    async def process(self, step: Step, findings: Sequence[Finding], task: Task) -> Finding:
        """From the usable ones of `findings` only: what failed is no evidence."""
        usable = [finding for finding in findings if finding.usable]
        try:
            done = await self._compute(step, usable, task) if self._llm.configured else None
            why = task.say("common.no_model")
        except AppError as e:
            logger.warning("processing step without its model", step=step.id, error=str(e))
            done, why = None, e.in_locale(task.reader)
        problems = [problem.in_locale(task.reader) for problem in done.problems] if done else [why]
        computed = _results(done, task) if done else ""
        text = "\n\n".join(filter(None, [computed, side_by_side([each.figures for each in usable])]))
        if not text:
            nothing = task.say("steps.nothing_computed") if done else task.say("steps.nothing_to_compare")
            return Finding(step_id=step.id, status="failed", error=" ".join([nothing, *problems]))
        return Finding(
            step_id=step.id,
            status="partial" if done and problems else "completed",
            text=text,
            citations=tuple(dict.fromkeys(source for each in usable for source in each.citations)),
            warnings=tuple(problems),
        )

    async def _compute(self, step: Step, usable: Sequence[Finding], task: Task) -> Computed:
        """What is not right at the second time either is left out, and told."""

        async def read(said: str) -> tuple[Computed, list[Message]]:
            done = compute(parse_llm_json_output(said, Worksheet), usable)
            return done, done.problems

        talk, agent = self._opening(step, usable, task), f"processing:{step.id}"
        done, _ = await ask_twice(
            self._llm, talk, Worksheet, read, agent=agent, temperature=0.0, reader=task.reader
        )
        return done

    def _opening(self, step: Step, usable: Sequence[Finding], task: Task) -> list[ChatMessage]:
        asked = task.say("steps.task", goal=task.goal, title=step.title, description=step.description)
        given = "\n\n".join(f"[{each.step_id}]\n{each.text[:LONGEST_FINDING]}" for each in usable)
        return self._prompts.messages(
            "processing",
            {
                "locale": task.locale,
                "schema": json.dumps(describe_schema(Worksheet), ensure_ascii=False),
                "user_input": [ChatMessage(role="user", content=f"{asked}\n\n{as_data(given, task.reader)}")],
            },
        )


def compute(sheet: Worksheet, findings: Sequence[Finding]) -> Computed:
    """What can be worked out from numbers that the findings hold. The rest is a problem, said one by one."""
    texts = {finding.step_id: finding.text for finding in findings}
    known: dict[str, float] = {}
    done = Computed([], {}, [])
    for value in sheet.values:
        number = read_number(value.quote.strip(), texts.get(value.step, ""))
        if number is None:
            done.problems.append(SAY("steps.worksheet.not_there", quote=value.quote, step=value.step))
        else:
            known[value.name], done.quotes[value.name] = number, value.quote
    for asked in sheet.computations:
        try:
            result = _work_out(asked, known)
        except (KeyError, ArithmeticError, ValueError, TypeError):
            told = SAY(
                "steps.worksheet.not_computed", label=asked.label, what=asked.told, known=sorted(known)
            )
            done.problems.append(told)
            continue
        if isinstance(result, float):
            known[asked.name] = result
        done.rows.append([asked.label, f"`{asked.told}`", _show(result)])
    return done


def _work_out(asked: Computation, known: Mapping[str, float]) -> float | str:
    """Raises what arithmetic raises: a name that is not known, one number too many, a division by nothing."""
    numbers = [known[name] for name in asked.of]
    if asked.operation == "rank":
        return " > ".join(sorted(asked.of, key=lambda name: known[name], reverse=True))
    result = OPERATIONS[asked.operation](*numbers)
    if not math.isfinite(result):
        raise OverflowError
    return float(result)


def read_number(quote: str, text: str) -> float | None:
    """The number, if the text holds it letter for letter and not as a part of another one; 12.5 % stays 12.5."""
    digits = NUMBER.match(quote)
    if digits is None or not re.search(rf"{STARTS}{re.escape(quote)}{ENDS}", text):
        return None
    unit = quote[digits.end() :].strip().lower()
    if unit not in ("", "%", *SCALES):
        return None
    return float(digits[0].replace(",", "").replace("−", "-")) * SCALES.get(unit, 1.0)


def _show(result: float | str) -> str:
    if isinstance(result, str):
        return result
    return f"{result:,.4f}".rstrip("0").rstrip(".") if abs(result) >= 0.001 else f"{result:.4g}"


def _results(done: Computed, task: Task) -> str:
    if not done.rows:
        return ""
    head = [task.say(f"steps.result.{column}") for column in ("what", "how", "value")]
    values = "; ".join(f"{name} = {quote}" for name, quote in done.quotes.items())
    return f"{as_table([head, *done.rows])}\n\n{task.say('steps.result.with_values', values=values)}"
