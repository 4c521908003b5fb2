"""What can be told about a draft without trusting who wrote it, and what of it nobody gets to see."""

import re
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import NamedTuple

from moot.modules.intake.application.headings import headings_for, language_name, tongue_of
from moot.modules.intake.application.report_citations import cited_in, recited, uncited
from moot.modules.intake.application.report_draft import SHAPES, Draft
from moot.modules.intake.application.report_material import Material
from moot.modules.intake.domain.answer import Style
from moot.modules.intake.domain.findings import Citation
from moot.modules.intake.domain.question import Tongue
from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.grounding import ground
from moot.shared.domain.messages import Message

NAMED = 8
"""As many offenders are named; a reader or a model needs no longer list."""


def faults(draft: Draft, material: Material, *, locale: str, style: Style) -> list[Message]:
    """What the writer should correct, and the reader must know if it is not."""
    return [
        *_missing(draft, locale, style),
        *_invented(draft, material),
        *_in_another_language(draft, locale),
        *([] if cites(draft, material) else [SAY("report.uncited")]),
    ]


def only_known(draft: Draft, material: Material) -> tuple[Draft, tuple[Citation, ...], list[Message]]:
    """The draft without sources and links that do not exist, those it cites in order, and what was taken out."""
    cited = cited_in(draft.parts().values())
    known = [number for number in cited if 1 <= number <= len(material.sources)]
    unknown = [f"[{number}]" for number in cited if number not in known]
    links = sorted(filter(_is_link, _ungrounded(draft, material)), key=len, reverse=True)
    numbers = {number: position for position, number in enumerate(known, start=1)}

    def kept(text: str) -> str:
        return recited(reduce(lambda rest, link: rest.replace(link, "…"), links, text), numbers)

    texts = {
        name: kept(value) if isinstance(value, str) else [kept(line) for line in value]
        for name, value in draft.model_dump().items()
    }
    removed = [SAY("report.unknown_sources", numbers=unknown[:NAMED])] if unknown else []
    removed += [SAY("report.unknown_links", links=links[:NAMED])] if links else []
    return draft.model_copy(update=texts), tuple(material.sources[n - 1] for n in known), removed


def _missing(draft: Draft, locale: str, style: Style) -> Iterator[Message]:
    shape, say, parts = SHAPES[style], headings_for(locale), draft.parts()
    wanted = {"key_points": shape.key_points > 0, "analysis": shape.analysis, "risks": True}
    if absent := [say[part] for part, asked in wanted.items() if asked and not parts[part]]:
        yield SAY("report.missing", parts=absent)


def _invented(draft: Draft, material: Material) -> Iterator[Message]:
    if numbers := [stated for stated in _ungrounded(draft, material) if not _is_link(stated)]:
        yield SAY("report.invented", numbers=numbers[:NAMED])


def _ungrounded(draft: Draft, material: Material) -> list[str]:
    """Numbers and links of the text that stand in nothing its writer was shown."""
    texts = [uncited(text) for text in draft.parts().values()]
    return ground(texts, (), given=material.given()).offenders


def _is_link(stated: str) -> bool:
    return "://" in stated or stated.startswith("www.")


def cites(draft: Draft, material: Material) -> bool:
    """Anything that it was given, if there is anything."""
    known = range(1, len(material.sources) + 1)
    return not known or any(number in known for number in cited_in(draft.parts().values()))


HAN, KANA, HANGUL = r"[\u3400-\u4dbf\u4e00-\u9fff]", r"[\u3040-\u30ff]", r"[\uac00-\ud7af]"
WORD = r"[A-Za-z][A-Za-z']+"
UNIT = re.compile("|".join((HAN, KANA, HANGUL, WORD)))
"""What texts are measured in: a character where those carry the meaning, else a word."""


class Script(NamedTuple):
    """At least `least` of a text in a language is in signs of its own."""

    signs: re.Pattern[str]
    least: float


SCRIPTS: Mapping[Tongue, Script] = {
    "zh-CN": Script(re.compile(HAN), 0.6),
    "en-US": Script(re.compile(WORD), 0.5),
    "ja-JP": Script(re.compile(KANA), 0.15),
    "ko-KR": Script(re.compile(HANGUL), 0.5),
}
FEWEST_TO_TELL = 15
"""Of fewer units, names among them, nobody can say which language they are in."""


def _in_another_language(draft: Draft, locale: str) -> Iterator[Message]:
    tongue, say = tongue_of(locale), headings_for(locale)
    if tongue is None:
        return
    script, parts = SCRIPTS[tongue], draft.parts()
    foreign = [part for part, text in parts.items() if _is_foreign(text, script)]
    if foreign or _is_foreign("\n".join(parts.values()), script):
        named = [say.get(part, part) for part in foreign or parts]
        yield SAY("report.wrong_language", language=language_name(locale), parts=named)


def _is_foreign(text: str, script: Script) -> bool:
    units = UNIT.findall(text)
    own = sum(script.signs.fullmatch(unit) is not None for unit in units)
    return len(units) >= FEWEST_TO_TELL and own < script.least * len(units)
