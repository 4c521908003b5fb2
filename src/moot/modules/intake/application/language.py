"""In which language somebody asks, by script and small words: names, codes and borrowed terms are no language."""

import re
import tomllib
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

from moot.modules.intake.domain.question import Tongue

_NO_LANGUAGE = re.compile(
    r"https?://[!-~]+|www\.[!-~]+|[\w.%+-]{1,64}@[\w.-]{1,80}|```.*?```|`[^`]*`|\$[A-Za-z]{1,5}\b"
    r"|(?<![A-Za-z])[A-Za-z]{0,6}[.:_-]?\d[A-Za-z0-9_.%-]*",
    re.DOTALL,
)
_QUOTED = re.compile(r"“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》|【[^】]*】|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)")
_HIRAGANA = re.compile(r"[ぁ-ゖ]+")
_KATAKANA = re.compile(r"[ァ-ヺー]+")
_HANGUL = re.compile(r"[가-힣ㄱ-ㅎㅏ-ㅣᄀ-ᇿ]+")
_HAN = re.compile(r"[㐀-䶿一-鿿々〆]+")
_WORD = re.compile(r"[A-Za-zÀ-ɏ]+(?:['’&.-][A-Za-zÀ-ɏ]+)*")
_TAG = re.compile(r"(?P<language>[a-z]{2,3})(-(?P<script>[a-z]{4}))?(-(?P<region>[a-z]{2}|\d{3}))?")
_HOME = {"zh": "zh-CN", "en": "en-US", "ja": "ja-JP", "ko": "ko-KR"}
_PARTICLES = ("は", "って", "と", "を", "が", "に", "で", "も")
_A_NAME = 0.1
_NAMED = 6  # characters of names beside each word of another language
_ENOUGH = 1000  # characters; a text does not change its language after that
_TONGUES: tuple[Tongue, ...] = ("zh-CN", "ja-JP", "ko-KR")
_NAMES = {"chinese": "zh-CN", "english": "en-US", "japanese": "ja-JP", "korean": "ko-KR"}


def detect(text: str) -> Tongue | None:
    """The language of the words between the names; None where nothing tells."""
    plain = _NO_LANGUAGE.sub(" ", unicodedata.normalize("NFKC", text[:_ENOUGH]))
    return _told(_QUOTED.sub(" ", plain)) or _told(plain)


def locale_of(handed: str | None, text: str, default: str) -> str:
    """What a model handed over if that is a locale, else what the text tells, else the default."""
    return normalised(handed) or detect(text) or default


def normalised(tag: str | None) -> str | None:
    """A BCP 47 tag as Moot writes it: `en_us` is en-US, `zh` zh-CN; None where it is no tag."""
    written = (tag or "").strip().replace("_", "-").lower()
    if written in _NAMES:
        return _NAMES[written]
    found = _TAG.fullmatch(written)
    if found is None or found["language"] in {"und", "mul", "zxx"}:
        return None
    language, region = found["language"], found["region"]
    if language == "zh":
        return "zh-CN"  # Moot writes one Chinese
    return f"{language}-{region.upper()}" if region else _HOME.get(language, language)


def _told(text: str) -> Tongue | None:
    """The language that most of the small words are of; words in a script alone are rather a name."""
    if spelled := _spelled(text):
        return spelled
    english = _english(text)
    korean, japanese = _korean(text, english), _japanese(text, english)
    told: dict[Tongue, float] = {
        "en-US": english,
        "ko-KR": korean,
        "ja-JP": japanese,
        "zh-CN": _chinese(text, english, max(korean, japanese)),
    }
    best = max(told, key=lambda tongue: told[tongue])
    return best if told[best] > 0 else None


