"""`moot ask`: a question in your own words, its plan, its steps as they go, and the answer."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Any, NamedTuple
from uuid import UUID

import typer

from moot.cli.answer_view import Screen, show_list
from moot.cli.on_desk import at_desk
from moot.cli.outcome import command
from moot.cli.texts import SAY, environment_locale
from moot.desk import Moot
from moot.modules.intake.application.errand import Tell
from moot.modules.intake.application.intake_service import Conversation, Feedback, IntakeService, Question
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.validation import checked
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE
from moot.shared.infrastructure.settings import Settings


class Asked(NamedTuple):
    """What was typed. `accept`, `edit` and `reject` answer the plan a conversation waits with."""

    question: str | None
    thread: str | None = None
    style: str = "research"
    yes: bool = False
    accept: bool = False
    edit: str | None = None
    reject: bool = False
    resume: bool = False
    steps: int | None = None
    locale: str | None = None

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


def run_ask(asked: Asked, *, as_json: bool) -> None:
    with command(asked.locale, as_json=as_json) as settings:
        _check(asked)
        screen = Screen(quiet=as_json)
        ended = _talk(settings, asked, screen)
        if as_json:
            _print_json(ended.model_dump(mode="json"))
        else:
            screen.show(ended)
        if ended.status == "failed":
            raise typer.Exit(1)


def list_conversations(*, as_json: bool) -> None:
    async def newest(desk: Moot) -> list[Conversation]:
        return await desk.intake.service.conversations(DEFAULT_WORKSPACE)

    with command(as_json=as_json) as settings:
        found = at_desk(settings, newest)
        if as_json:
            _print_json([conversation.model_dump(mode="json") for conversation in found])
        else:
            show_list(found, environment_locale())


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
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        desk = runner.run(stack.enter_async_context(Moot(settings)))
        service = desk.intake.service
        try:
            conversation = runner.run(_said(service, asked, screen.tell))
            while _asks(asked, conversation) and (said := screen.decide(conversation)):
                conversation = runner.run(_answered(service, conversation.id, said, screen.tell))
                asked = asked._replace(accept=said.decision == "accepted")
            return conversation
        finally:
            runner.run(stack.aclose())


def _asks(asked: Asked, conversation: Conversation) -> bool:
    """What waits although it was accepted needs somebody else's approval, or was changed by it."""
    return conversation.status == "waiting" and not (asked.yes or asked.accept)


async def _said(service: IntakeService, asked: Asked, tell: Tell) -> Conversation:
    thread = _id(asked.thread)
    if asked.question is not None or thread is None:
        question = checked(Question, _body(asked, thread))
        return await service.ask(question, workspace=DEFAULT_WORKSPACE, listener=tell)
    if asked.resume:
        return await service.resume(thread, workspace=DEFAULT_WORKSPACE, listener=tell)
    if asked.accept:
        return await _answered(service, thread, Feedback(decision="accepted"), tell)
    if asked.reject:
        return await _answered(service, thread, Feedback(decision="rejected"), tell)
    if asked.edit is not None:
        said = checked(Feedback, {"decision": "edit_plan", "text": asked.edit})
        return await _answered(service, thread, said, tell)
    return await service.conversation(thread, DEFAULT_WORKSPACE)


async def _answered(service: IntakeService, thread: UUID, said: Feedback, tell: Tell) -> Conversation:
    return await service.feedback(thread, said, workspace=DEFAULT_WORKSPACE, listener=tell)


def _body(asked: Asked, thread: UUID | None) -> dict[str, Any]:
    return {
        "question": asked.question,
        "thread_id": thread,
        "style": asked.style,
        "auto_accepted_plan": asked.yes,
        "max_step_num": asked.steps,
        "locale": asked.locale,
    }


def _id(text: str | None) -> UUID | None:
    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise InvalidInput(SAY("ask.thread_malformed", got=text), field="thread") from None


def _print_json(body: Any) -> None:
    sys.stdout.write(json.dumps(body, ensure_ascii=False, indent=2) + "\n")
