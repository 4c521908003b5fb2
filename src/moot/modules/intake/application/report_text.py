"""An answer as Markdown that stays harmless whoever wrote the words in it: no HTML, no image, no link but a source's.

Words of strangers keep no markup at all (`plain`). What a model or a step wrote keeps lists, tables and emphasis, and
nothing that reaches outside of its section (`tamed`).
"""

import re
import string
import unicodedata
from collections.abc import Iterator, Sequence
from urllib.parse import quote, urlsplit

from moot.modules.intake.application.headings import headings_for
from moot.modules.intake.domain.answer import Answer, Style
from moot.modules.intake.domain.findings import Citation

QUOTING: frozenset[Style] = frozenset({"research", "academic"})
"""Styles that show what a source says, and not only where it is."""
LONGEST_QUOTE = 300
LONGEST_LABEL = 200

UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs"})
"""Control characters, those that turn the direction of text or take no room, and private ones."""
MARKUP = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])")
BLOCK = re.compile(r"^(?=[>=]|--|(?:[-+]|#{1,6})(?:\s|$))|^(\d{1,9})(?=[.)](?:\s|$))")
"""At the start of a line: a quote, a rule, a heading or a list."""
TAG = re.compile(r"<(?=[A-Za-z/!?])")
ENTITY = re.compile(r"&(?=#|[A-Za-z][A-Za-z0-9]*;)")
FENCE = re.compile(r"[`~]{3,}")
HEADING = re.compile(r"^[ \t]*(#{1,6})(?=[ \t])", re.MULTILINE)
UNDERLINE = re.compile(r"^[ \t]*(?:=+|-+)[ \t]*$", re.MULTILINE)
LINK = re.compile(r"\](?=\()")
DEFINITION = re.compile(r"^((?:[^\S\n]|[>*+\-\d.)])*\[(?:\\[\s\S]|[^\[\]\\])*\])(?=:)", re.MULTILINE)
"""A link that is defined for the rest of the text. Where a line does not begin with it, `[…]:` is only words."""
OF_A_WORD = string.ascii_letters + string.digits + ".,%+/:'-"
SENTENCE = re.compile(r"\S.*?(?:[.!?;](?:\s+|$)|[。！？；]\s*|$)", re.DOTALL)
"""Or a clause that can stand alone."""
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
NOT_IN_A_URL = re.compile(r"[\s<>()\[\]\"'`\\^{}|]")


def seen(text: str) -> str:
    """Only what a reader sees, and line breaks: a terminal or a page obeys the rest."""
    lines = "\n".join(text.replace("\t", " ").splitlines())
    return "".join(sign for sign in lines if sign == "\n" or unicodedata.category(sign) not in UNSEEN)


def plain(words: str) -> str:
    """Words of strangers on one line, every sign of which reads as itself."""
    line = ENTITY.sub("&amp;", " ".join(seen(words).split()))
    escaped = MARKUP.sub(lambda found: f"\\{found[0]}", line)
    return BLOCK.sub(r"\1\\", escaped).replace("<", "&lt;")


def tamed(markdown: str, *, top: int = 3) -> str:
    """Markdown for inside a section: headings from level `top` on, no fence left open, and nothing live.

    What is taken out goes first, so that nothing live can come together from the rest.
    """
    text = FENCE.sub("", seen(markdown))
    text = HEADING.sub(lambda found: "#" * max(top, len(found[1])), UNDERLINE.sub("", text))
    return DEFINITION.sub(r"\1\\", LINK.sub(r"]\\", TAG.sub("&lt;", text))).strip()


def clipped(text: str, longest: int) -> str:
    """No longer than that; a number or a word of letters is never cut in two."""
    if len(text) <= longest:
        return text
    cut = text[: longest - 1]
    return (cut.rstrip(OF_A_WORD) or cut).rstrip(" ,;:(，；：、（") + "…"


def sentences(text: str, longest: int, *, most: int | None = None) -> str:
    """The first whole sentences that fit, at most that many of them; of one that is too long as much as fits."""
    first, *others = SENTENCE.findall(text)[:most] or [text]
    told = first
    for sentence in others:
        if len(told + sentence.rstrip()) > longest:
            break
        told += sentence
    return clipped(told.rstrip(" ;；"), longest)


def safe_url(url: str | None) -> str | None:
    """The address of a page on the web, fit for a link; None for any other, and where it hides its host."""
    address = seen(url or "").strip()
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        return None
    return NOT_IN_A_URL.sub(lambda found: quote(found[0], safe=""), address)


def day_of(citation: Citation) -> str | None:
    """The day it is of, where it says so in a way that can be compared."""
    day = DAY.match(citation.published_at or "")
    return day[0] if day else None


def markdown_of(answer: Answer) -> str:
    say = headings_for(answer.locale)
    blocks = [
        f"# {answer.title}",
        *_section(say["key_points"], _list(answer.key_points)),
        *(block for section in answer.sections for block in _section(section.heading, section.text)),
        *_section(say["citations"], _citations(answer.citations, quoting=_quotes(answer))),
        *_section(say["notes"], _list(plain(warning) for warning in answer.warnings)),
        f"> {answer.disclaimer}",
    ]
    return "\n\n".join(blocks) + "\n"


def pieces(markdown: str) -> Iterator[str]:
    """The text block by block, as it can be shown while it is sent. Together they are all of it."""
    return (found[0] for found in re.finditer(r".+?(?:\n{2,}|\Z)", markdown, re.DOTALL))


def _quotes(answer: Answer) -> bool:
    """The rules quote in the text itself."""
    return answer.style in QUOTING and answer.engine == "llm"


def _section(heading: str, text: str) -> list[str]:
    return [f"## {heading}", text] if text else []


def _list(lines: Iterator[str] | Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _citations(citations: Sequence[Citation], *, quoting: bool) -> str:
    """Numbered as the text cites them."""
    lines: list[str] = []
    for number, citation in enumerate(citations, start=1):
        mark = f"{number}. "
        lines.append(mark + _source(citation))
        if quoting and citation.quote:
            lines.append(f"{' ' * len(mark)}> “{plain(clipped(citation.quote, LONGEST_QUOTE))}”")
    return "\n".join(lines)


def _source(citation: Citation) -> str:
    url = safe_url(citation.url)
    title = plain(clipped(citation.title, LONGEST_LABEL)) or url or "—"
    when = day_of(citation) or citation.published_at
    details = [plain(clipped(part, LONGEST_LABEL)) for part in (citation.source, when) if part]
    return " · ".join([f"[{title}]({url})" if url else title, *details])