def _chinese(text: str, english: float, others: float) -> float:
    runs = _HAN.findall(text)
    han = "".join(runs)
    if not han or _only_japanese(han):
        return 0
    small = len(_pattern("chinese", "grammar").findall(text))
    quoted = english >= 3 and len(runs) == 1 and len(han) <= 4 and not _HAN.match(text.strip())
    names = not _pattern("chinese", "nouns").search(text) and not _pattern("chinese", "certain").search(text)
    named = (
        max(english, others) >= (1 if not small else 4)
        and small < 2
        and len(han) <= _NAMED * max(english, others)
    )
    if quoted or (names and named):
        return _A_NAME
    foreign = sum(not _fits(character, "shift_jis") for character in han)
    return 0.4 * len(han) + 2 * small + foreign


def _japanese(text: str, english: float) -> float:
    """Hiragana is grammar, unless it is the one word that a question in another language is about."""
    han, runs = "".join(_HAN.findall(text)), _HIRAGANA.findall(text)
    quoted = len(runs) == 1 and not runs[0].startswith(_PARTICLES)
    if quoted and (english >= 4 or _pattern("chinese", "certain").search(text)):
        return _A_NAME
    native = _only_japanese(han)
    katakana = sum(1 + 0.2 * len(run) if english < 1 else 0.7 for run in _KATAKANA.findall(text))
    score = 2.0 * sum(map(len, runs)) + katakana + (2 if native else 0)
    return score + (0.5 * len(han) if runs or native else 0)


def _korean(text: str, english: float) -> float:
    small = len(_pattern("korean", "grammar").findall(text))
    return _A_NAME if english >= 1 and not small else 1.0 * len("".join(_HANGUL.findall(text))) + small


def _english(text: str) -> float:
    """Small words count most; a word in capitals is rather a name."""
    words = _WORD.findall(text)
    if re.search(r"[぀-ヿ㐀-鿿가-힣]", text):  # among other scripts capitals are terms: IF is a future
        words = [word for word in words if not word.isupper() or word == "I"]
    small = [word for word in words if _small(word)]
    if not small and any(not word.isascii() or word.lower() in _list("other") for word in words):
        return 0
    nouns = [word for word in words if not _small(word) and not _borrowed(word)]
    return 2.0 * len(small) + sum(1.0 if word.islower() else 0.5 for word in nouns)


def _small(word: str) -> bool:
    low = "" if word == "A" else word.lower().replace("’", "'")  # A shares
    return low.removesuffix("'s") in _list("english") or low.replace("'", "") in _list("english")


def _borrowed(word: str) -> bool:
    return word.lower() in _list("english", "borrowed") or (word.isupper() and len(word) < 6)


def _spelled(text: str) -> Tongue | None:
    """Chinese, Japanese or Korean in Latin letters."""
    words = [] if _HAN.search(text) else [word.lower() for word in _WORD.findall(text)]
    for tongue in _TONGUES:
        hits = [word for word in words if word in _list("spelled", tongue)]
        if 2 * len(hits) >= len(words) and any(len(hit) > 3 for hit in hits):
            return tongue
    return None


def _only_japanese(han: str) -> bool:
    """Whether characters are Japan's: no Chinese set has them all, or together they make a Japanese word."""
    if not han or _pattern("chinese", "certain").search(han):
        return False
    chinese = len(_pattern("chinese", "grammar").findall(han))
    words = len(_pattern("japanese", "grammar").findall(han)) - chinese
    if not _fits(han, "shift_jis"):  # the name of a Chinese company may stand beside
        return words > 1 and any(map(_shinjitai, han))
    return words > 0 or (not _fits(han, "gb2312") and not _fits(han, "big5"))


def _shinjitai(character: str) -> bool:
    """価 is Japan's alone."""
    return _fits(character, "shift_jis") and not _fits(character, "gb2312") and not _fits(character, "big5")


def _fits(text: str, character_set: str) -> bool:
    try:
        text.encode(character_set)
    except UnicodeEncodeError:
        return False
    return True


@cache
def _list(table: str, key: str = "grammar") -> frozenset[str]:
    return frozenset(_words()[table][key].split())


@cache
def _pattern(table: str, key: str) -> re.Pattern[str]:
    return re.compile(_words()[table][key])


@cache
def _words() -> dict[str, Any]:
    path = Path(__file__).parent / "words" / "language.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))
