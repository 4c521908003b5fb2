"""A ruling in words. They follow its figures, so that they follow also where somebody else changes these."""

from collections.abc import Iterable, Mapping
from typing import Any

from moot.modules.judge.domain.levels import Levels
from moot.modules.judge.domain.ruling import NARROW, Decision, refuse_purchase, tell_opening
from moot.modules.judge.domain.since import (
    MOST_DECISIVE,
    compare,
    find_next_dates,
    quote_claim,
    rank_claims,
    tell_change,
    tell_decisive,
    tell_refutation,
)
from moot.modules.judge.domain.verdict import SAY, Forecast, JudgeInput, Sizing, Verdict, VerdictDTO
from moot.shared.domain.claims import ArgumentGraph, Holder, Side
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.markdown import list_lines
from moot.shared.domain.messages import Locale, Message
from moot.shared.domain.validation import validate

MOST_DIMENSIONS = 2
MOST_CLAIMS = 2
FEWEST_WARNINGS = 2
SIDES: tuple[Side, ...] = ("for", "against")


def join_sentences(sentences: Iterable[Message | None], locale: Locale) -> str:
    return SAY("glue").in_locale(locale).join(said.in_locale(locale) for said in sentences if said)


def word_ruling(ruled: Decision, argument: ArgumentGraph | None = None) -> dict[str, Message]:
    """What to do, over the span that was argued about."""
    action, levels = ruled.action, ruled.levels
    lot = ruled.sizing.lot if ruled.sizing else None
    lots = SAY("lots", lot=lot) if lot and lot > 1 else ""
    at = _word("at", "at", levels.entry)
    return {
        "entry_strategy": SAY(f"entry.{action}", position=ruled.position, lots=lots, at=at),
        "stop_loss": _word("stop", f"stop.{action}", levels.stop),
        "take_profit": _word("target", f"target.{action}", levels.target),
        "time_horizon": SAY(
            f"horizon.{action}", span=SAY(f"span.{argument.horizon if argument else 'argued'}")
        ),
    }


def _word(kind: str, key: str, level: float | None) -> Message:
    return SAY(f"unpriced.{kind}") if level is None else SAY(key, level=level)


def frame(judge_input: JudgeInput, verdict: Verdict, forecast: Forecast | None) -> dict[str, Any]:
    """What code tells beside any ruling, whoever gave it."""
    locale, price = judge_input.locale, judge_input.price
    opening = tell_opening(judge_input, verdict.levels) if verdict.action == "HOLD" else None
    changes = (tell_refutation(verdict.action, verdict.levels), opening, tell_decisive(judge_input))
    return {
        "headline": _headline(judge_input, verdict, forecast).in_locale(locale),
        "forecast": forecast,
        "price": price,
        "would_change": [said.in_locale(locale) for said in changes if said],
        "next_dates": find_next_dates(judge_input),
        "grave": [claim.text(locale) for claim in judge_input.grave],
        "since": compare(judge_input),
        "advice": advise(judge_input.holder, verdict.model_copy(update={"price": price}), locale),
    }


def _headline(judge_input: JudgeInput, verdict: Verdict, forecast: Forecast | None) -> Message:
    grave = [quote_claim(claim, judge_input.locale) for claim in judge_input.grave]
    price, heard = judge_input.price, judge_input.experts_heard
    named = [SAY(f"node.{expert}") for expert in judge_input.argument.heard] if judge_input.argument else []
    who = SAY("headline.who", named=named) if named else ""
    panel = SAY("headline.panel", heard=heard, panel=len(ExpertType), who=who)
    return SAY(
        "headline.line",
        grave=SAY("headline.grave", facts=grave) if grave else "",
        lead=_lead(verdict),
        price=SAY("headline.price", **price.model_dump()) if price else "",
        forecast=SAY("headline.forecast", **forecast.model_dump()) if forecast else "",
        panel=panel if 0 < heard <= NARROW else "",
    )


def _lead(verdict: Verdict) -> Message:
    return SAY("headline.lead", action=SAY(f"action.{verdict.action}"), confidence=verdict.confidence)


