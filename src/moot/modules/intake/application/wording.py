"""What the words of a question say by themselves, in four languages."""

import re
import tomllib
import unicodedata
from functools import cache
from pathlib import Path
from typing import Literal

from moot.modules.intake.domain.question import reading_language
from moot.modules.intake.domain.texts import SAY

WORDS = Path(__file__).parent / "words"
_LONGEST = 4000
_SHORT = 80
_POINTING = 24
_REFERRING = 40
_KANA = re.compile(r"[ぁ-ヺ]")
_SIGNS = re.compile(r"[^\w']+")
_AMOUNT = re.compile(r"(?<![A-Za-z0-9.])\d{1,3}(\.\d+)?(?![A-Za-z0-9.])|'(?:s|re|ve|ll|d|m)\b", re.IGNORECASE)

Tone = Literal["small_talk", "weather"]
Refusal = Literal["instructions", "care", "refused"]


def plain(text: str) -> str:
    """Half-width, in one line, and no longer than a question is."""
    return " ".join(unicodedata.normalize("NFKC", text[:_LONGEST]).split())


def says(text: str, *name: str) -> bool:
    """Whether such words are anywhere in the text, in either Chinese script."""
    return any(_pattern(*name).search(written) for written in {text, _simplified(text)})


def refusal(text: str) -> Refusal | None:
    """Why it is not done: it is after the desk's instructions, or harm, or somebody needs a person."""
    if says(text, "refused", "extraction"):
        return "instructions"
    if says(text, "refused", "despair"):
        return "care"
    if not says(text, "refused", "harm"):
        return None
    if says(text, "refused", "guilty"):
        return "refused"
    harm = _pattern("refused", "harm")
    around = harm.sub(" ", text if harm.search(text) else _simplified(text))
    wanted = says(text, "refused", "wanted") and not says(around, "refused", "innocent")
    return "refused" if wanted else None


def small_talk(text: str) -> Tone | None:
    """Whether there is nothing to find out: courtesies, chatter, signs without words, the weather."""
    said = without_courtesy(text)
    if hesitates(text):
        return None
    if not said:
        return "small_talk" if _courteous(text) else None
    if says(said, "small_talk", "weather") and not says(said, "small_talk", "matter"):
        return "weather"
    chatter = _all(said, "small_talk", "chatter") and not says(said, "small_talk", "matter")
    return "small_talk" if chatter or _about_oneself(said) or _about_oneself(text) else None


def without_courtesy(text: str) -> str:
    """What is left of a text when greetings and thanks at its ends are gone."""
    parts = [part for part in re.split(_SIGNS_BETWEEN, text) if _SIGNS.sub("", part)]
    while parts and _all(parts[0], "small_talk", "courtesy"):
        parts.pop(0)
    while parts and _all(parts[-1], "small_talk", "courtesy"):
        parts.pop()
    return " ".join(parts) if any(any(map(str.isalnum, part)) for part in parts) else ""


def says_nothing(text: str) -> bool:
    return not any(map(str.isalpha, text)) or hesitates(text) or vague(text)


def hesitates(text: str) -> bool:
    return any(map(str.isalpha, text)) and (
        _all(text, "unclear", "hesitation") or says(text, "unclear", "puzzled")
    )


def vague(text: str) -> bool:
    """Whether it could be about anything."""
    return _all(text, "unclear", "whole") or (_asks_everyday(text) and not _has_subject(text))


def points_nowhere(text: str) -> bool:
    """Whether all it says is that something, mentioned before if anywhere, is somehow."""
    if len(text) <= _POINTING and says(text, "follow_up", "pointing"):
        return True
    return len(text) <= _REFERRING and says(text, "follow_up", "mentioned")


def about_some_share(text: str) -> bool:
    """Whether it asks about a share without a name, and not about a market, a trade or what a word means."""
    return (
        says(text, "equity", "wording") and not says(text, "equity", "subject") and not _names_somebody(text)
    )


def aspects(text: str) -> tuple[str, ...]:
    return tuple(expert for expert in _table()["aspects"] if says(text, "aspects", expert))


def reply(key: str, locale: str, **values: str) -> str:
    """In the reader's language where there is such a text, else in one of the desk's own."""
    foreign = _replies().get(locale, {}).get(key)
    if foreign is not None:
        return foreign.format(**values)
    return SAY(f"understanding.{key}", **values).in_locale(reading_language(locale))


