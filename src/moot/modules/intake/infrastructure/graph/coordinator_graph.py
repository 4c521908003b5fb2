"""The coordinator receives a question: load its prompt, ask the model, follow what it says.

Without a model, rules understand the question and say so in a model's words: from there on the way is the same.
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import structlog
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from moot.modules.intake.application.hand_off import (
    HAND_TO_PLANNER,
    TITLE_OF,
    HandOff,
    MalformedArguments,
    Reply,
    decided_by,
)
from moot.modules.intake.application.intake_state import CoordinatorState, question_of
from moot.modules.intake.application.language import locale_of
from moot.modules.intake.application.metrics import Ending, IntakeMetrics
from moot.modules.intake.domain.question import Limits, Understanding, reading_language
from moot.modules.intake.domain.texts import SAY
from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates
from moot.modules.llm_platform.application.llm_service import ChatMessage, LLMService, Tool
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError, UpstreamFailed

logger = structlog.get_logger(__name__)

AGENT = "coordinator"
BACKGROUND_INVESTIGATOR, PLANNER = "background_investigator", "planner"
TOOL = Tool(**HAND_TO_PLANNER.model_dump())
LONGEST_TITLE = 200
LONGEST_REPLY = 1000
"""Tokens. Whoever needs more is not greeting anybody."""


class WorkingState(CoordinatorState, total=False):
    """Passed from node to node and gone at the end. `said` is an assistant's message, whoever speaks it."""

    prompt: list[dict[str, Any]]
    said: dict[str, Any]
    understood: dict[str, Any]
    by_model: bool


Update = dict[str, Any]
Route = Callable[[CoordinatorState], str | None]
"""Where a handed-over question goes next; None leaves it to the next route."""
CoordinatorGraph = CompiledStateGraph[WorkingState, Any, CoordinatorState, CoordinatorState]


def to_background(state: CoordinatorState) -> str | None:
    return BACKGROUND_INVESTIGATOR if state.get("enable_background_investigation") else None


def to_planner(state: CoordinatorState) -> str | None:
    return PLANNER


ROUTES: tuple[Route, ...] = (to_background, to_planner)


class NothingSaid(UpstreamFailed):
    """The model neither handed the question over nor answered it."""

    code = "NOTHING_SAID"


class OfflineUnderstanding(Protocol):
    async def understand(
        self, text: str, *, previous: Understanding | None = None, default_locale: str
    ) -> Understanding:
        """What can be told of a question without a model."""

    async def say_what_works(self, locale: str) -> str:
        """For whoever asks something else."""


