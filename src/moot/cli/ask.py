"""`moot ask`: a question in your own words, its plan, its steps as they go, and the answer."""

import asyncio
from contextlib import AsyncExitStack
from typing import Annotated, NamedTuple, get_args
from uuid import UUID

import typer

from moot.cli.answer_view import Screen, show_list
from moot.cli.options import argument, option
from moot.cli.outcome import at_desk, command
from moot.cli.printing import print_json
from moot.cli.texts import SAY, say
from moot.modules.intake.application.intake_service import (
    Conversation,
    Feedback,
    IntakeService,
    Question,
    Style,
)
from moot.modules.intake.application.ports import Tell
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.validation import checked
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.settings import Settings

ask = typer.Typer(add_completion=False)


class Asked(NamedTuple):
    """What was typed. `accept`, `edit` and `reject` answer the plan a conversation waits with."""

    question: str | None
    thread: str | None
    style: str
    yes: bool
    accept: bool
    edit: str | None
    reject: bool
    resume: bool
    steps: int | None
    locale: str | None

    @property
    def wants(self) -> list[str]:
        """What is to be done, by what it was said with."""
        said = {
            "QUESTION": self.question is not None,
            "--accept": self.accept,
            "--edit": self.edit is not None,
            "--reject": self.reject,
            "--resume": self.resume,
        }
        return [name for name, given in said.items() if given]


@ask.command(help=say("help.ask"))
def run_ask(
    question: Annotated[str | None, argument("ask.question")] = None,
    thread: Annotated[str | None, option("ask.thread", metavar="ID")] = None,
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
        _list_conversations(as_json=as_json)
        return
    asked = Asked(question, thread, style, yes, accept, edit, reject, resume, steps, locale)
    with command(locale, as_json=as_json) as settings:
        _check(asked)
        screen = Screen(quiet=as_json)
        ended = _talk(settings, asked, screen)
        if as_json:
            print_json(ended)
        else:
            screen.show(ended)
        if ended.status == "failed":
            raise typer.Exit(1)


def _list_conversations(*, as_json: bool) -> None:
    with command(as_json=as_json) as settings:
        found = at_desk(settings, lambda desk: desk.intake.service.conversations(DEFAULT_WORKSPACE))
        if as_json:
            print_json([conversation.model_dump(mode="json") for conversation in found])
        else:
            show_list(found)


def _check(asked: Asked) -> None:
    """What only the command line can get wrong."""
    if len(asked.wants) > 1:
        raise InvalidInput(SAY("ask.one_thing", said=asked.wants))
    if not asked.wants and asked.thread is None:
        raise InvalidInput(SAY("ask.no_question"), field="question")
    if asked.wants and asked.wants != ["QUESTION"] and asked.thread is None:
        raise InvalidInput(SAY("ask.which_thread"), field="thread")
    if asked.edit is not None and not asked.edit.strip():
        raise InvalidInput(SAY("ask.empty_edit"), field="edit")


def _talk(settings: Settings, asked: Asked, screen: Screen) -> Conversation:
    """A person is asked between two runs of the loop: while it runs, Ctrl-C at a prompt is not heard."""
    from moot.desk import Moot

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        desk = runner.run(stack.enter_async_context(Moot(settings)))
        service = desk.intake.service
        try:
            conversation = runner.run(_begin(service, asked, screen.tell))
            while _is_to_answer(asked, conversation) and (said := screen.decide(conversation)):
                conversation = runner.run(_answer(service, conversation.id, said, screen.tell))
                asked = asked._replace(accept=said.decision == "accepted")
            return conversation
        finally:
            runner.run(stack.aclose())


def _is_to_answer(asked: Asked, conversation: Conversation) -> bool:
    """What waits although it was accepted needs somebody else's approval, or was changed by it."""
    return conversation.status == "waiting" and not (asked.yes or asked.accept)


async def _begin(service: IntakeService, asked: Asked, tell: Tell) -> Conversation:
    thread = _id(asked.thread)
    if asked.question is not None or thread is None:
        typed = {
            "question": asked.question,
            "thread_id": thread,
            "style": asked.style,
            "auto_accepted_plan": asked.yes,
            "max_step_num": asked.steps,
            "locale": asked.locale,
        }
        question = checked(Question, typed)
        return await service.ask(question, workspace=DEFAULT_WORKSPACE, listener=tell)
    if asked.resume:
        return await service.resume(thread, workspace=DEFAULT_WORKSPACE, listener=tell)
    if asked.accept or asked.reject or asked.edit is not None:
        decision = "accepted" if asked.accept else "rejected" if asked.reject else "edit_plan"
        said = checked(Feedback, {"decision": decision, "text": asked.edit or ""})
        return await _answer(service, thread, said, tell)
    return await service.conversation(thread, DEFAULT_WORKSPACE)


async def _answer(service: IntakeService, thread: UUID, said: Feedback, tell: Tell) -> Conversation:
    return await service.feedback(thread, said, workspace=DEFAULT_WORKSPACE, listener=tell)


def _id(text: str | None) -> UUID | None:
    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise InvalidInput(SAY("ask.thread_malformed", got=text), field="thread") from None
