"""In which language somebody asks, by script and small words: names, codes and borrowed terms are no language."""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from moot.modules.intake.domain.question import Tongue

_NO_LANGUAGE = re.compile(
    r"https?://[!-~]+|www\.[!-~]+|[\w.%+-]{1,64}@[\w.-]{1,80}|`[^`]*`"
    r"|\$?[A-Za-z]{0,6}[.:_-]?\d[A-Za-z0-9_.%-]*"
)
_HIRAGANA, _KATAKANA = re.compile("[ぁ-ゖ]+"), re.compile("[ァ-ヺー]+")
_HANGUL, _HAN = re.compile("[가-힣ㄱ-ㅎㅏ-ㅣᄀ-ᇿ]+"), re.compile("[㐀-䶿一-鿿々〆]+")
_WORD = re.compile(r"[A-Za-zÀ-ɏ]+(?:['’&.-][A-Za-zÀ-ɏ]+)*")
_TAG = re.compile(r"(?P<language>[a-z]{2,3})(-[a-z]{4})?(-(?P<region>[a-z]{2}|\d{3}))?")
_HOME: Mapping[str, Tongue] = {"zh": "zh-CN", "en": "en-US", "ja": "ja-JP", "ko": "ko-KR"}
_NAMES = {"chinese": "zh-CN", "english": "en-US", "japanese": "ja-JP", "korean": "ko-KR"}
_ENOUGH = 1000
"""Characters; a text does not change its language after that."""


def detect(text: str) -> Tongue | None:
    """The language of the words between the names; None where nothing tells."""
    plain = _NO_LANGUAGE.sub(" ", unicodedata.normalize("NFKC", text[:_ENOUGH]))
    english = _english(plain)
    scores: dict[Tongue, float] = {
        "en-US": english,
        "ko-KR": _korean(plain, english),
        "ja-JP": _japanese(plain, english),
    }
    scores["zh-CN"] = _chinese(plain, max(scores.values()))
    best = max(scores, key=lambda tongue: scores[tongue])
    return best if scores[best] > 0 else None


def locale_of(handed: str | None, text: str, default: str) -> str:
    """What a model handed over if that is a locale, else what the text tells, else the default."""
    return normalise(handed) or detect(text) or default


def tongue_of(locale: str) -> Tongue | None:
    """The language of a locale, whatever its region: `zh-TW` reads `zh-CN`. None where it is none of ours."""
    return _HOME.get(locale.lower().replace("_", "-").partition("-")[0])


def normalise(tag: str | None) -> str | None:
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


@cache
def words() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


def _english(text: str) -> float:
    """Small words count most; among other scripts a word in capitals is a term or a name."""
    found = _WORD.findall(text)
    if re.search(r"[぀-ヿ㐀-鿿가-힣]", text):
        found = [word for word in found if not word.isupper()]
    small = [word for word in found if word != "A" and _plain(word) in list_words("english")]
    if not small and any(not word.isascii() or word.lower() in list_words("other") for word in found):
        return 0
    terms = {
        word for word in found if word.lower() in list_words("terms") or (word.isupper() and len(word) < 6)
    }
    others = (word for word in found if word not in small and word not in terms)
    return 2.0 * len(small) + sum(1.0 if word.islower() else 0.5 for word in others)


def _korean(text: str, english: float) -> float:
    """Beside English and without an ending of its own it is a name."""
    return 0 if english and not _count("korean", text) else len("".join(_HANGUL.findall(text)))


def _japanese(text: str, english: float) -> float:
    """Hiragana is grammar, unless it is the one word that a question in another language is about."""
    han, runs, katakana = "".join(_HAN.findall(text)), _HIRAGANA.findall(text), _KATAKANA.findall(text)
    if len(runs) == 1 and (_count("chinese_alone", text) or english >= 4):
        return 0
    own = len(han) if runs or _only_japanese(han) else 0
    return 2 * len("".join(runs)) + len("".join(katakana)) + own


def _chinese(text: str, others: float) -> float:
    """Characters without a Chinese small word beside another language are a name."""
    han, small = "".join(_HAN.findall(text)), _count("chinese", text)
    named = others >= 1 and not small and len(han) <= 6 * others
    return 0 if named or _only_japanese(han) else 0.5 * len(han) + 2 * small


def _only_japanese(han: str) -> bool:
    """Whether characters are Japan's: together they make a Japanese word, or no Chinese set has them all."""
    foreign = not _fits(han, "gb2312") and not _fits(han, "big5")
    return _count("japanese", han) > _count("chinese", han) or (foreign and _fits(han, "shift_jis"))


def _fits(text: str, character_set: str) -> bool:
    try:
        text.encode(character_set)
    except UnicodeEncodeError:
        return False
    return True


def _plain(word: str) -> str:
    return word.lower().replace("’", "'").removesuffix("'s").replace("'", "")


@cache
def list_words(name: str) -> tuple[str, ...]:
    return tuple(words()["language"][name].split())


def _count(name: str, text: str) -> int:
    return len(re.findall(words()["language"][name], text))