def advise(holder: Holder | None, verdict: Verdict, locale: Locale) -> str | None:
    """For who asks: whether to keep, reduce, add or stay away. It never changes what was ruled."""
    if holder is None:
        return None
    gain = None
    if holder.holding and holder.cost and verdict.price:
        price = verdict.price.value
        gain = SAY("advice.gain", price=price, cost=holder.cost, gain=price / holder.cost - 1)
    place = "held" if holder.holding else "free"
    said = (
        gain,
        SAY(f"advice.{place}.{verdict.action}", position=verdict.position_percent),
        SAY(f"advice.horizon.{holder.horizon}"),
        SAY(f"advice.risk.{holder.risk}"),
    )
    return join_sentences(said, locale)


def tell_figures(symbol: str, confidence: float, ruled: Decision, locale: Locale) -> str:
    """How every narrative begins."""
    marks = [SAY(f"mark.{name}", level=level) for name, level in ruled.levels if level is not None]
    said = (
        SAY("narrative.lead", action=SAY(f"action.{ruled.action}"), symbol=symbol, confidence=confidence),
        SAY("narrative.position" if ruled.position else "narrative.no_position", position=ruled.position),
        _factors(ruled.sizing) if ruled.sizing else None,
        SAY("narrative.marks", marks=marks) if marks else None,
    )
    return join_sentences(said, locale)


def _factors(sizing: Sizing) -> Message:
    factors = sizing.model_dump(include={"conviction", "volatility", "liquidity"})
    told = {name: SAY("unknown") if f is None else f"{f:.2f}" for name, f in factors.items()}
    return SAY("narrative.factors", cap=sizing.cap, **told)


def narrate(judge_input: JudgeInput, ruled: Decision) -> str:
    """A whole ruling as one text that repeats none of its fields."""
    locale, today = judge_input.locale, judge_input.today
    dates = [SAY("narrative.next", day=d.day, what=d.what) for d in find_next_dates(judge_input)[:1]]
    return "\n\n".join(
        (
            tell_figures(judge_input.symbol, judge_input.confidence, ruled, locale),
            join_sentences(_tell_argument(judge_input), locale),
            join_sentences((*dates, SAY("narrative.known", day=today) if today else None), locale),
        )
    ).strip()


def _tell_argument(judge_input: JudgeInput) -> list[Message]:
    """The strongest claims of each side, and what those are about that carry the direction."""
    graph = judge_input.argument
    if graph is None:
        told = {"bull": judge_input.bull_thesis, "bear": judge_input.bear_thesis}
        return [SAY("narrative.outside", weighed=judge_input.conflict_resolution, **told)]
    kinds = [relation.kind for relation in graph.relations]
    counts = {"attacks": kinds.count("attack"), "supports": kinds.count("support")}
    said = [SAY("narrative.weighed", claims=len(graph.claims), **counts)]
    for side in SIDES:
        ranked = rank_claims(graph, side)[:MOST_CLAIMS]
        if named := [quote_claim(claim, judge_input.locale) for claim in ranked]:
            said.append(SAY(f"narrative.{side}", claims=named))
    decisive = [claim for claim in graph.claims if claim.id in graph.decisive]
    if decisive:
        about = dict.fromkeys(f"dimension.{claim.expert.prefix}.{claim.dimension}" for claim in decisive)
        key = "decisive" if len(decisive) <= MOST_DECISIVE else "decisive_many"
        said.append(SAY(f"narrative.{key}", n=len(decisive), about=list(map(SAY, about))))
    return said


def reason(judge_input: JudgeInput, ruled: Decision) -> str:
    """Why this action, and what moved it; on a line of its own, what the argument comes to, and what is open."""
    lines, outside = judge_input.key_disagreements, None
    if judge_input.argument is None:
        outside = SAY("disagreements", lines=list_lines(lines)) if lines else SAY("no_disagreements")
    lines_told = ((ruled.why, tell_change(judge_input, ruled.action)), (_balance(judge_input), outside))
    return "\n".join(filter(None, (join_sentences(said, judge_input.locale) for said in lines_told)))


def _balance(judge_input: JudgeInput) -> Message | None:
    pulls = judge_input.argument.dimensions if judge_input.argument else {}
    ranked = sorted(pulls, key=lambda name: (-abs(pulls[name]), name))
    said = {name: SAY("pull", dimension=SAY(f"dimension.{name}"), pull=pulls[name]) for name in ranked}
    pro = [said[name] for name in ranked if round(pulls[name], 2) > 0][:MOST_DIMENSIONS]
    con = [said[name] for name in ranked if round(pulls[name], 2) < 0][:MOST_DIMENSIONS]
    key = "both" if pro and con else "for" if pro else "against"
    return SAY(f"balance.{key}", pro=pro, con=con) if pro or con else None


