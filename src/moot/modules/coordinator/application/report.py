"""A result as a document for people, in the session's language: Markdown, and a web page of its own.

What others wrote, models among them, stands in it as text: no sign of theirs is markup. The page has no script and
loads nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from html import escape as escape_html
from typing import TYPE_CHECKING, Any, NamedTuple

from moot.modules.coordinator.application.results import summarise
from moot.modules.coordinator.domain.dtos.research_dtos import ExpertResultItem, ResearchResult
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.markdown import escape, escape_lines, list_lines
from moot.shared.domain.messages import Locale
from moot.shared.domain.symbol import Symbol

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


class Wording(NamedTuple):
    """The coordinator's words in one language."""

    locale: Locale

    def __call__(self, key: str, /, **values: Any) -> str:
        return SAY(key, **values).in_locale(self.locale)

    def literal(self, value: str) -> str:
        """How a contract's literal reads; what it *is* never changes with the language."""
        return self(f"literal.{value.split(maxsplit=1)[0]}")


def render_report(result: ResearchResult) -> str:
    say = Wording(result.locale)
    sections = [
        [f"# {say('report.title', symbol=result.symbol)}", *(f"> {notice}" for notice in result.notices)],
        [
            say(
                "report.asked",
                as_of=f"{result.as_of:%Y-%m-%d %H:%M} UTC" if result.as_of else "—",
                status=say.literal(result.overall_status),
                verdict_status=say.literal(result.verdict_status),
            )
        ],
        [f"## {say('report.verdict')}", *_verdict(result, say)],
        [f"## {say('report.debate')}", *_debate(result.debate_outcome, say)] if result.debate_outcome else [],
        [f"## {say('report.experts')}", *_experts(result.expert_results.values(), say)],
        _in_full(result, say),
        [f"## {say('report.record')}", *_record(result, say)],
    ]
    return "\n\n".join(block for section in sections for block in section) + "\n"


def tell_ruling(result: ResearchResult, say: Wording, spell: Callable[[str], str] = escape) -> str:
    """The verdict as a sentence, or why there is none; `spell` is how the words of others are written in it."""
    verdict = result.verdict
    if verdict is None:
        status = say.literal(result.verdict_status)
        return say("report.no_verdict", status=status, reason=spell(result.reason or ""))
    return say(
        "report.ruling",
        action=say.literal(verdict["action"]),
        position=verdict["position_percent"],
        confidence=verdict["confidence"],
    )


def _verdict(result: ResearchResult, say: Wording) -> Iterator[str]:
    yield tell_ruling(result, say)
    verdict = result.verdict
    if verdict is None:
        return
    yield escape_lines(verdict["reasoning"])
    parts = ("entry_strategy", "stop_loss", "take_profit", "time_horizon")
    yield list_lines(f"**{say(f'report.{part}')}**: {escape(verdict[part])}" for part in parts)
    yield f"**{say('report.risk_warnings')}**"
    yield list_lines(map(escape, verdict["risk_warnings"]))
    yield from _checks(verdict, say)


def _debate(outcome: dict[str, Any], say: Wording) -> Iterator[str]:
    direction = say.literal(outcome["direction"])
    yield say("report.direction", direction=direction, confidence=outcome["confidence"])
    bull, bear = outcome["bull_case"], outcome["bear_case"]
    yield _table(
        ["", say("report.bull"), say("report.bear")],
        [
            [say("report.thesis"), escape(bull["core_thesis"]), escape(bear["core_thesis"])],
            [say("report.arguments"), *(_lines(case["supporting_arguments"]) for case in (bull, bear))],
            [
                say("report.concedes"),
                _lines(bull["acknowledged_risks"]),
                _lines(bear["acknowledged_strengths"]),
            ],
        ],
    )
    if outcome["key_disagreements"]:
        yield f"**{say('report.disagreements')}**"
        yield list_lines(map(escape, outcome["key_disagreements"]))
    yield f"**{say('report.resolution')}**: {escape(outcome['conflict_resolution'])}"
    yield _table(
        [say(f"report.{column}") for column in ("risk", "probability", "impact", "mitigation")],
        [
            [
                escape(row["risk"]),
                *(say.literal(row[name]) for name in ("probability", "impact")),
                escape(row["mitigation"]),
            ]
            for row in outcome["risk_matrix"]
        ],
    )
    yield from _checks(outcome, say)