_SIGNS_BETWEEN = re.compile(r"[,.!?;:~，。！？；：、…～]+\s*|\n")


def _courteous(text: str) -> bool:
    """A courtesy, or a face."""
    return any(map(str.isalpha, text)) or any(unicodedata.category(c) == "So" for c in text)


def _all(text: str, *name: str) -> bool:
    """Whether such words, once or again and again, are all that the text says."""
    rest = _SIGNS.sub(" ", _simplified(text).replace("’", "'")).strip()
    if len(rest) > _SHORT or _pattern(*name).fullmatch(rest):
        return len(rest) <= _SHORT
    while rest and (found := _pattern(*name).match(rest)) and found.end():
        rest = rest[found.end() :].lstrip()
    return not rest


def _asks_everyday(text: str) -> bool:
    """大数据 is made of everyday words too, and is a subject: nothing in it asks."""
    return _made_of(text, "empty", "asking") and ("?" in text or _has(text, "asking"))


def _has_subject(text: str) -> bool:
    """Whether everyday words ask what a word means, or together are a subject: 円安, 大盘."""
    own = says(text, "equity", "subject") and not says(text, "follow_up", "back")
    return own or says(text, "unclear", "defining")


def _names_somebody(text: str) -> bool:
    """Whether something is left beside everyday words and those of shares: a company that is listed elsewhere."""
    return bool(_left(_pattern("equity", "wording").sub(" ", text), "empty", "selves"))


def _about_oneself(text: str) -> bool:
    """How somebody feels, or what one asks a friend."""
    matter = says(text, "equity", "wording") or says(text, "small_talk", "matter")
    if matter or not _made_of(text, "empty", "selves", "mood", "life"):
        return False
    return _has(text, "mood") or (_has(text, "life") and _has(text, "selves"))


def _made_of(text: str, *kinds: str) -> bool:
    """Whether everyday words of these kinds are all that the text says."""
    return len(text) <= _SHORT and not _left(text, *kinds)


def _left(text: str, *kinds: str) -> str:
    rest = _AMOUNT.sub(" ", _SIGNS.sub(" ", text.replace("’", "'")))
    return min((_everyday(*kinds).sub("", written).strip() for written in (rest, _simplified(rest))), key=len)


def _has(text: str, kind: str) -> bool:
    text = text.replace("’", "'")
    return any(_everyday(kind).search(written) for written in {text, _simplified(text)})


def _simplified(text: str) -> str:
    """Each traditional character of everyday words in its simplified form; text with kana is Japanese as it is."""
    return text if _KANA.search(text) else text.translate(_forms())


@cache
def _everyday(*kinds: str) -> re.Pattern[str]:
    """The longest word first; one in Latin letters stands alone."""
    words = {word for kind in kinds for text in _words()[kind].values() for word in text.split()}
    return re.compile("|".join(map(_one, sorted(words, key=lambda word: (-len(word), word)))), re.IGNORECASE)


def _one(word: str) -> str:
    if word.isascii():
        return rf"(?<![a-z']){re.escape(word)}(?![a-z'])"
    script = "japanese" if re.search("[぀-ヿ一-鿿]", word) else "korean"
    return word.replace("~", f"[{_words()['endings'][script]}]{{0,5}}")


@cache
def _forms() -> dict[int, str]:
    """Written in pairs: the traditional character, then the simplified one."""
    return {ord(pair[0]): pair[1] for pair in _words()["scripts"]["pairs"].split()}


@cache
def _pattern(table: str, key: str) -> re.Pattern[str]:
    found = _table()[table][key]
    parts = [found] if isinstance(found, str) else found
    return re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE)


@cache
def _table() -> dict[str, dict[str, str | list[str]]]:
    return tomllib.loads((WORDS / "intent.toml").read_text(encoding="utf-8"))


@cache
def _replies() -> dict[str, dict[str, str]]:
    return tomllib.loads((WORDS / "replies.toml").read_text(encoding="utf-8"))


@cache
def _words() -> dict[str, dict[str, str]]:
    return tomllib.loads((WORDS / "everyday.toml").read_text(encoding="utf-8"))
