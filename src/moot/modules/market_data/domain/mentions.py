"""Companies that a sentence names: whatever could be a name is kept where the words around it agree."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from moot.modules.market_data.domain.company_index import How
from moot.modules.market_data.domain.mention_index import Grade, MentionIndex, Named
from moot.modules.market_data.domain.mention_words import (
    edge,
    everyday,
    half_width,
    pattern,
    simplified,
    trade_like,
    words,
)

_MOST_MEANT = 10  # what more companies share names none of them
_HELD = 12  # characters before a name that may say it is held
_TOLD = 14  # characters after a name that may say it is a share
_HANGUL = re.compile("[가-힣]")
_KATAKANA = re.compile("[ァ-ヺー]")
_COUNTRY = "中全各外美英法德俄泰韩两我他多三"  # 国 after one of these ends a word and begins no name


def names_in(text: str, indexes: Iterable[MentionIndex]) -> list[Named]:
    """In the order of the sentence: the longest names, none inside another, each company once."""
    written = half_width(text)
    sentence = simplified(written)
    found = [named for index in indexes for named in index.named(sentence)]
    return [replace(named, text=written[named.start : named.end]) for named in _chosen(sentence, found)]


def _chosen(sentence: str, found: Iterable[Named]) -> list[Named]:
    kept: list[Named] = []
    doubtful: list[Named] = []
    for named in sorted(_merged(found), key=lambda n: (n.start - n.end, n.grade, n.start)):
        if _free(named, kept):
            (kept if _plausible(named, sentence) else doubtful).append(named)
    for named in doubtful:
        if _free(named, kept) and _listed_with(named, kept, sentence):
            kept.append(named)
    return _once(sorted(kept, key=lambda named: named.start))


def _merged(found: Iterable[Named]) -> Iterator[Named]:
    """One for each place and grade: names in use before former ones, listed companies before those that are gone."""
    by_place = sorted(found, key=lambda named: (named.start, named.end, named.grade))
    for _, group in groupby(by_place, key=lambda named: (named.start, named.end, named.grade)):
        same = list(group)
        matches = {match.company.symbol: match for named in same for match in named.matches}.values()
        listed = [match for match in matches if match.listed] or list(matches)
        current = [match for match in listed if match.how is not How.FORMER_NAME] or listed
        if len(current) <= _MOST_MEANT:
            yield replace(same[0], matches=tuple(sorted(current, key=lambda match: match.rank)))


def _plausible(named: Named, sentence: str) -> bool:
    """Whether a name means a company where it stands."""
    around = sentence[: named.start], sentence[named.end :]
    if _inside_word(named.text, *around):
        return False
    if not named.text.isascii():
        return _chinese(named, *around)
    return any(map(str.isdigit, named.text[-6:])) or (_stands_alone(*around) and _latin(named, *around))


def _chinese(named: Named, before: str, after: str) -> bool:
    name, known = named.text.upper(), named.grade is Grade.KNOWN
    short, common = len(name) == 2, everyday(name)
    opens = known and not common and not before.strip()  # 茅台 at the beginning is 茅台 whatever follows
    if (short and not opens and not _at_edges(before, after)) or _inside_country(name, before):
        return False
    if common and not known:
        return _as_share(before, after) or (not short and not before.strip() and _told_as_share(after))
    if (short or trade_like(name)) and pattern("trade").match(after) and not _as_share(before, after):
        return False
    telling = not short or (named.grade is not Grade.PART and not common)
    around = f"{before} {after}"
    return telling or not around.strip() or _as_share(before, after) or bool(pattern("asked").search(around))


def _latin(named: Named, before: str, after: str) -> bool:
    word, capital = "_".join(named.text.upper().split()), named.text[0].isupper()
    if word.startswith("$") or ":" in word:
        return True
    if named.grade is Grade.PINYIN:
        asked = pattern("share").match(after) or pattern("asked").match(after)
        return word not in words("acronyms", "english") and bool(asked or not (before + after).strip(" ?？"))
    if named.grade is Grade.CODE:
        return named.text.isupper() and len(word) > 1 and word not in words("acronyms", "english")
    share = bool(pattern("share", "english").search(f"{before} {after}"))
    if word in words("ordinary", "english"):
        return ((share or "_" in word) and capital) or bool(pattern("share").match(after))
    return named.grade is not Grade.PART or capital or share


def _stands_alone(before: str, after: str) -> bool:
    return not any(character.isascii() and character.isalnum() for character in before[-1:] + after[:1])


def _inside_word(name: str, before: str, after: str) -> bool:
    """Whether the Katakana or Hangul of a name goes on beside it; what follows Hangul may be an ending."""
    if _KATAKANA.match(name[0]) and _KATAKANA.match(before[-1:]):
        return True
    if _KATAKANA.match(name[-1]):
        return bool(_KATAKANA.match(after[:1]))
    if not _HANGUL.match(name[0]):
        return False
    return bool(_HANGUL.match(before[-1:]) or (len(name) == 2 and pattern("joint_word").match(after)))


def _at_edges(before: str, after: str) -> bool:
    return edge(before[-1:], "before") and (edge(after[:1], "after") or after[:2] in words("kinds"))


def _as_share(before: str, after: str) -> bool:
    return bool(pattern("share").match(after) or pattern("held").search(before[-_HELD:]))


def _told_as_share(after: str) -> bool:
    """老百姓大药房去年净利润: what begins with a long name and goes on with a share's words."""
    return bool(pattern("share").search(after[:_TOLD]) and not pattern("trade").match(after))


def _inside_country(name: str, before: str) -> bool:
    """中国新能源车 does not name 国新能源."""
    return name.startswith("国") and bool(before) and before[-1] in _COUNTRY


def _listed_with(named: Named, kept: Sequence[Named], sentence: str) -> bool:
    """Whether it stands in one list with a company."""
    between = (
        sentence[n.end : named.start] if n.end <= named.start else sentence[named.end : n.start] for n in kept
    )
    return not named.text.isascii() and any(pattern("joined").fullmatch(gap) for gap in between)


def _free(named: Named, kept: Iterable[Named]) -> bool:
    return all(named.end <= other.start or other.end <= named.start for other in kept)


def _once(names: Sequence[Named]) -> list[Named]:
    """Without those that another one has said already, or said more exactly."""
    certain = {named.matches[0].company.symbol for named in names if len(named.matches) == 1}
    told: set[str] = set()
    result: list[Named] = []
    for named in names:
        symbols = {match.company.symbol for match in named.matches}
        if symbols & told or (len(symbols) > 1 and symbols & certain):
            continue
        told |= symbols
        result.append(named)
    return result