class Coordinator:
    """`default_locale` is for questions whose language nobody can tell. `routes` are tried in their order."""

    def __init__(
        self,
        llm: LLMService,
        prompts: PromptTemplates,
        rules: OfflineUnderstanding,
        clock: Clock,
        metrics: IntakeMetrics,
        *,
        default_locale: str = "en-US",
        routes: Sequence[Route] = ROUTES,
    ) -> None:
        self._llm, self._prompts, self._rules = llm, prompts, rules
        self._clock, self._metrics = clock, metrics
        self._default_locale, self._routes = default_locale, routes
        self.graph = self._compiled()

    async def run(self, state: CoordinatorState, workspace: str) -> CoordinatorState:
        """A node of the main graph, timed. An `AppError` of prompt or model is the caller's to tell."""
        began = time.perf_counter()
        ending: Ending = "failed"
        try:
            ended = cast(CoordinatorState, await self.graph.ainvoke(state))
            ending = _ending(ended)
            if handed := ended["handed_locale"]:
                question, detected = question_of(state), ended["detected_locale"]
                self._metrics.locale_handed(question, handed, detected, workspace=workspace)
            return ended
        finally:
            self._metrics.coordinated(ending, time.perf_counter() - began)

    def _compiled(self) -> CoordinatorGraph:
        graph = StateGraph(WorkingState, input_schema=CoordinatorState, output_schema=CoordinatorState)
        graph.add_node("load", self._load)
        graph.add_node("agent", self._agent)
        graph.add_node("router", self._router)
        graph.add_edge(START, "load")
        graph.add_edge("load", "agent")
        graph.add_edge("agent", "router")
        graph.add_edge("router", END)
        return graph.compile(name=AGENT)

    async def _load(self, state: WorkingState) -> Update:
        question = question_of(state)
        locale = locale_of(state.get("locale"), question, self._default_locale)
        limits = Limits.model_validate(state.get("limits") or {})
        variables = {
            "locale": locale,
            "max_step_num": limits.max_step_num,
            "max_plan_iterations": limits.max_plan_iterations,
            "CURRENT_TIME": f"{self._clock.now():%Y-%m-%d %H:%M:%S}",
            "user_input": [ChatMessage(**turn) for turn in state["messages"]],
        }
        prompt = self._prompts.messages(AGENT, variables)
        return {
            "prompt": [message.model_dump(mode="json") for message in prompt],
            "detected_locale": locale_of(None, question, locale),
        }

    async def _agent(self, state: WorkingState) -> Update:
        """Whoever speaks, the rules look for companies: their directory knows names better than a model."""
        before = state.get("understanding")
        understood = await self._rules.understand(
            question_of(state),
            previous=Understanding.model_validate(before) if before else None,
            default_locale=state["detected_locale"],
        )
        said = await self._ask(state, understood) if self._llm.configured else None
        by_model = said is not None
        if said is None and (understood.intent == "equity" or self._llm.configured):
            said = _hand_over(understood)
        if said is None:
            reply = understood.reply or await self._rules.say_what_works(understood.locale)
            said = ChatMessage(role="assistant", content=reply)
        return {
            "understood": understood.model_dump(mode="json"),
            "said": said.model_dump(mode="json"),
            "by_model": by_model,
        }

    async def _ask(self, state: WorkingState, understood: Understanding) -> ChatMessage | None:
        """What the model says; None where it talks in place of calling the tool, as one does that knows no tools.

        In a conversation about companies it may well talk: thanks name no company, and ask for no expert.
        """
        answer = await self._llm.chat(
            [ChatMessage(**message) for message in state["prompt"]],
            [TOOL],
            temperature=0.0,
            max_tokens=LONGEST_REPLY,
            caller_module="intake",
            caller_agent=AGENT,
        )
        talk = understood.follows and not understood.aspects
        if not answer.tool_calls and (
            answer.finish_reason == "length" or (understood.intent == "equity" and not talk)
        ):
            logger.warning("model answers by itself, the rules decide", finish=answer.finish_reason)
            return None
        return ChatMessage(role="assistant", content=answer.content, tool_calls=answer.tool_calls)

    async def _router(self, state: WorkingState) -> Update:
        said = ChatMessage.model_validate(state["said"])
        ended: Update = {"goto": END, "task_title": None, "reply": None, "error": None, "handed_locale": None}
        try:
            decision = decided_by(said.tool_calls) or Reply(said.content.strip())
            if isinstance(decision, HandOff):
                return ended | self._handed_off(state, decision)
            return ended | self._replied(state, decision)
        except (MalformedArguments, NothingSaid) as e:
            logger.warning("coordinator's answer is of no use", error=str(e), **e.details)
            if e.details.get("tool") in TITLE_OF:
                self._metrics.hand_off_called(followed=False)
            return ended | _failed(state, e)

    def _handed_off(self, state: WorkingState, decision: HandOff) -> Update:
        question, detected = question_of(state), state["detected_locale"]
        locale = locale_of(decision.locale, question, detected)
        title = (decision.title or question)[:LONGEST_TITLE]
        if state["by_model"]:
            self._metrics.hand_off_called(followed=True)
        handed_locale = decision.locale if state["by_model"] else None
        if asked_back := _asked_back(state):
            return asked_back | {"handed_locale": handed_locale}
        handed: Update = {
            "locale": locale,
            "handed_locale": handed_locale,
            "task_title": title,
            "understanding": _of_this_turn(state, locale, title),
        }
        return handed | {"goto": self._next({**state, **handed})}  # type: ignore[typeddict-item]

    def _next(self, state: CoordinatorState) -> str:
        return next(filter(None, (route(state) for route in self._routes)), PLANNER)

    def _replied(self, state: WorkingState, decision: Reply) -> Update:
        if not decision.text:
            raise NothingSaid(SAY("coordinator.nothing_said"))
        locale = locale_of(decision.locale, question_of(state), state["detected_locale"])
        asked_back = not state["by_model"] and Understanding.model_validate(state["understood"]).ambiguous
        remembered = {"understanding": state["understood"]} if asked_back else {}
        return {"locale": locale, "reply": decision.text, **remembered}


def _hand_over(understood: Understanding) -> ChatMessage:
    """As a model would."""
    arguments = {"task_title": understood.title, "locale": understood.locale}
    call = {"id": "rules", "name": HAND_TO_PLANNER.name, "arguments": json.dumps(arguments)}
    return ChatMessage.model_validate({"role": "assistant", "tool_calls": [call]})


def _of_this_turn(state: WorkingState, locale: str, title: str) -> dict[str, Any]:
    """What the rules found, as the model sees it: it may hand over what they would not."""
    understood = Understanding.model_validate(state["understood"])
    intent = understood.intent if understood.intent == "equity" else "research"
    by = "model" if state["by_model"] else "rules"
    change = {"intent": intent, "locale": locale, "title": title, "reply": None, "by": by}
    return understood.model_copy(update=change).model_dump(mode="json")


def _asked_back(state: WorkingState) -> Update | None:
    """Which of several companies is meant nobody but the person can tell, whatever a model makes of the name."""
    understood = Understanding.model_validate(state["understood"])
    if not understood.ambiguous:
        return None
    return {"locale": understood.locale, "reply": understood.reply, "understanding": state["understood"]}


def _failed(state: WorkingState, error: AppError) -> Update:
    locale = state["detected_locale"]
    message = error.in_locale(reading_language(locale))
    return {"locale": locale, "error": {"code": error.code, "message": message}}


def _ending(state: CoordinatorState) -> Ending:
    if state.get("error"):
        return "failed"
    return "replied" if state["goto"] == END else "handed_off"
