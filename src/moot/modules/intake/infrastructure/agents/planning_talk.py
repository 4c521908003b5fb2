"""What the planner's model is told, and what it answers: evidence is quoted, a person's wishes are not."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from moot.modules.intake.application.plan_repair import LONGEST_TEXT
from moot.modules.intake.domain.findings import Citation, Finding
from moot.modules.intake.domain.plan import Plan, PlanProblem
from moot.modules.intake.domain.ports import PlanRuling
from moot.modules.intake.domain.question import Limits, Understanding, reading_language
from moot.modules.intake.domain.texts import SAY
from moot.modules.llm_platform.application.llm_service import ChatMessage
from moot.shared.domain.messages import Locale

LONGEST_QUOTE = 2000
MOST_STARTS = 50
"""Places in an answer at which JSON is looked for."""


class Task(NamedTuple):
    """One question, and all that is known while it is planned."""

    question: str
    understanding: Understanding
    limits: Limits
    background: Sequence[Citation] = ()
    findings: Sequence[Finding] = ()
    edits: Sequence[str] = ()
    previous: Plan | None = None

    @property
    def reader(self) -> Locale:
        return reading_language(self.understanding.locale)

    @property
    def goal(self) -> str:
        """What is asked, with what the desk takes it to mean: a nickname shares few words with any plan."""
        title, mentions = self.understanding.title, self.understanding.mentions
        question = self.question[:LONGEST_TEXT]
        named = [
            word for mention in mentions if mention.certain for word in (*mention.names, *mention.symbols)
        ]
        return self.told("plan.goal", question=question, about=" ".join([title, *named]))

    @property
    def something_found(self) -> bool:
        """Of a company only research tells enough: strangers on the web cannot make it needless."""
        found = any(finding.usable for finding in self.findings)
        return found or (self.understanding.intent != "equity" and bool(self.background))

    def told(self, key: str, **values: Any) -> str:
        return SAY(key, **values).in_locale(self.reader)

    def say(self, key: str, **values: Any) -> ChatMessage:
        return ChatMessage(role="user", content=self.told(key, **values))


def beside_the_question(task: Task) -> list[ChatMessage]:
    """Evidence as quoted data, then the plan so far and what a person thinks of it."""
    said = []
    if task.background:
        said.append(task.say("plan.turn.evidence", text=quoted_sources(task.background)))
    if task.findings:
        lines = "\n".join(_found(finding, task) for finding in task.findings)
        said.append(task.say("plan.turn.findings", text=lines))
    if task.previous is not None:
        said.append(ChatMessage(role="assistant", content=task.previous.model_dump_json()))
    return said + [task.say("plan.turn.feedback", text=each[:LONGEST_TEXT]) for each in task.edits]


def quoted_sources(sources: Sequence[Citation]) -> str:
    """What strangers wrote, a line each."""
    return "\n".join(_quoted(each.model_dump(exclude_none=True)) for each in sources)


def sent_back(task: Task, problems: Sequence[PlanProblem]) -> ChatMessage:
    return task.say("plan.turn.again", problems="\n".join(in_lines(problems)))


def rejection(task: Task, ruling: PlanRuling) -> ChatMessage:
    advice = " ".join(ruling.advice) or SAY("plan.turn.no_advice")
    return task.say("plan.turn.rejected", why=" ".join(ruling.why), advice=advice)


def in_lines(problems: Sequence[PlanProblem]) -> list[str]:
    return [f"{p.field}: {p.message}" + (f" [{p.allowed}]" if p.allowed else "") for p in problems]


def json_in(text: str) -> Any:
    """The plan in an answer, whatever thoughts, fences and words are around it. `ValueError`: there is no JSON."""
    text = text.rpartition("</think>")[2].strip()
    found = []
    for start in [0, *(mark.start() for mark in re.finditer(r"[\[{]", text))][:MOST_STARTS]:
        try:
            found.append(json.JSONDecoder(strict=False).raw_decode(text, start)[0])
        except (ValueError, RecursionError):
            continue
        if _like_a_plan(found[-1]):
            return found[-1]
    if not found:
        raise ValueError("no JSON")
    return found[0]


def _like_a_plan(found: Any) -> bool:
    if isinstance(found, list):
        return bool(found) and all(isinstance(each, dict) for each in found)
    return isinstance(found, dict) and not {"steps", "plan", "has_enough_context"}.isdisjoint(found)


def _found(finding: Finding, task: Task) -> str:
    """A step that failed has found nothing, whatever its error says."""
    if not finding.usable:
        return f"{finding.step_id}: {task.told('plan.turn.failed_step')}"
    return f"{finding.step_id}: {_quoted(finding.text[:LONGEST_TEXT])}"


def _quoted(said: str | Mapping[str, str]) -> str:
    """As JSON: it cannot end its line, nor close what it stands in."""
    texts = said if isinstance(said, str) else {name: text[:LONGEST_QUOTE] for name, text in said.items()}
    return json.dumps(texts, ensure_ascii=False).replace("<", "\\u003c")
