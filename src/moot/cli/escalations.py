"""`moot escalations`: a person looks at what waits, and answers."""

import json
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from moot.cli.on_desk import at_desk
from moot.cli.outcome import command
from moot.cli.rules import somebody
from moot.cli.texts import SAY, say
from moot.desk import Moot
from moot.modules.governance.application.escalations import Escalation, EscalationPage, EscalationService
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.validation import refused
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

INDENTED = (0, 0, 0, 2)
LONGEST = 160


class Answer(NamedTuple):
    """What was typed; nobody named: whoever is at the keyboard."""

    escalation_id: str
    reason: str
    by: str | None

    @property
    def id(self) -> UUID:
        return _id(self.escalation_id)

    @property
    def who(self) -> str:
        return somebody() if self.by is None else self.by


def list_waiting(page: int, *, as_json: bool) -> None:
    async def work(desk: Moot) -> EscalationPage:
        return await _service(desk).waiting(DEFAULT_WORKSPACE, page=page)

    with command(as_json=as_json) as settings:
        found = at_desk(settings, work)
        if as_json:
            _print_json(found)
        else:
            _show_page(found)


def show(escalation_id: str, *, as_json: bool) -> None:
    async def work(desk: Moot) -> Escalation:
        return await _service(desk).get(_id(escalation_id), DEFAULT_WORKSPACE)

    with command(as_json=as_json) as settings:
        found = at_desk(settings, work)
        if as_json:
            _print_json(found)
        else:
            _show_one(found)


def approve(answer: Answer) -> None:
    _settle(lambda queue: queue.approve(answer.id, DEFAULT_WORKSPACE, by=answer.who, reason=answer.reason))


def reject(answer: Answer) -> None:
    _settle(lambda queue: queue.reject(answer.id, DEFAULT_WORKSPACE, by=answer.who, reason=answer.reason))


def edit(answer: Answer, file: Path) -> None:
    with command():
        payload = _payload(file)
    given = {"by": answer.who, "reason": answer.reason}
    _settle(lambda queue: queue.edit(answer.id, DEFAULT_WORKSPACE, payload=payload, **given), payload)


def _settle(
    settle: Callable[[EscalationService], Awaitable[Escalation]], payload: dict[str, Any] | None = None
) -> None:
    """`payload` is what a person wants instead."""
    with command() as settings:
        settled = at_desk(settings, lambda desk: settle(_service(desk)))
        key = "edited" if payload is not None else settled.status
        typer.echo(say(f"escalations.{key}", by=settled.decided_by, id=settled.id))
        if corrected := _differing(settled.approved_payload, payload):
            typer.echo(say("escalations.corrected", changes=corrected.replace("\n", ", ")))
        if settled.session_id is not None:
            typer.echo(say("escalations.session_goes_on", session_id=settled.session_id))
        elif settled.status == "approved":
            typer.echo(say("escalations.used_once"))


def _service(desk: Moot) -> EscalationService:
    if desk.governance.escalations is None:
        raise Unavailable(SAY("escalations.not_stored"), code="PERSISTENCE_OFF")
    return desk.governance.escalations


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise refused("uuid_parsing", "escalation_id", text) from None


def _payload(file: Path) -> dict[str, Any]:
    try:
        payload = json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as e:
        place = {"path": file, "line": e.lineno, "column": e.colno}
        raise InvalidInput(SAY("escalations.payload_not_json", **place, why=e.msg)) from None
    except (OSError, UnicodeDecodeError) as e:
        reason = getattr(e, "strerror", None) or SAY("rules.not_text")
        raise InvalidInput(SAY("escalations.payload_not_read", path=file, reason=reason)) from None
    if not isinstance(payload, dict):
        raise InvalidInput(SAY("escalations.payload_not_an_object", path=file))
    return payload


def _show_page(page: EscalationPage) -> None:
    if not page.total:
        typer.echo(say("escalations.none"))
        return
    console = Console()
    for item in page.items:
        console.print(Text(str(item.id), "bold"))
        times = {"at": _minute(item.requested_at), "until": _minute(item.expires_at)}
        asked = say("escalations.asked", type=item.decision_type, requester=item.requester, **times)
        console.print(Padding(Text("\n".join([asked, *item.why])), INDENTED))
    pages = -(-page.total // page.page_size)
    typer.echo(say("escalations.page", page=page.page, pages=pages, total=page.total))
    typer.echo(say("escalations.how"))


def _show_one(escalation: Escalation) -> None:
    e, console = escalation, Console()
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    told = {
        "state": say(f"escalations.state.{e.status}"),
        "decision": e.decision_type,
        "requester": e.requester,
        "requested": f"{_minute(e.requested_at)} UTC",
        "expires": f"{_minute(e.expires_at)} UTC",
        "session": str(e.session_id or ""),
        "why": "\n".join(e.why),
        "payload": _told(e.payload),
        "decided": f"{e.decided_by} · {_minute(e.decided_at)} UTC" if e.decided_at else "",
        "reason": e.reason or "",
        "approved": _differing(e.approved_payload, e.payload),
    }
    console.print(Text(str(e.id), "bold"))
    for name, value in told.items():
        if value:
            facts.add_row(say(f"escalations.field.{name}"), Text(value))
    console.print(facts)
    if "…" in told["payload"]:
        typer.echo(say("escalations.cut", id=e.id))


def _differing(payload: dict[str, Any] | None, other: dict[str, Any] | None) -> str:
    """What of a payload is not as in another; empty when there are not two."""
    if payload is None or other is None:
        return ""
    gone = dict.fromkeys(other.keys() - payload.keys())
    return _told({name: value for name, value in (payload | gone).items() if value != other.get(name)})


def _told(payload: dict[str, Any]) -> str:
    """A line for each field, long texts cut: JSON has all of it."""
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in payload.items()]
    return "\n".join(line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in lines)


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def _print_json(body: BaseModel) -> None:
    """Exactly what the REST API gives."""
    sys.stdout.write(body.model_dump_json(indent=2) + "\n")
