"""`moot escalations`: a person looks at what waits, and answers."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from moot.cli.command import command, on_desk
from moot.cli.decide import json_values
from moot.cli.options import AsJson, argument, group, option, read_file, user_name
from moot.cli.printing import list_facts, minute, tell
from moot.cli.texts import SAY, say
from moot.modules.governance.application.escalations import (
    Escalation,
    EscalationPage,
    Wanted,
)
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.ids import find_id
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

if TYPE_CHECKING:
    from moot.desk import Moot

INDENTED = (0, 0, 0, 2)
LONGEST = 160

Id = Annotated[str, argument("escalations.help.id", metavar="ID")]
Reason = Annotated[str, option("escalations.help.reason")]
By = Annotated[str | None, option("escalations.help.by")]

escalations = group("help.escalations")


@escalations.command("list", help=say("escalations.help.list"))
def list_waiting(
    page: Annotated[int, option("escalations.help.page", min=1)] = 1,
    decided: Annotated[bool, option("escalations.help.decided", "--decided")] = False,
    every: Annotated[bool, option("escalations.help.all", "--all")] = False,
    as_json: AsJson = False,
) -> None:
    wanted: Wanted = "all" if every else "decided" if decided else "pending"
    on_desk(
        lambda desk: desk.governance.escalations.list_waiting(DEFAULT_WORKSPACE, wanted, page=page),
        lambda found: _show_page(found, wanted),
        as_json=as_json,
    )


@escalations.command("show", help=say("escalations.help.show"))
def show(escalation_id: Id, as_json: AsJson = False) -> None:
    async def work(desk: "Moot") -> Escalation:
        return await desk.governance.escalations.get(await _find(desk, escalation_id), DEFAULT_WORKSPACE)

    on_desk(work, _show_one, as_json=as_json)


@escalations.command("approve", help=say("escalations.help.approve"))
def approve(escalation_id: Id, reason: Reason, by: By = None) -> None:
    _settle("approve", escalation_id, by, reason=reason)


@escalations.command("reject", help=say("escalations.help.reject"))
def reject(escalation_id: Id, reason: Reason, by: By = None) -> None:
    _settle("reject", escalation_id, by, reason=reason)


@escalations.command("edit", help=say("escalations.help.edit"))
def edit(
    escalation_id: Id,
    payload: Annotated[Path, option("escalations.help.payload", metavar="FILE.json")],
    reason: Reason,
    by: By = None,
) -> None:
    with command():
        wanted = _payload(payload)
    _settle("edit", escalation_id, by, reason=reason, payload=wanted)


def _settle(answer: str, escalation_id: str, by: str | None, **given: Any) -> None:
    """Nobody named: whoever is at the keyboard answers."""

    async def work(desk: "Moot") -> Escalation:
        settle: Callable[..., Awaitable[Escalation]] = getattr(desk.governance.escalations, answer)
        known = await _find(desk, escalation_id)
        return await settle(known, DEFAULT_WORKSPACE, by=user_name() if by is None else by, **given)

    on_desk(work, lambda settled: _tell(settled, given.get("payload")))


def _tell(settled: Escalation, payload: dict[str, Any] | None) -> None:
    key = "edited" if payload is not None else settled.status
    tell(f"escalations.{key}", by=settled.decided_by, id=settled.id)
    if corrected := _describe_differences(settled.approved_payload, payload):
        tell("escalations.corrected", changes=corrected.replace("\n", ", "))
    if settled.session_id is not None:
        tell("escalations.session_goes_on", session_id=settled.session_id)
    elif settled.status == "approved":
        tell("escalations.used_once")


async def _find(desk: "Moot", text: str) -> UUID:
    async def among(first: UUID, last: UUID) -> list[UUID]:
        waiting = await desk.governance.escalations.list_waiting(DEFAULT_WORKSPACE, page_size=200)
        return [item.id for item in reversed(waiting.items) if first <= item.id <= last]

    return await find_id("escalation_id", text, among)


def _payload(file: Path) -> dict[str, Any]:
    name = f"--payload: {file}"
    found = [value for _, value in json_values(read_file(file, name), name)]
    if len(found) != 1 or not isinstance(found[0], dict):
        raise InvalidInput(SAY("escalations.payload_not_an_object", path=file))
    return found[0]


def _show_page(page: EscalationPage, wanted: Wanted) -> None:
    if not page.total:
        tell("escalations.none" if wanted == "pending" else "escalations.none_listed")
        return
    console = Console()
    for item in page.items:
        console.print(Text(str(item.id), "bold"))
        times = {"at": minute(item.requested_at), "until": minute(item.expires_at)}
        asked = say("escalations.asked", type=item.decision_type, requester=item.requester, **times)
        console.print(Padding(Text("\n".join([asked, *item.why, *_answer(item)])), INDENTED))
    pages = -(-page.total // page.page_size)
    tell(f"escalations.page_{wanted}", page=page.page, pages=pages, total=page.total)
    if wanted == "pending":
        tell("escalations.how")


def _answer(item: Escalation) -> list[str]:
    state = say(f"escalations.state.{item.status}")
    if item.decided_at is None:
        return [] if item.status == "pending" else [state]
    about = {"by": item.decided_by, "at": minute(item.decided_at), "reason": item.reason}
    return [say("escalations.answered", state=state, **about)]


def _show_one(escalation: Escalation) -> None:
    e, console = escalation, Console()
    told = {
        "state": say(f"escalations.state.{e.status}"),
        "decision": e.decision_type,
        "requester": e.requester,
        "requested": f"{minute(e.requested_at)} UTC",
        "expires": f"{minute(e.expires_at)} UTC",
        "session": str(e.session_id or ""),
        "why": "\n".join(e.why),
        "payload": _describe(e.payload),
        "decided": f"{e.decided_by} · {minute(e.decided_at)} UTC" if e.decided_at else "",
        "reason": e.reason or "",
        "approved": _describe_differences(e.approved_payload, e.payload),
    }
    console.print(Text(str(e.id), "bold"))
    console.print(list_facts({say(f"escalations.field.{name}"): value for name, value in told.items()}))
    if "…" in told["payload"]:
        tell("escalations.cut", id=e.id)


def _describe_differences(payload: dict[str, Any] | None, other: dict[str, Any] | None) -> str:
    """What of a payload is not as in another; empty when there are not two."""
    if payload is None or other is None:
        return ""
    gone = dict.fromkeys(other.keys() - payload.keys())
    return _describe({name: value for name, value in (payload | gone).items() if value != other.get(name)})


def _describe(payload: dict[str, Any]) -> str:
    """A line for each field, long texts cut: JSON has all of it."""
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in payload.items()]
    return "\n".join(line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in lines)
