"""The report as a web page of its own: no script, nothing loaded, and whatever anybody wrote in it stays text.

It knows the part of Markdown that reports are written in. Everything is escaped before it gets its markup, and there
are no links, so a hostile text can at most make itself bold.
"""

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby

from moot.modules.coordinator.application.report import Wording, render_report
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3, h4 { line-height: 1.25; margin: 2rem 0 .5rem; }
blockquote { margin: 1rem 0; padding-left: 1rem; border-left: 3px solid; opacity: .75; }
table { border-collapse: collapse; width: 100%; }
th, td { border: 1px solid; padding: .4rem .6rem; text-align: left; vertical-align: top; }
p, td, th, li { overflow-wrap: anywhere; }
"""

KINDS = {
    "blank": re.compile(r"\s*$"),
    "heading": re.compile(r"#{1,6} "),
    "quote": re.compile(r"> ?"),
    "ul": re.compile(r"\s*[-*+] "),
    "ol": re.compile(r"\s*\d{1,3}[.)] "),
    "table": re.compile(r"\|"),
}
INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>[^*]+)\*\*|(?<!\*)\*(?P<em>[^*\s](?:[^*]*[^*\s])?)\*(?!\*)"
)
RULE = re.compile(r"[\s|:-]+$")


def render_page(result: ResearchResult) -> str:
    title = escape(Wording(result.locale)("report.title", symbol=result.symbol))
    return (
        f'<!doctype html>\n<html lang="{result.locale}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{to_html(render_report(result))}\n</body>\n</html>\n"
    )


def to_html(markdown: str) -> str:
    return "\n".join(block for kind, lines in _runs(markdown) for block in _blocks(kind, lines))


def _runs(markdown: str) -> Iterator[tuple[str, list[str]]]:
    for kind, lines in groupby(markdown.splitlines(), key=_kind):
        yield kind, list(lines)


def _kind(line: str) -> str:
    return next((kind for kind, start in KINDS.items() if start.match(line)), "text")


def _blocks(kind: str, lines: list[str]) -> Iterator[str]:
    bare = [KINDS[kind].sub("", line, count=1) for line in lines] if kind in KINDS else lines
    match kind:
        case "heading":
            for line, text in zip(lines, bare, strict=True):
                level = len(line) - len(line.lstrip("#"))
                yield f"<h{level}>{_inline(text)}</h{level}>"
        case "ul" | "ol":
            yield f"<{kind}>{''.join(f'<li>{_inline(text)}</li>' for text in bare)}</{kind}>"
        case "quote":
            yield f"<blockquote>{'<br>'.join(map(_inline, bare))}</blockquote>"
        case "table":
            yield f"<table>{''.join(_rows(lines))}</table>"
        case "text":
            yield f"<p>{'<br>'.join(map(_inline, bare))}</p>"


def _rows(lines: list[str]) -> Iterator[str]:
    """The first row is the head when a rule follows it."""
    headed = len(lines) > 1 and RULE.match(lines[1]) is not None
    for number, line in enumerate(lines):
        if headed and number == 1:
            continue
        tag = "th" if headed and number == 0 else "td"
        cells = "".join(f"<{tag}>{_inline(cell)}</{tag}>" for cell in _cells(line))
        yield f"<tr>{cells}</tr>"


def _cells(line: str) -> list[str]:
    parts = re.split(r"(?<!\\)\|", line.strip())[1:]
    kept = parts[:-1] if parts and not parts[-1].strip() else parts
    return [cell.strip().replace("\\|", "|") for cell in kept]


def _inline(text: str) -> str:
    safe = escape(text).replace("&lt;br&gt;", "<br>")
    return INLINE.sub(
        lambda found: f"<{found.lastgroup}>{found[found.lastgroup or 0]}</{found.lastgroup}>", safe
    )
