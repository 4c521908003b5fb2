"""The first page of a report: what, how sure, at which price; why, what decides it and what would change it."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from moot.modules.coordinator.application.report_case import MOST_DECISIVE, MOST_MOVED, Case, Data
from moot.modules.coordinator.application.report_page import BREAK, Pen
from moot.modules.coordinator.application.report_words import Told, Wording
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult
from moot.shared.domain.claims import Claim
from moot.shared.domain.markdown import escape
from moot.shared.domain.symbol import Symbol

LEVELS = ("entry_strategy", "stop_loss", "take_profit", "time_horizon")
DRAWN = {"stop": "stop_loss", "target": "take_profit"}
UNSAFE = re.compile(r"[^\w.:-]")


def name_company(case: Case, say: Wording, spell: Callable[[str], str] = escape) -> str:
    """By its name, where an expert was told it."""
    symbol = case.result.symbol
    return say("report.company", name=spell(case.name), symbol=symbol) if case.name else symbol


def name_claim(id_: str) -> str:
    """As code, and with no sign that could end it."""
    return f"`{UNSAFE.sub('', id_)}`"


def number(name: str, lines: Sequence[str], point: str) -> Iterator[tuple[str, str]]:
    """Each line of a part with its mark: reasons are counted, as others refer to them."""
    return ((f"{n}." if name == "why" else point, line) for n, line in enumerate(lines, 1))


def tell_ruling(result: ResearchResult, say: Wording, spell: Callable[[str], str] = escape) -> str:
    """The verdict as a sentence, or why there is none; `spell` is how the words of others are written in it."""
    return " · ".join(list_ruling(result, say, spell))


def list_ruling(result: ResearchResult, say: Wording, spell: Callable[[str], str]) -> list[str]:
    """What to do and how much of it; how sure that is; at which price."""
    verdict, price = result.verdict, Case(result).price
    if verdict is None:
        status = say.literal(result.verdict_status)
        return [say("report.no_verdict", status=status, reason=spell(result.reason or ""))]
    action, position = say.literal(verdict["action"]), verdict["position_percent"]
    parts = [say("report.ruling", action=action, position=position)]
    if forecast := verdict.get("forecast"):
        parts.append(say("report.forecast", **{**forecast, "benchmark": spell(forecast["benchmark"])}))
    else:
        parts.append(say("report.weight", confidence=verdict["confidence"]))
    if price:
        parts.append(say("report.at", price=say.value(price["value"], "CNY"), day=price["day"]))
    return parts


class Writer:
    """Writes what a case comes to. `spell` is how the words of others are written, as text that marks nothing up."""

    def __init__(self, case: Case, say: Wording, pen: Pen, spell: Callable[[str], str] = escape) -> None:
        self.case, self.say, self.pen, self.spell = case, say, pen, spell
        # two that say the same are one to the reader, named for the first
        self.names = {c.text(say.locale): name_claim(c.id) for c in reversed(case.claims.values())}
        self.told = Told(self.names, spell)
        self._whys = set[str]()

    def state(self, claim: Claim) -> str:
        return f"{self.weigh(claim)} · {self.quote(claim)} {name_claim(claim.id)}"

    def quote(self, claim: Claim) -> str:
        text = claim.text(self.say.locale)
        words = self.spell(text) if self.names[text] == name_claim(claim.id) else self.names[text]
        return self.say("report.reported", words=words) if claim.reported else words

    def reason(self, claim: Claim) -> str:
        """By what it is about, and how far that leans."""
        told = self.item(self.spell(self.say.dimension(claim)), self.quote(claim))
        return f"{self._bar(claim, self.case.weight(claim))} · {told} {name_claim(claim.id)}"

    def weigh(self, claim: Claim) -> str:
        return self._bar(claim, self.case.strength(claim))

    def _bar(self, claim: Claim, strength: float) -> str:
        side = self.say(f"report.side.{claim.side}")
        return f"{side} {self.pen.bar(strength, claim.side)} {strength:.2f}" if strength else side

    def item(self, name: str, words: str) -> str:
        return self.say("report.item", name=name, words=words)

    def open(self) -> Iterator[str]:
        """The first page, a block of Markdown each; an empty one counts for nothing."""
        result, verdict = self.case.result, self.case.verdict
        yield f"# {self.say('report.title', company=name_company(self.case, self.say, self.spell))}"
        yield from self.rule()
        yield from (f"**{said}**" for said in self.told.each(verdict.get("grave", [])))
        yield from (f"*{said}*" for said in self.told.each(verdict.get("warnings", [])))
        yield BREAK.join(self.draw_prices())
        for name, lines in self.explain().items():
            listed = "\n".join(f"{mark} {line}" for mark, line in number(name, lines, "-"))
            yield f"**{self.say(f'report.{name}')}**\n\n{listed}"
        as_of = Symbol.parse(result.symbol).local_time(result.as_of) if result.as_of else "—"
        how = {name: self.say.literal(getattr(result, name)) for name in ("overall_status", "verdict_status")}
        yield self.say("report.asked", as_of=as_of, **how)
        yield "\n".join(f"> {notice}" for notice in result.notices)

    def rule(self) -> list[str]:
        """The verdict, in the words of whoever gave it, if they found any."""
        ruling = list_ruling(self.case.result, self.say, self.spell)
        headline = self.told.once(self.case.verdict.get("headline", ""))
        lead = [ruling[0], headline] if headline else [" · ".join(ruling)]
        return [*lead, *self.told.each([self.case.grounds])]

    def draw_prices(self) -> list[str]:
        days = self.case.prices
        if not days:
            return []
        known = self.case.verdict.get("levels") or {}
        levels = {self.say(f"report.{key}"): known[name] for name, key in DRAWN.items() if known.get(name)}
        first, last = (self.spell(days[place][0]) for place in (0, -1))
        low, high = (self.say.value(end(close for _, close in days), "CNY") for end in (min, max))
        told = self.say("report.prices", first=first, last=last, low=low, high=high)
        return [self.pen.chart(days, levels), told]

    def explain(self) -> dict[str, list[str]]:
        """Why, and what follows, by the name of each part; a part without lines is left out."""
        verdict = self.case.verdict
        parts = {
            "why" if verdict else "heard": [*map(self.reason, self.case.reasons), *self._reasoning()],
            "decisive": list(self._decisive()),
            "would_change": self.told.each(verdict.get("would_change", [])),
            "levels": self._items((self.say(f"report.{part}"), verdict.get(part, "")) for part in LEVELS),
            "next_dates": self._items((str(at["day"]), at["what"]) for at in verdict.get("next_dates", [])),
            "since": list(self._since(verdict["since"])) if verdict.get("since") else [],
            "advice": self.told.each([verdict.get("advice") or ""]),
        }
        return {name: lines for name, lines in parts.items() if lines}

    def _items(self, told: Iterable[tuple[str, str]]) -> list[str]:
        return [self.item(name, words) for name, said in told if (words := self.told.once(said))]

    def _reasoning(self) -> list[str]:
        """What a model says beside the claims, or a judge who had none."""
        own = not self.case.reasons or self.case.verdict.get("engine") == "llm"
        return self.told.each(self.case.verdict.get("reasoning", "").splitlines()) if own else []

    def _decisive(self) -> Iterator[str]:
        """Each of them, where they are few; of many none matters by itself."""
        found = self.case.decisive
        if len(found) > MOST_DECISIVE:
            yield self.say("report.many_decisive", count=len(found))
            return
        for claim in found:
            again = self._refer(claim)
            yield f"{again} {name_claim(claim.id)}" if again else self.state(claim)

    def _refer(self, claim: Claim) -> str:
        reasons = self.case.reasons
        return self.say("report.reason", number=reasons.index(claim) + 1) if claim in reasons else ""

    def _since(self, since: Data) -> Iterator[str]:
        was, day = self.say.literal(since["action"]), str(since["as_of"])[:10]
        yield self.say("report.before", day=day, action=was, confidence=since["confidence"])
        for moved in since["moved"][:MOST_MOVED]:
            pulls = ("—" if pull is None else f"{pull:+.2f}" for pull in (moved["before"], moved["after"]))
            yield f"{' → '.join(pulls)} · {self._tell_moved(moved)} {name_claim(moved['claim'])}"

    def _tell_moved(self, moved: Data) -> str:
        """What it asserts, or asserted; where that stands above already, what it is about."""
        claim = self.case.claims.get(moved["claim"])
        if claim is None or moved["after"] is None:
            return self.told.once(moved["says"])
        if claim in self.case.leading:
            return self._refer(claim) or self.spell(self.say.dimension(claim))
        return self.quote(claim)
