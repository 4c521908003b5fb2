"""The coordinator receives a question: load its prompt, ask the model, follow what it says.

Without a model, rules understand the question and decide; from there on the way is the same.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import structlog
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from moot.modules.intake.application.intake_state import CoordinatorState
from moot.modules.intake.application.language import locale_of
from moot.modules.intake.application.metrics import Ending, IntakeMetrics
from moot.modules.intake.application.understanding import Understander
from moot.modules.intake.domain.question import Understanding
from moot.modules.intake.domain.texts import SAY
from moot.modules.intake.infrastructure.prompt_templates import PromptTemplates, literals, repeats_prompt
from moot.modules.llm_platform.application.answer_schema import strict_schema
from moot.modules.llm_platform.application.llm_service import ChatMessage, LLMService, Tool
from moot.shared.domain.errors import UpstreamFailed
from moot.shared.domain.messages import reading_language

logger = structlog.get_logger(__name__)

AGENT = "coordinator"
BACKGROUND_INVESTIGATOR, PLANNER = "background_investigator", "planner"
LONGEST_TITLE = 200
LONGEST_REPLY = 1000
"""Tokens. Whoever needs more is not greeting anybody."""
TITLE = "What is to be found out, as a short title in the user's language."


class HandOff(BaseModel):
    task_title: str = Field(description=TITLE)
    locale: str = Field(description="The language the user writes in: en-US, zh-CN, ja-JP, ko-KR, …")


HAND_TO_PLANNER = Tool(
    name="hand_to_planner",
    description="Hand a question that can be researched to the planner.",
    parameters=strict_schema(HandOff),
)
REPLY = "direct_response"
"""Some models call a tool to answer: the same as answering."""
TEXT_OF = {
    HAND_TO_PLANNER.name: "task_title",
    "handoff_to_planner": "research_topic",
    "handoff_after_clarification": "research_topic",
    REPLY: "message",
}
"""Names under which models know tools, and the argument that holds the text. Prompts use the first alone."""
ARGUMENTS = TypeAdapter(dict[str, Any])
PARROTED = 20
"""So many characters of the tool's own words in place of a title: a small model has repeated what it was told."""


class WorkingState(CoordinatorState):
    """Passed from node to node and gone at the end. `said` is an assistant's message, whoever speaks it; None: the
    rules hand the question over."""

    prompt: tuple[ChatMessage, ...] = ()
    said: ChatMessage | None = None
    understood: Understanding | None = None
    by_model: bool = False


class Decision(NamedTuple):
    """The question is handed over, or answered by `text`; what is None the model did not say."""

    hands_over: bool
    text: str | None
    locale: str | None = None


Update = dict[str, Any]
Route = Callable[[CoordinatorState], str | None]
"""Where a handed-over question goes next; None leaves it to the next route, and after the last to the planner."""
CoordinatorGraph = CompiledStateGraph[WorkingState, Any, CoordinatorState, CoordinatorState]


def to_background(state: CoordinatorState) -> str | None:
    return BACKGROUND_INVESTIGATOR if state.enable_background_investigation else None


ROUTES: tuple[Route, ...] = (to_background,)


