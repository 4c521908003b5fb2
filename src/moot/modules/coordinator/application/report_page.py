"""The report as a web page of its own: no script, nothing loaded, and whatever anybody wrote in it stays text.

There are no links and no HTML in a report, so a hostile text can at most make itself bold.
"""

from functools import cache
from html import escape

from markdown_it import MarkdownIt

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
ACTIVE = ["autolink", "entity", "image", "link", "reference"]
"""What Markdown can do that a report must not."""


def render_page(result: ResearchResult) -> str:
    title = escape(Wording(result.locale)("report.title", symbol=result.symbol))
    return (
        f'<!doctype html>\n<html lang="{result.locale}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{to_html(render_report(result))}</body>\n</html>\n"
    )


def to_html(markdown: str) -> str:
    """A line break inside a cell is the only tag that a report writes itself."""
    return str(_markdown().render(markdown)).replace("&lt;br&gt;", "<br>")


@cache
def _markdown() -> MarkdownIt:
    return (
        MarkdownIt("commonmark", {"html": False, "breaks": True, "xhtmlOut": False})
        .enable("table")
        .disable(ACTIVE)
    )