def _experts(items: Iterable[ExpertResultItem], say: Wording) -> Iterator[str]:
    for item in items:
        yield f"### {say(f'node.{item.expert_type}')}"
        if item.data is None:
            yield say("report.expert_failed", error=escape(item.error or ""))
            continue
        summary = summarise(item.expert_type, item.data)
        yield f"**{say.literal(summary.signal)}** · {say('report.confidence')} {summary.confidence:.0%}"
        yield escape_lines(item.data.get("narrative_report") or summary.reasoning)
        yield from _checks(item.data, say)


def _checks(data: dict[str, Any], say: Wording) -> Iterator[str]:
    """How far a model's statements stand in its evidence, and what else was noticed. Rules state nothing else."""
    found = data.get("grounding")
    if found is not None:
        held = found["checked"] - len(found["offenders"])
        key = "report.grounding" if found["checked"] else "report.nothing_to_check"
        grounded = say(key, held=held, checked=found["checked"])
        offenders = escape(", ".join(found["offenders"]))
        named = [say("report.offenders", offenders=offenders)] if offenders else []
        yield f"*{' '.join([grounded, *named])}*"
    for warning in data.get("warnings", []):
        yield f"*{escape(warning)}*"


def _in_full(result: ResearchResult, say: Wording) -> list[str]:
    """What debate and judge said in their own words; the experts' words stand in their sections."""
    parts = {"debate": result.debate_outcome, "judge": result.verdict}
    told = {node: part.get("narrative_report") for node, part in parts.items() if part}
    words = [f"### {say(f'node.{node}')}\n\n{escape_lines(text)}" for node, text in told.items() if text]
    return [f"## {say('report.in_full')}", *words] if words else []


def _record(result: ResearchResult, say: Wording) -> Iterator[str]:
    given = [item.data for item in result.expert_results.values() if item.data]
    evidence = [fact for data in given for fact in data.get("evidence", [])]
    if evidence:
        newest = max(str(fact["as_of"])[:10] for fact in evidence)
        sources = sorted({fact["source"] for fact in evidence})
        yield say("report.newest_data", day=newest, sources=escape(", ".join(sources)))
    yield from tell_ages(result, say)
    engines = sorted({say(f"engine.{data['engine']}") for data in given if "engine" in data})
    yield say("report.engine", engines=", ".join(engines), usage=spending(result, say))
    yield (
        say("report.session", session_id=result.session_id) if result.session_id else say("report.not_stored")
    )
    if result.audit_gaps:
        yield say("report.gaps", count=result.audit_gaps)


def tell_ages(result: ResearchResult, say: Wording) -> Iterator[str]:
    """How old each dataset was that the experts used, in a line; none where they used none."""
    if result.as_of is None or not result.data_until:
        return
    today = Symbol.parse(result.symbol).local_date(result.as_of)
    ages = [
        SAY("report.data_age", dataset=SAY(f"dataset.{name}"), day=day, age=max(0, (today - day).days))
        for name, day in result.data_until.items()
    ]
    yield say("report.data_until", ages=ages)


def spending(result: ResearchResult, say: Wording) -> str:
    """What the model calls of the run took."""
    used = result.usage
    if not used.requests:
        return say("usage.none")
    unknown = "uncounted" if used.uncounted else "unpriced"
    cost = say(f"usage.{unknown}") if used.cost is None else f"{used.currency} {used.cost:.4f}"
    return say("usage.some", requests=used.requests, tokens=f"{used.tokens:,}", cost=cost)


def _lines(items: Iterable[str]) -> str:
    return BREAK.join(map(escape, items)) or "—"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)


STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3, h4 { line-height: 1.25; margin: 2rem 0 .5rem; }
blockquote { margin: 1rem 0; padding-left: 1rem; border-left: 3px solid; opacity: .75; }
table { border-collapse: collapse; width: 100%; }
th, td { border: 1px solid; padding: .4rem .6rem; text-align: left; vertical-align: top; }
p, td, th, li { overflow-wrap: anywhere; }
"""
ACTIVE = ["autolink", "image", "link", "reference"]
"""What Markdown can do that a report must not."""
BREAK, PLACE = "<br>", "\ue000"
"""The only tag that a report writes itself, and what keeps its place: nobody else's text can hold either."""


def render_page(result: ResearchResult) -> str:
    title = escape_html(Wording(result.locale)("report.title", symbol=result.symbol))
    return (
        f'<!doctype html>\n<html lang="{result.locale}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{to_html(render_report(result))}</body>\n</html>\n"
    )


def to_html(markdown: str) -> str:
    return str(_markdown().render(markdown.replace(BREAK, PLACE))).replace(PLACE, BREAK)


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415  # takes a while, and only pages need it

    return (
        MarkdownIt("commonmark", {"html": False, "breaks": True, "xhtmlOut": False})
        .enable("table")
        .disable(ACTIVE)
    )