class Coordinator:
    """`default_locale` is for questions whose language nobody can tell. `routes` are tried in their order."""

    def __init__(
        self,
        llm: LLMService,
        prompts: PromptTemplates,
        rules: Understander,
        metrics: IntakeMetrics,
        *,
        default_locale: str = "en-US",
        routes: Sequence[Route] = ROUTES,
    ) -> None:
        self._llm, self._prompts, self._rules, self._metrics = llm, prompts, rules, metrics
        self._default_locale, self._routes = default_locale, routes
        self.graph = self._compile()

    async def run(self, state: Update, workspace: str) -> Update:
        """A node of the main graph, timed. An `AppError` of prompt or model is the caller's to tell."""
        began = time.perf_counter()
        ending: Ending = "failed"
        try:
            ended: Update = await self.graph.ainvoke(cast(Any, state))
            if not ended["error"]:
                ending = "replied" if ended["goto"] == END else "handed_off"
            if handed := ended["handed_locale"]:
                question, detected = CoordinatorState(**ended).question, ended["detected_locale"]
                self._metrics.locale_handed(question, handed, detected, workspace=workspace)
            return ended
        finally:
            self._metrics.count_coordination(ending, time.perf_counter() - began)

    def _compile(self) -> CoordinatorGraph:
        graph = StateGraph(WorkingState, input_schema=CoordinatorState, output_schema=CoordinatorState)
        graph.add_sequence([("load", self._load), ("agent", self._agent), ("router", self._router)])
        graph.add_edge(START, "load")
        graph.add_edge("router", END)
        return graph.compile(name=AGENT)

    async def _load(self, state: WorkingState) -> Update:
        locale = locale_of(state.locale, state.question, self._default_locale)
        variables = {
            "locale": locale,
            "max_step_num": state.limits.max_step_num,
            "max_plan_iterations": state.limits.max_plan_iterations,
            "user_input": [ChatMessage(**turn) for turn in state.messages],
        }
        prompt = self._prompts.messages(AGENT, variables)
        return {
            "prompt": [message.model_dump(mode="json") for message in prompt],
            "detected_locale": locale_of(None, state.question, locale),
        }

    async def _agent(self, state: WorkingState) -> Update:
        """Whoever speaks, the rules look for companies: their directory knows names better than a model.

        In a conversation about companies a model may talk: thanks name no company, and ask for no expert. Where it
        talks in place of calling the tool, as one does that knows no tools, the rules decide.
        """
        model = self._llm.configured
        understood = await self._rules.understand(
            state.question, previous=state.understanding, default_locale=state.detected_locale
        )
        clear = understood.intent == "equity" and not (understood.follows and not understood.aspects)
        said = await self._ask(state, may_talk=not clear) if model else None
        by_model = said is not None
        if said is None and not (model or clear):
            works = self._rules.say_what_works
            reply = understood.reply or await works(understood.locale, state.question)
            said = ChatMessage(role="assistant", content=reply)
        return {
            "understood": understood.model_dump(mode="json"),
            "said": said.model_dump() if said else None,
            "by_model": by_model,
        }

    async def _ask(self, state: WorkingState, *, may_talk: bool) -> ChatMessage | None:
        """None where the model talks and may not, or does not come to an end. Its instructions it may not tell."""
        answer = await self._llm.chat(
            state.prompt,
            [HAND_TO_PLANNER],
            temperature=0.0,
            max_tokens=LONGEST_REPLY,
            caller_module="intake",
            caller_agent=AGENT,
        )
        if not answer.tool_calls and (answer.finish_reason == "length" or not may_talk):
            logger.warning("model answers by itself, the rules decide", finish=answer.finish_reason)
            return None
        arguments = (text for call in answer.tool_calls for text in literals(call.arguments))
        if repeats_prompt([answer.content, *arguments], state.prompt):
            logger.warning("model repeats its instructions")
            said = SAY("coordinator.own_instructions").in_locale(reading_language(state.detected_locale))
            return ChatMessage(role="assistant", content=said) if may_talk else None
        return ChatMessage(role="assistant", content=answer.content, tool_calls=answer.tool_calls)

    async def _router(self, state: WorkingState) -> Update:
        ended: Update = {"goto": END, "task_title": None, "reply": None, "error": None, "handed_locale": None}
        understood = state.understood
        assert understood is not None
        try:
            by_rules = Decision(True, understood.title, understood.locale)
            decision = _decide(state.said) if state.said else by_rules
        except UpstreamFailed as e:
            logger.warning("coordinator's answer is of no use", error=str(e), **e.details)
            if "tool" in e.details and e.details["tool"] != REPLY:
                self._metrics.hand_off_called(followed=False)
            locale = state.detected_locale
            error = {"code": e.code, "message": e.in_locale(reading_language(locale))}
            return ended | {"locale": locale, "error": error}
        locale = locale_of(decision.locale, state.question, state.detected_locale)
        if decision.hands_over:
            return ended | self._hand_off(state, understood, decision, locale)
        asks_back = not state.by_model and understood.ambiguous
        remembered = {"understanding": understood.model_dump(mode="json")} if asks_back else {}
        return ended | {"locale": locale, "reply": decision.text, **remembered}

    def _hand_off(
        self, state: WorkingState, understood: Understanding, decision: Decision, locale: str
    ) -> Update:
        """Which of several companies is meant nobody but the person can tell, whatever a model makes of the name."""
        by_model = state.by_model
        if by_model:
            self._metrics.hand_off_called(followed=True)
        handed: Update = {"handed_locale": decision.locale if by_model else None}
        if understood.ambiguous:
            asked_back = {"locale": understood.locale, "reply": understood.reply}
            return handed | asked_back | {"understanding": understood.model_dump(mode="json")}
        title = (decision.text or state.question)[:LONGEST_TITLE]
        seen = {  # as the model sees it: it may hand over what the rules would not
            "intent": "equity" if understood.intent == "equity" else "research",
            "locale": locale,
            "title": title,
            "reply": None,
            "by": "model" if by_model else "rules",
        }
        told = understood.model_copy(update=seen).model_dump(mode="json")
        handed |= {"locale": locale, "task_title": title, "understanding": told}
        asked = state.model_copy(update=handed)
        return handed | {"goto": next(filter(None, (route(asked) for route in self._routes)), PLANNER)}


def _decide(said: ChatMessage) -> Decision:
    """By the first call that means something here: what other tools somebody calls is ignored."""
    call = next((call for call in said.tool_calls if call.name in TEXT_OF), None)
    decision = Decision(False, said.content.strip())
    if call is not None:
        try:
            given = ARGUMENTS.validate_json(call.arguments)
        except ValidationError:
            told = SAY("coordinator.malformed_arguments", tool=call.name)
            raise UpstreamFailed(told, code="MALFORMED_TOOL_ARGUMENTS", tool=call.name) from None
        text, locale = _text(given.get(TEXT_OF[call.name])), _text(given.get("locale"))
        parrots = text is not None and text[:PARROTED].lower() == TITLE[:PARROTED].lower()
        decision = Decision(call.name != REPLY, None if parrots else text, locale)
    if not decision.hands_over and not decision.text:
        raise UpstreamFailed(SAY("coordinator.nothing_said"), code="NOTHING_SAID")
    return decision


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
