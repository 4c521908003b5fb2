"""`moot contest`: strike a claim, weigh it otherwise or answer it, and see what the verdict would be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.text import Text
from typer import Context

from moot.cli.command import on_desk
from moot.cli.options import AsJson, option
from moot.cli.printing import Field, Prose, field, line_field, list_facts, print_table
from moot.cli.sessions import SessionId, find_session
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.coordinator.application.contest import NothingToContest
from moot.modules.coordinator.application.report_words import Wording
from moot.shared.domain.claims import ArgumentGraph
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.validation import number_or_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from moot.desk import Moot
    from moot.modules.coordinator.application.contest import ContestResult, Standing

    Found = ContestResult | ArgumentGraph
    """What the moves come to; without any, the argument as it stands."""

Names = list[str] | None
KINDS = {"against": "attack", "in_favour": "support"}


def contest(
    ctx: Context,
    session_id: SessionId,
    strike: Annotated[Names, option("contest.help.strike", metavar="CLAIM")] = None,
    strength: Annotated[Names, option("contest.help.strength", metavar="CLAIM=0.2")] = None,
    add: Annotated[Names, option("contest.help.add", metavar="TEXT")] = None,
    against: Annotated[Names, option("contest.help.against", metavar="CLAIM[=0.5]")] = None,
    in_favour: Annotated[Names, option("contest.help.for", "--for", metavar="CLAIM[=0.5]")] = None,
    as_json: AsJson = False,
) -> None:
    """The desk, not the command line, decides whether there are such claims."""

    async def work(desk: Moot) -> Found:
        moves: list[dict[str, Any]] = [{"move": "strike", "claim": claim} for claim in strike or ()]
        moves += [{"move": "strength", **_weigh(text)} for text in strength or ()]
        moves += _answers(ctx.meta["typed"], add or [], against=against or [], in_favour=in_favour or [])
        known = await find_session(desk, session_id)
        return await desk.contest(known, moves) if moves else await _argument(desk, known)

    on_desk(work, _show, as_json=as_json)


def _weigh(text: str) -> dict[str, Any]:
    """`CLAIM=0.2`; what is no number is left to whoever refuses it."""
    claim, equals, strength = text.partition("=")
    return {"claim": claim} | ({"strength": number_or_text(strength)} if equals else {})


def _answers(typed: Sequence[str], says: Sequence[str], **claims: Sequence[str]) -> list[dict[str, Any]]:
    """The first text answers the first claim, and so on; `typed` tells how the two kinds were mixed."""
    named = {name: iter(given) for name, given in claims.items()}
    targets = [{"kind": KINDS[name], **_weigh(next(named[name]))} for name in typed if name in named]
    if len(says) != len(targets):
        raise InvalidInput(SAY("contest.unpaired", texts=len(says), claims=len(targets)))
    return [{"move": "add", "says": text, **target} for text, target in zip(says, targets, strict=True)]


async def _argument(desk: Moot, session_id: UUID) -> ArgumentGraph:
    debate = (await desk.result(session_id)).debate_outcome
    if not debate or not debate.get("argument"):
        raise NothingToContest(session_id)
    return ArgumentGraph.model_validate(debate["argument"])


def _show(found: Found) -> None:
    if isinstance(found, ArgumentGraph):
        _show_claims(found)
    else:
        _show_contest(found)


def _show_claims(argument: ArgumentGraph) -> None:
    """The strongest first."""
    locale, strengths = environment_locale(), argument.strengths
    print_table(
        sorted(argument.claims, key=lambda claim: -strengths[claim.id]),
        line_field("contest.claim", lambda claim: claim.id),
        line_field("contest.side", lambda claim: say(f"contest.side_{claim.side}")),
        line_field("contest.strength", lambda claim: _number(strengths[claim.id]), justify="right"),
        field("contest.says", lambda claim: Prose(claim.text(locale))),
    )


def _show_contest(found: ContestResult) -> None:
    console, wording, before, after = Console(), Wording(environment_locale()), found.before, found.after
    console.print(Text(say("contest.title", symbol=found.symbol), "bold"))
    told = {
        "verdict": f"{_rule(before, wording)} → {_rule(after, wording)}",
        "motion": f"{before.motion:.3f} → {after.motion:.3f} ({after.motion - before.motion:+.3f})",
    }
    console.print(list_facts({say(f"contest.{name}"): text for name, text in told.items()}))
    console.print()
    print_table(found.dimensions, *_shift_fields("contest.dimension"), none="contest.no_dimension")
    console.print()
    print_table(found.claims, *_shift_fields("contest.claim"), none="contest.no_claim")
    console.print()
    if found.reason:
        console.print(Prose(found.reason))
    console.print(Prose(say("contest.session", session_id=after.session_id, parent=before.session_id)))
    for notice in found.notices:
        console.print(Text(notice, style="dim"))


def _rule(standing: Standing, wording: Wording) -> str:
    if standing.action is None:
        return wording.literal(standing.verdict_status or "failed")
    told = {"action": wording.literal(standing.action), "weight": f"{standing.confidence:.2f}"}
    return say("contest.ruled", **told)


def _shift_fields(name: str) -> list[Field]:
    return [
        line_field(name, lambda shift: shift.id),
        line_field("contest.before", lambda shift: _number(shift.before), justify="right"),
        line_field("contest.after", lambda shift: _number(shift.after), justify="right"),
        field("contest.says", lambda shift: Prose(shift.says)),
    ]


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.3f}"
