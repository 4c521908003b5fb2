"""What a verdict stands between: what moved since the last one, what would refute it, and the days to wait for."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from moot.modules.judge.domain.levels import Levels
from moot.modules.judge.domain.verdict import SAY, JudgeInput, Moved, NextDate, Since
from moot.shared.domain.claims import SIGNS, Action, ArgumentGraph, Claim, PastClaim, PastVerdict, Side
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.facts import report_due
from moot.shared.domain.messages import DEFAULT_LOCALE, Locale, Message
from moot.shared.domain.symbol import Market, Symbol

EVENT = ".event."
"""In the ids of claims that rest on what others wrote."""
MOVED_BY = 0.1
MOST_MOVED = 8
MOST_NAMED = 3
MOST_DECISIVE = 5
"""Claims up to which a reader is told what those are about that decide together."""
QUARTER = re.compile(r"\.(\d{4})Q([1-4])$")
DUE = re.compile(r"\w+\.(\w+)(?:\.\w+)*\.due")
"""The id of evidence that is a day to come (`catalyst.unlock.1.due`), and what happens on it."""


def compare(judge_input: JudgeInput) -> Since | None:
    """Against the last verdict on the symbol, by claim; what moved most first."""
    before, now = judge_input.previous, judge_input.argument
    if before is None:
        return None
    movements = _movements(before, now, judge_input.locale) if now else ()
    moved = sorted(filter(_has_moved, movements), key=lambda m: (-abs(_step(m)), m.claim))
    told = before.model_dump(include=set(Since.model_fields))
    return Since(**told, moved=moved[:MOST_MOVED])


def _movements(last: PastVerdict, argument: ArgumentGraph, locale: Locale) -> Iterator[Moved]:
    pulls = {c.id: SIGNS[c.side] * argument.strengths.get(c.id, c.strength) for c in argument.claims}
    standing = {
        c.id: PastClaim(pull=pulls[c.id], says=c.says, kind=c.kind, as_of=c.as_of) for c in argument.claims
    }
    was, now = _recognise(last.claims), _recognise(standing)
    for key in was.keys() | now.keys():
        id_, claim = now.get(key) or was[key]
        before, after = (round(side[key][1].pull, 2) if key in side else None for side in (was, now))
        text = claim.says.get(locale) or next(iter(claim.says.values()))
        yield Moved(claim=id_, says=text, before=before, after=after)


def _recognise(claims: Mapping[str, PastClaim]) -> dict[tuple[str, int], tuple[str, PastClaim]]:
    """By what they are known by in every session and language: their id; of events, which are numbered anew in each
    session, what happened and when it was published. Where several have that in common they are counted.
    """
    found, seen = {}, Counter[str]()
    for id_, claim in claims.items():
        name = f"{claim.kind} {claim.as_of}" if EVENT in id_ else id_
        seen[name] += 1
        found[name, seen[name]] = id_, claim
    return found


def _step(moved: Moved) -> float:
    return (moved.after or 0.0) - (moved.before or 0.0)


def _has_moved(moved: Moved) -> bool:
    before, after = moved.before or 0.0, moved.after or 0.0
    came_or_went = (moved.before is None or moved.after is None) and before != after
    return came_or_went or before * after < 0 or abs(_step(moved)) > MOVED_BY


def tell_change(judge_input: JudgeInput, action: Action) -> Message | None:
    """Which claims moved it, when the action is not what it was."""
    since = compare(judge_input)
    if since is None or since.action == action:
        return None
    way = SIGNS[action] - SIGNS[since.action]
    claims = [_tell(moved) for moved in since.moved if _step(moved) * way > 0][:MOST_NAMED]
    before, now = SAY(f"action.{since.action}"), SAY(f"action.{action}")
    key = "changed.by_claims" if claims else "changed.by_none"
    return SAY(key, day=since.as_of.date(), before=before, now=now, claims=claims)


def _tell(moved: Moved) -> Message:
    how = "came" if moved.before is None else "went" if moved.after is None else "changed"
    return SAY(
        f"moved.{how}", says=quote(moved.says, EVENT in moved.claim), before=moved.before, after=moved.after
    )


def quote(text: str, reported: bool = False) -> Message:
    """What a claim says as part of a sentence; whether only others say so is said."""
    words = text.rstrip(".。 ").replace("“", "‘").replace("”", "’")
    return SAY("quoted_reported" if reported else "quoted", text=words)


def quote_claim(claim: Claim, locale: Locale) -> Message:
    return quote(claim.text(locale), claim.reported)


def tell_refutation(action: Action, levels: Levels) -> Message | None:
    """The level that refutes a verdict, its stop; one that waits has nothing to refute."""
    known = levels.stop is not None and action != "HOLD"
    return SAY(f"refuted.{action}", level=levels.stop) if known else None


def tell_decisive(judge_input: JudgeInput) -> Message | None:
    """What the claims are about without which the direction would be another, where they are few."""
    if judge_input.argument is None:
        return None
    claims = {claim.id: claim for claim in judge_input.argument.claims}
    found = [claims[id_] for id_ in judge_input.argument.decisive if id_ in claims]
    about = dict.fromkeys(f"dimension.{claim.expert.prefix}.{claim.dimension}" for claim in found)
    key = "decisive.one" if len(found) == 1 else "decisive.several"
    return SAY(key, n=len(found), about=list(map(SAY, about))) if 0 < len(found) <= MOST_DECISIVE else None


def find_next_dates(judge_input: JudgeInput) -> list[NextDate]:
    """The next of each kind that was cited, and by when the next report is due, unless its own day was cited."""
    today = judge_input.today
    if today is None:
        return []
    days = dict(sorted(_cited_days(judge_input.evidence, today), reverse=True))
    dates = [(day, SAY(f"due.{what}")) for what, day in days.items()]
    if "report" not in days:
        dates += _deadlines(judge_input, today)
    told = [NextDate(day=day, what=what.in_locale(judge_input.locale)) for day, what in dates]
    return sorted(told, key=lambda at: at.day)


def _cited_days(evidence: Sequence[Evidence], today: date) -> Iterator[tuple[str, date]]:
    for item in evidence:
        what, day = DUE.fullmatch(item.id), _read_day(item.value)
        if what and f"due.{what[1]}" in SAY.texts(DEFAULT_LOCALE) and day and day > today:
            yield what[1], day


def _read_day(value: float | str) -> date | None:
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        return None


def _deadlines(judge_input: JudgeInput, today: date) -> Iterator[tuple[date, Message]]:
    """Where the law has a day for it."""
    if Symbol.parse(judge_input.symbol).market is Market.US:
        return
    newest = max(_quarters(judge_input.evidence), default=None)
    for year, quarter in ((today.year + n // 4, n % 4 + 1) for n in range(-4, 8)):
        day = report_due(date(year, 3 * quarter, 1))
        if day > today and (newest is None or (year, quarter) > newest):
            yield day, SAY(f"report.{quarter}", year=year)
            return


def _quarters(evidence: Sequence[Evidence]) -> list[tuple[int, int]]:
    found = (QUARTER.search(item.id) for item in evidence)
    return [(int(match[1]), int(match[2])) for match in found if match]


def rank_claims(graph: ArgumentGraph, side: Side) -> list[Claim]:
    """Of one side, the strongest after all that was said against them first."""
    standing = [claim for claim in graph.claims if claim.side == side and graph.strengths.get(claim.id)]
    return sorted(standing, key=lambda claim: (-graph.strengths[claim.id], claim.id))
