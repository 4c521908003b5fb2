"""How well intake receives questions, counted since the process began."""

import json
import math
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, computed_field

from moot.modules.intake.application.language import normalise
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.redaction import REDACT

Ending = Literal["handed_off", "replied", "failed"]
LONGEST_SAMPLE = 200
"""Characters of a question that are kept for labelling."""


class Share(BaseModel, frozen=True):
    """How many of how many."""

    count: int
    out_of: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def rate(self) -> float | None:
        """None as long as there is nothing to divide by."""
        return self.count / self.out_of if self.out_of else None


class Latency(BaseModel, frozen=True):
    """`count` is of all runs, the percentiles of the latest ones, in milliseconds."""

    count: int
    p50_ms: float | None
    p95_ms: float | None


class IntakeSnapshot(BaseModel, frozen=True):
    runs: dict[Ending, int]
    hand_off_success: Share
    """Of a model's calls of the tool, how many could be followed."""
    prompt_load_failure: Share
    """Of all prompts fetched, how many did not come from the file meant for them."""
    locale_disagreement: Share
    """Of the languages a model handed over, how many are not the one detected."""
    coordinator_latency: Latency


class LocaleSample(NamedTuple):
    text: str
    handed: str
    detected: str


class IntakeMetrics:
    """`timed`: how many of the latest runs are remembered one by one; `sampled`: of each workspace's questions."""

    def __init__(self, *, timed: int = 1000, sampled: int = 200) -> None:
        self._runs: Counter[Ending] = Counter()
        self._counts: Counter[tuple[str, bool]] = Counter()
        self._seconds: deque[float] = deque(maxlen=timed)
        self._samples: defaultdict[str, deque[LocaleSample]] = defaultdict(lambda: deque(maxlen=sampled))

    def prompt_fetched(self, *, failed: bool) -> None:
        self._counts["prompt failed", failed] += 1

    def hand_off_called(self, *, followed: bool) -> None:
        self._counts["hand-off followed", followed] += 1

    def locale_handed(
        self, text: str, handed: str, detected: str, *, workspace: str = DEFAULT_WORKSPACE
    ) -> None:
        """Regions are not compared: no script tells en-GB from en-US."""
        self._counts["locales disagree", _language(handed) != _language(detected)] += 1
        sample = LocaleSample(REDACT(text)[:LONGEST_SAMPLE], REDACT(handed)[:LONGEST_SAMPLE], detected)
        self._samples[workspace].append(sample)

    def count_coordination(self, ending: Ending, seconds: float) -> None:
        self._runs[ending] += 1
        self._seconds.append(seconds)

    def snapshot(self) -> IntakeSnapshot:
        ordered = sorted(self._seconds)
        return IntakeSnapshot(
            runs=dict(self._runs),
            hand_off_success=self._share("hand-off followed"),
            prompt_load_failure=self._share("prompt failed"),
            locale_disagreement=self._share("locales disagree"),
            coordinator_latency=Latency(
                count=self._runs.total(), p50_ms=_percentile(ordered, 0.50), p95_ms=_percentile(ordered, 0.95)
            ),
        )

    def locale_samples(self, workspace: str = DEFAULT_WORKSPACE) -> tuple[LocaleSample, ...]:
        """Questions of people: for nobody outside of their workspace."""
        return tuple(self._samples.get(workspace, ()))

    def locale_samples_as_jsonl(self, workspace: str = DEFAULT_WORKSPACE) -> str:
        """For somebody to label: a line each, with room for the language it really is."""
        lines = ({**sample._asdict(), "label": None} for sample in self.locale_samples(workspace))
        return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)

    def _share(self, what: str) -> Share:
        so, otherwise = self._counts[what, True], self._counts[what, False]
        return Share(count=so, out_of=so + otherwise)


def _language(locale: str) -> str:
    return (normalise(locale) or locale).split("-")[0]


def _percentile(ordered: Sequence[float], part: float) -> float | None:
    """By nearest rank."""
    return ordered[math.ceil(part * len(ordered)) - 1] * 1000 if ordered else None
