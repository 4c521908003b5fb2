"""What a model may ask to have worked out: values it quotes, arithmetic over them, and queries. Never code."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field, StringConstraints

from moot.modules.intake.application.expressions import LONGEST, Number, evaluate
from moot.modules.intake.domain.findings import Finding
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.errors import AppError
from moot.shared.domain.messages import Message
from moot.shared.domain.validation import Strict

MOST_VALUES, MOST_RESULTS, MOST_QUERIES = 60, 20, 3

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,39}$")]
NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?")
STARTS, ENDS = r"(?<![\d.,])(?<!(?<!\d)[-−])", r"(?!\d|[.,]\d)"
"""Neither the rest of a longer number, nor one without its sign; in `3-5` there is no sign."""
UNITS: Mapping[str, float] = {
    "万亿": 1e12,
    "亿": 1e8,
    "万": 1e4,
    "trillion": 1e12,
    "billion": 1e9,
    "million": 1e6,
    "thousand": 1e3,
    "%": 1.0,
    "": 1.0,
}
"""A percentage stays the number that is written: 12.5 % is 12.5."""


class QuotedValue(Strict):
    name: Name
    quote: str = Field(
        max_length=60, description="the number exactly as a finding writes it, e.g. 1,234.5 or 3.2亿"
    )
    step: str = Field(description="the id of the step whose finding it stands in")


class Computation(Strict):
    name: Name
    label: str = Field(max_length=200, description="what it is, in the reader's language")
    expression: str = Field(max_length=LONGEST)


class Query(Strict):
    label: str = Field(max_length=200)
    sql: str = Field(max_length=4000, description="one SELECT for the tool `database`")


class Worksheet(Strict):
    values: list[QuotedValue] = Field(default=[], max_length=MOST_VALUES)
    computations: list[Computation] = Field(default=[], max_length=MOST_RESULTS)
    queries: list[Query] = Field(default=[], max_length=MOST_QUERIES)


class Result(NamedTuple):
    label: str
    expression: str
    value: Number

    @property
    def shown(self) -> str:
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return (
            f"{self.value:,.4f}".rstrip("0").rstrip(".") if abs(self.value) >= 0.001 else f"{self.value:.4g}"
        )


class Computed(NamedTuple):
    results: Sequence[Result]
    values: Mapping[str, str]
    """Each name that a finding vouches for, as it is written there."""
    problems: Sequence[Message]


def computed(sheet: Worksheet, findings: Sequence[Finding]) -> Computed:
    """What can be worked out from numbers that the findings hold. The rest is a problem, said one by one."""
    texts = {finding.step_id: finding.text for finding in findings}
    known: dict[str, float] = {}
    quotes: dict[str, str] = {}
    problems: list[Message] = []
    for value in sheet.values:
        number = _grounded(value, texts.get(value.step, ""))
        if number is None:
            problems.append(SAY("steps.worksheet.not_there", quote=value.quote, step=value.step))
        else:
            known[value.name], quotes[value.name] = number, value.quote
    results: list[Result] = []
    for asked in sheet.computations:
        try:
            result = evaluate(asked.expression, known)
        except AppError as e:
            problems.append(SAY("steps.worksheet.not_computed", label=asked.label, why=e.message))
            continue
        results.append(Result(asked.label, asked.expression, result))
        if not isinstance(result, bool):
            known[asked.name] = result
    return Computed(results, quotes, problems)


def _grounded(value: QuotedValue, text: str) -> float | None:
    """The number, if the finding holds it letter for letter and not as a part of another one."""
    quote = value.quote.strip()
    digits = NUMBER.match(quote)
    if digits is None or not re.search(rf"{STARTS}{re.escape(quote)}{ENDS}", text):
        return None
    unit = quote[digits.end() :].strip().casefold()
    if unit not in UNITS:
        return None
    return float(digits.group().replace(",", "").replace("−", "-")) * UNITS[unit]