def warn(judge_input: JudgeInput, ruled: Decision) -> list[str]:
    """The debate's risks, a missing expert and what the market sets, always; then, up to the fewest allowed, what
    limits any verdict.
    """
    risks = (m.in_locale(judge_input.locale) for m in _market_risks(judge_input, ruled))
    said = [*judge_input.risk_factors, *name_gap(judge_input), *risks]
    disagreements = [SAY("disagreement_risk", disagreement=d) for d in judge_input.key_disagreements]
    limits = [*disagreements, SAY("data_limits"), SAY("unnamed_risks")][: max(0, FEWEST_WARNINGS - len(said))]
    return [*said, *(limit.in_locale(judge_input.locale) for limit in limits)]


def name_gap(judge_input: JudgeInput) -> list[str]:
    """A missing expert is a warning whether or not a model thought of it."""
    heard, asked = judge_input.experts_heard, judge_input.experts_asked
    said = SAY("panel_incomplete", heard=heard, asked=asked)
    return [said.in_locale(judge_input.locale)] if heard < asked else []


def _market_risks(judge_input: JudgeInput, ruled: Decision) -> list[Message]:
    """What may keep a purchase from being sold as planned."""
    entry, stop, limit = ruled.levels.entry, ruled.levels.stop, (judge_input.limit_percent or 0) / 100
    far = ruled.sizing and entry and stop and limit and stop < entry * (1 - limit)
    unsold = ruled.sizing and ruled.sizing.days_to_sell is None
    risks = (far and SAY("beyond_limit", limit=limit, stop=stop), unsold and SAY("turnover_unknown"))
    return [risk for risk in risks if risk]


def bound(judge_input: JudgeInput, verdict: VerdictDTO) -> VerdictDTO:
    """No purchase that risks more than it can win, whoever ruled it."""
    refusal = refuse_purchase(verdict.levels, verdict.position_percent) if verdict.action == "BUY" else None
    if refusal is None:
        return verdict
    was, locale = verdict.model_dump(mode="json"), judge_input.locale
    held = restate(was, was | {"action": "HOLD", "departs": None}, locale)
    return VerdictDTO(**held | {"warnings": [*verdict.warnings, refusal.in_locale(locale)]})


FOLLOWING = ("entry_strategy", "stop_loss", "take_profit", "time_horizon")


def restate(
    was: Mapping[str, Any], now: Mapping[str, Any], locale: Locale, holder: Holder | None = None
) -> dict[str, Any]:
    """A verdict in which somebody else changed figures: words and levels follow, but for those changed as well.

    The judge's reasons stay the judge's. Levels that were meant for the other direction are dropped.
    """
    levels = validate(Levels, now["levels"])
    kept = levels if levels.fit(now["action"]) else Levels(entry=levels.entry)
    bought = now["action"] == "BUY"
    figures = {"levels": kept} | ({} if bought else {"position_percent": 0.0, "sizing": None})
    ruled = validate(VerdictDTO, {**now, **figures})
    told, meant = (_words(verdict, locale) for verdict in (validate(VerdictDTO, was), ruled))
    own = {name for name in now if now[name] != was.get(name)}
    lines = [line for line in ruled.would_change if line != told["refuted"]]
    new = {name: meant[name] for name in FOLLOWING if meant[name] != told[name]} | {
        "headline": _follow(ruled.headline, told["headline"], meant["headline"]),
        "narrative_report": _follow(ruled.narrative_report, told["narrative"], meant["narrative"]),
        "would_change": [line for line in (meant["refuted"], *lines) if line],
        "advice": advise(holder, ruled, locale),
    }
    return ruled.model_dump(mode="json") | {name: text for name, text in new.items() if name not in own}


def _words(verdict: VerdictDTO, locale: Locale) -> dict[str, str]:
    """All that follows from figures alone."""
    ruled = Decision(verdict.action, verdict.levels, verdict.position_percent, verdict.sizing)
    said = word_ruling(ruled) | {"headline": _lead(verdict)}
    return {name: text.in_locale(locale) for name, text in said.items()} | {
        "refuted": join_sentences([tell_refutation(verdict.action, verdict.levels)], locale),
        "narrative": tell_figures(verdict.symbol, verdict.confidence, ruled, locale),
    }


def _follow(text: str, told: str, meant: str) -> str:
    """What was told in it by what is meant; a text in other words is not true any more and gives way."""
    return text.replace(told, meant) if told == meant or told in text else meant
