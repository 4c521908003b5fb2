"""An answer as Markdown that stays harmless whoever wrote the words in it: no HTML, no image, no link but a source's.

Words of strangers keep no markup at all (`escape`). What a model or a step wrote keeps lists, tables and emphasis,
and nothing that reaches outside of its section (`tame`). Headings, marks of sources and tables are written here too.
"""

import re
import string
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from urllib.parse import quote, urlsplit

from moot.modules.intake.application.language import tongue_of
from moot.modules.intake.domain import texts
from moot.modules.intake.domain.conversation import Answer, Style
from moot.modules.intake.domain.question import Citation, Tongue
from moot.shared.domain.markdown import drop_unseen, escape, list_lines


def headings_for(locale: str) -> Mapping[str, str]:
    """English where there are none for the locale."""
    return _read(tongue_of(locale) or "en-US")


def language_name(locale: str) -> str:
    """What a language calls itself; the bare locale where that is not known."""
    tongue = tongue_of(locale)
    return _read(tongue)["language"] if tongue else locale


@cache
def _read(tongue: Tongue) -> Mapping[str, str]:
    written = (files(texts) / f"{tongue}.toml").read_text(encoding="utf-8")
    headings: Mapping[str, str] = tomllib.loads(written)["headings"]
    return headings


def as_table(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the heading. A row is one line, whatever was written into it."""
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |"
        for line in lines
    )


def side_by_side(columns: Sequence[Mapping[str, str]]) -> str:
    """By the names of what they hold, the first of which heads the table; empty where there are fewer than two.

    What only one of them has is left open for the others.
    """
    compared = [column for column in columns if column]
    if len(compared) < 2:
        return ""
    labels = dict.fromkeys(label for column in compared for label in column)
    return as_table([[label, *(column.get(label, "—") for column in compared)] for label in labels])


QUOTING: frozenset[Style] = frozenset({"research", "academic"})
"""Styles that show what a source says, and not only where it is."""
LONGEST_QUOTE = 300
LONGEST_LABEL = 200

TAG = re.compile(r"<(?=[A-Za-z/!?])")
FENCE = re.compile(r"[`~]{3,}")
HEADING = re.compile(r"^[ \t]*(#{1,6})(?=[ \t])", re.MULTILINE)
UNDERLINE = re.compile(r"^[^\S\n]*(?:=+|-+)[^\S\n]*$", re.MULTILINE)
LINK = re.compile(r"\](?=\()")
DEFINITION = re.compile(r"^((?:[^\S\n]|[>*+\-\d.)])*\[(?:\\[\s\S]|[^\[\]\\])*\])(?=:)", re.MULTILINE)
"""A link that is defined for the rest of the text. Where a line does not begin with it, `[…]:` is only words."""
OF_A_WORD = string.ascii_letters + string.digits + ".,%+/:'-"
SENTENCE = re.compile(r"\S.*?(?:[.!?;](?:\s+|$)|[。！？；]\s*|$)", re.DOTALL)
"""Or a clause that can stand alone."""
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
NOT_IN_A_URL = re.compile(r"[\s<>()\[\]\"'`\\^{}|]")


def tame(markdown: str, *, top: int = 3) -> str:
    """Markdown for inside a section: headings from level `top` on, no fence left open, and nothing live.

    What is taken out goes first, so that nothing live can come together from the rest.
    """
    text = FENCE.sub("", drop_unseen(markdown))
    text = HEADING.sub(lambda found: "#" * max(top, len(found[1])), UNDERLINE.sub("", text))
    return DEFINITION.sub(r"\1\\", LINK.sub(r"]\\", TAG.sub("&lt;", text))).strip()


def clip(text: str, longest: int) -> str:
    """No longer than that; a number or a word of letters is never cut in two."""
    if len(text) <= longest:
        return text
    cut = text[: longest - 1]
    return (cut.rstrip(OF_A_WORD) or cut).rstrip(" ,;:(，；：、（") + "…"


def shorten(text: str, longest: int, *, most: int | None = None) -> str:
    """The first whole sentences that fit, at most that many of them; of one that is too long as much as fits."""
    first, *others = SENTENCE.findall(text)[:most] or [text]
    told = first
    for sentence in others:
        if len(told + sentence.rstrip()) > longest:
            break
        told += sentence
    return clip(told.rstrip(" ;；"), longest)


def clean_url(url: str | None) -> str | None:
    """The address of a page on the web, fit for a link; None for any other, and where it hides its host."""
    address = drop_unseen(url or "").strip()
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
    quoting = answer.style in QUOTING and answer.engine == "llm"  # the rules quote in the text itself
    blocks = [
        f"# {answer.title}",
        *_section(say["key_points"], list_lines(answer.key_points)),
        *(block for section in answer.sections for block in _section(section.heading, section.text)),
        *_section(say["citations"], _citations(answer.citations, quoting=quoting)),
        *_section(say["notes"], list_lines(escape(warning) for warning in answer.warnings)),
        f"> {answer.disclaimer}",
    ]
    return "\n\n".join(blocks) + "\n"


def split_blocks(markdown: str) -> Iterator[str]:
    """The text block by block, as it can be shown while it is sent. Together they are all of it."""
    return (found[0] for found in re.finditer(r".+?(?:\n{2,}|\Z)", markdown, re.DOTALL))


def _section(heading: str, text: str) -> list[str]:
    return [f"## {heading}", text] if text else []


def _citations(citations: Sequence[Citation], *, quoting: bool) -> str:
    """Numbered as the text cites them."""
    lines: list[str] = []
    for number, citation in enumerate(citations, start=1):
        mark = f"{number}. "
        lines.append(mark + _source(citation))
        if quoting and citation.quote:
            lines.append(f"{' ' * len(mark)}> “{escape(clip(citation.quote, LONGEST_QUOTE))}”")
    return "\n".join(lines)


def _source(citation: Citation) -> str:
    url = clean_url(citation.url)
    title = escape(clip(citation.title, LONGEST_LABEL)) or url or "—"
    when = day_of(citation) or citation.published_at
    details = [escape(clip(part, LONGEST_LABEL)) for part in (citation.source, when) if part]
    return " · ".join([f"[{title}]({url})" if url else title, *details])
