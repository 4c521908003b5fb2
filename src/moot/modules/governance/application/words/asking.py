"""What a goal asks for: which kinds of change, to what, and what it leaves to be found out."""

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from moot.modules.governance.application.words.lexicon import (
    HAN,
    WORD,
    acts,
    base_forms,
    meanings_of,
    objects,
    plain,
    singular,
    spaced,
    with_object,
    words,
)
from moot.modules.governance.application.words.numbers import amounts_in

TOKEN = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[.,;:!?()]")
START = frozenset(".,;:!?()")
LINE_END = re.compile(r"\n|\\n")
"""Also as a goal that was quoted in JSON writes it."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A goal, read once. `nouns` are all its words, in the singular."""

    families: frozenset[str]
    objects: frozenset[str]
    nouns: frozenset[str]
    delegates: bool
    """It points to a text where the acts are written, so they cannot be told from the goal."""
    open_ended: bool
    """It says how to find a value instead of the value."""
    states_amounts: bool

    def covers(self, families: frozenset[str], about: frozenset[str], nouns: frozenset[str]) -> bool:
        """Whether an act of these families is asked for, on one of these objects (or on nouns nobody has listed)."""
        shared = families & self.families
        if not shared:
            return False
        if not about and not nouns:
            return True
        if about & self.objects or nouns & self.nouns:
            return True
        return any(acts()[name].implies & about for name in shared)


NOTHING_ASKED = Asking(
    frozenset(), frozenset(), frozenset(), delegates=False, open_ended=False, states_amounts=False
)


@lru_cache(maxsize=256)
def read_goal(goal: str) -> Asking:
    text = plain(LINE_END.sub(" ; ", goal))
    asked = _without_negated(text)
    tokens = spaced(text)
    about = _objects(text, tokens)
    return Asking(
        with_object(_families(asked), about),
        about,
        frozenset(singular(word) for word in tokens.split()),
        any(pattern.search(text) for pattern in _delegations()),
        any(_contains(text, tokens, cue) for cue in words("goals")["open_ended"]),
        bool(amounts_in(text)),
    )


def _families(text: str) -> frozenset[str]:
    for phrase in words("goals")["to_the_asker"]:
        text = text.replace(phrase, " ; ")
    verbs, after_lead = _verbs(text)
    padded = spaced(text)
    return frozenset(
        name
        for name, act in acts().items()
        if verbs & act.verbs
        or after_lead & act.nouns_too
        or any(f" {verb} " in padded for verb in act.verbs if " " in verb)
        or act.zh.search(text)
    )


def _verbs(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Words that may be verbs, and those of them that stand where a request begins."""
    goals = words("goals")
    leads, passive = frozenset(goals["leads"]), frozenset(goals["passive"])
    verbs: set[str] = set()
    after_lead: set[str] = set()
    before = "."
    for token in TOKEN.findall(text):
        forms = set(base_forms(token, past=before in passive))
        verbs |= forms
        if before in START or before in leads:
            after_lead |= forms
        before = token
    return frozenset(verbs), frozenset(after_lead)


def _objects(text: str, tokens: str) -> frozenset[str]:
    found = {meaning for word in tokens.split() for meaning in meanings_of(word)}
    for noun, meanings in objects().items():
        if (HAN.search(noun) or " " in noun or "-" in noun) and _contains(text, tokens, noun):
            found.update(meanings.split())
    return frozenset(found)


def _contains(text: str, tokens: str, phrase: str) -> bool:
    if HAN.search(phrase):
        return phrase in text
    return f" {' '.join(WORD.findall(phrase))} " in tokens


def _without_negated(text: str) -> str:
    return _negated().sub(" ; ", text)


@cache
def _negated() -> re.Pattern[str]:
    goals = words("goals")
    latin = "|".join(re.escape(word) for word in goals["negations"] if not HAN.search(word))
    han = "|".join(re.escape(word) for word in goals["negations"] if HAN.search(word))
    spared = "|".join(map(re.escape, goals["but_not"]))
    goes_on = "|".join(word if HAN.search(word) else rf"\b{word}\b" for word in goals["resumptions"])
    clause = rf"[^.,;:!?，。；！？]*?(?=$|[.,;:!?，。；！？]|{goes_on})"
    return re.compile(rf"(?:\b(?:{latin})\b|(?:{han}))(?!\s*(?:{spared})){clause}")


@cache
def _delegations() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in words("goals")["delegations"])
