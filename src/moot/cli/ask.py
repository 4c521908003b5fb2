"""`moot ask`: a question in your own words, its plan, its steps as they go, and the answer.

A terminal gets the answer laid out; a pipe gets it as the Markdown it is, to be kept or read by a program.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Annotated, Any, ClassVar, get_args

import typer
from rich.console import Console, ConsoleOptions, JustifyMethod
from rich.markdown import Heading, Markdown, MarkdownElement, Paragraph
from rich.table import Table
from rich.text import Text

from moot.cli.command import command, on_desk
from moot.cli.options import argument, option
from moot.cli.printing import Prose, flow, minute, print_json, tell
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.coordinator.application.report_words import Wording
from moot.modules.intake.application.intake_service import (
    LAST,
    Conversation,
    Feedback,
    IntakeService,
    Question,
    Style,
    Turn,
)
from moot.modules.intake.application.intake_state import Happening, Tell
from moot.modules.intake.application.language import detect
from moot.modules.intake.application.report_text import clip
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.markdown import drop_unseen
from moot.shared.domain.messages import Locale, reading_language
from moot.shared.domain.validation import validate
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.settings import Settings

MARKS = {"started": "…", "completed": "✓", "partial": "~", "failed": "✗", "skipped": "-"}
COLOURS = {"started": "dim", "completed": "green", "partial": "yellow", "failed": "red", "skipped": "dim"}
YES, NO = ("y", "yes", "是", "好"), ("n", "no", "否", "不")
LONGEST_CALL = 100
"""Of an id, or its beginning."""

Begin = Callable[[IntakeService, Tell], Coroutine[Any, Any, Conversation]]


def ask(
    question: Annotated[str | None, argument("ask.question")] = None,
    thread: Annotated[str | None, option("ask.thread", metavar="ID")] = None,
    go_on: Annotated[bool, option("ask.continue", "--continue", "-c")] = False,
    style: Annotated[str, option("ask.style", told={"styles": ", ".join(get_args(Style))})] = "research",
    yes: Annotated[bool, option("ask.yes", "--yes")] = False,
    accept: Annotated[bool, option("ask.accept_plan", "--accept")] = False,
    edit: Annotated[str | None, option("ask.edit_plan", metavar="TEXT")] = None,
    reject: Annotated[bool, option("ask.reject_plan", "--reject")] = False,
    resume: Annotated[bool, option("ask.resume", "--resume")] = False,
    steps: Annotated[int | None, option("ask.steps", min=1, max=10)] = None,
    locale: Annotated[str | None, option("ask.locale")] = None,
    listed: Annotated[bool, option("ask.list", "--list")] = False,
    as_json: Annotated[bool, option("ask.json", "--json")] = False,
) -> None:
    if listed:
        on_desk(lambda desk: desk.intake.service.conversations(DEFAULT_WORKSPACE), show_list, as_json=as_json)
        return
    thread = thread or (LAST if go_on else None)
    answers = {"--accept": accept, "--edit": edit is not None, "--reject": reject, "--resume": resume}
    question = _read_question(question, waits=not any(answers.values()) and thread in (None, LAST))
    wants = [name for name, wanted in ({"QUESTION": question is not None} | answers).items() if wanted]

    async def begin(service: IntakeService, tell: Tell) -> Conversation:
        known = None if thread is None else (await service.find(thread, DEFAULT_WORKSPACE)).id
        if question is not None or known is None:
            how = {"style": style, "auto_accepted_plan": yes, "max_step_num": steps, "locale": locale}
            asked = validate(Question, {"question": question, "thread_id": known, **how})
            return await service.ask(asked, workspace=DEFAULT_WORKSPACE, listener=tell)
        if resume:
            return await service.resume(known, workspace=DEFAULT_WORKSPACE, listener=tell)
        if wants:
            decision = "accepted" if accept else "rejected" if reject else "edit_plan"
            said = validate(Feedback, {"decision": decision, "text": edit or ""})
            return await service.feedback(known, said, workspace=DEFAULT_WORKSPACE, listener=tell)
        return await service.conversation(known, DEFAULT_WORKSPACE)

    spoken = reading_language(locale or detect(question or "") or environment_locale())
    with command(spoken, as_json=as_json) as settings:
        _check(wants, thread, edit)
        screen = Screen(quiet=as_json, locale=spoken, currency=settings.currency)
        here = settings.model_copy(update={"locale": environment_locale()})
        ended = _talk(here, begin, screen, decided=yes or accept)
        if as_json:
            print_json(ended)
        else:
            screen.show(ended)
        if ended.status in ("failed", "nothing_found"):
            raise typer.Exit(1)


def _read_question(question: str | None, *, waits: bool) -> str | None:
    """`-`, or nothing where something is piped in: what is said there."""
    if question == "-" or (question is None and waits and not sys.stdin.isatty()):
        return sys.stdin.read().strip() or (question and "")
    return question


def _check(wants: list[str], thread: str | None, edit: str | None) -> None:
    """What only the command line can get wrong."""
    if len(wants) > 1:
        raise InvalidInput(SAY("ask.one_thing", said=wants))
    if not wants and thread is None:
        raise InvalidInput(SAY("ask.no_question"), field="question")
    if wants and wants != ["QUESTION"] and thread is None:
        raise InvalidInput(SAY("ask.which_thread"), field="thread")
    if edit is not None and not edit.strip():
        raise InvalidInput(SAY("ask.empty_edit"), field="edit")


def _talk(settings: Settings, begin: Begin, screen: "Screen", *, decided: bool) -> Conversation:
    """A person is asked between two runs of the loop: while it runs, Ctrl-C at a prompt is not heard.

    What waits although it was accepted needs somebody else's approval, or was changed by it.
    """
    from moot.desk import Moot

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        desk = runner.run(stack.enter_async_context(Moot(settings)))
        service = desk.intake.service
        try:
            conversation = runner.run(begin(service, screen.tell))
            while not decided and conversation.status == "waiting" and (said := screen.decide(conversation)):
                thread = conversation.id
                answer = service.feedback(thread, said, workspace=DEFAULT_WORKSPACE, listener=screen.tell)
                conversation = runner.run(answer)
                decided = said.decision == "accepted"
            return conversation
        finally:
            runner.run(stack.aclose())


class Screen:
    """In the language of the question once that is known. `quiet`: nobody looks on, and nobody can be asked."""

    def __init__(self, *, quiet: bool, locale: Locale, currency: str) -> None:
        self._console, self._errors, self._quiet = Console(), Console(stderr=True), quiet
        self._locale, self._currency = locale, currency
        self._planned, self._warned = False, set[str]()

    def tell(self, what: Happening, about: dict[str, Any]) -> None:
        if self._quiet:
            return
        match what:
            case "plan":
                self._plan(about["plan"], about["estimate"])
            case "step":
                status, why = about["status"], f": {about['error']}" if about.get("error") else ""
                self._line(f"  {MARKS.get(status, ' ')} ", about["title"] + why, COLOURS.get(status))
            case "tool_call":
                said = json.dumps(about.get("arguments", {}), ensure_ascii=False)
                self._line("      ", clip(f"{about['name']} {said}", LONGEST_CALL), "dim")

    def decide(self, conversation: Conversation) -> Feedback | None:
        """None: nobody is there, or whoever is says nothing; the conversation goes on waiting."""
        if self._quiet or not (self._console.is_terminal and sys.stdin.isatty()):
            return None
        self._show_waiting(conversation.last)
        try:
            answer = typer.prompt(self._say("accept"), default="y").strip()
        except typer.Abort:
            self._console.print()
            return None
        if answer.lower() in (*YES, *NO):
            return Feedback(decision="accepted" if answer.lower() in YES else "rejected")
        return Feedback(decision="edit_plan", text=answer)

    def show(self, conversation: Conversation) -> None:
        turn = conversation.last
        self._speak(turn.locale)
        if turn.status == "waiting":
            self._show_waiting(turn)
        if turn.answer is not None or turn.reply:
            self._prose(turn.answer.markdown if turn.answer else drop_unseen(turn.reply or ""))
        if turn.error:
            self._errors.print(Text(self._say("failed", why=drop_unseen(turn.error)), "red"), soft_wrap=True)
        hint = turn.status if turn.status in ("waiting", "running") else "go_on"
        self._print(self._say(hint, id=conversation.id), style="dim")

    def _show_waiting(self, turn: Turn) -> None:
        """What a person has to know who is to say yes or no."""
        if turn.plan is not None and not self._planned:
            self._plan(turn.plan.model_dump(), turn.estimate.model_dump() if turn.estimate else None)
        for warning in turn.warnings:
            if warning not in self._warned:
                self._line("  ! ", warning, "yellow")
        self._warned.update(turn.warnings)

    def _plan(self, plan: Mapping[str, Any], estimate: Mapping[str, Any] | None) -> None:
        self._planned = True
        self._speak(plan["locale"])
        self._line("", self._say("plan", title=plan["title"]), "bold")
        for number, step in enumerate(plan["steps"], 1):
            self._line(f"{number:>3}. ", f"{step['title']} · {self._who(step)}")
        if estimate is not None:
            self._line("     ", self._cost(estimate), "dim")

    def _cost(self, estimate: Mapping[str, Any]) -> str:
        if not estimate["requests"]:
            return self._say("cost.free")
        took = {"calls": estimate["requests"], "tokens": f"{estimate['tokens']:,}"}
        if estimate["cost"] is None:
            return self._say("cost.unpriced", **took)
        return self._say("cost.about", cost=f"{estimate['cost']:,.2f} {self._currency}", **took)

    def _who(self, step: Mapping[str, Any]) -> str:
        named, name_of = step.get("experts") or (), Wording(self._locale)
        if not named:
            return self._say(f"step.{step['type']}")
        return self._say("experts", names=[name_of(f"node.{name}") for name in named])

    def _speak(self, locale: str) -> None:
        if locale:
            self._locale = reading_language(locale)

    def _say(self, key: str, **values: Any) -> str:
        return SAY(f"ask.{key}", **values).in_locale(self._locale)

    def _prose(self, markdown: str) -> None:
        self._console.print()
        if self._console.is_terminal:
            self._console.print(Laid(markdown, hyperlinks=False))
        else:
            self._print(markdown.rstrip("\n"))
        self._console.print()

    def _line(self, mark: str, text: str, style: str | None = None) -> None:
        """Words of a model or of the web: only what is meant to be seen."""
        words = " ".join(drop_unseen(text).split())
        if not self._console.is_terminal:
            self._print(mark + words)
            return
        row = Table.grid()
        row.add_row(*([Text(mark)] if mark else []), Prose(words))
        self._console.print(row, style=style)

    def _print(self, text: str, style: str | None = None) -> None:
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def show_list(conversations: Sequence[Conversation]) -> None:
    """Two lines each: an id is there to be copied, and whole whatever the width."""
    console = Console()
    for conversation in conversations:
        moment, status = minute(conversation.updated_at), say(f"ask.status.{conversation.status}")
        console.print(Text(f"{conversation.id}  {moment}  {status}"), soft_wrap=True)
        question = Text("  " + " ".join(drop_unseen(conversation.title).split()), "dim")
        if console.is_terminal:
            question.truncate(console.width, overflow="ellipsis")
        console.print(question, soft_wrap=True)
    if not conversations:
        tell("ask.none")


class _Flowing(Paragraph):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        return flow(self.text, options.max_width)


class _OnTheLeft(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class Laid(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "paragraph_open": _Flowing,
        "heading_open": _OnTheLeft,
    }
