"""A report as PDF, made of its page. What that needs is an extra, a library of the system and fonts; each that is
missing is named.
"""

import re
import sys
from contextlib import redirect_stdout
from typing import Any

from moot.modules.coordinator.application.report import Style, render_page
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.errors import Unavailable

PAPER = """@page { size: A4; margin: 18mm 16mm;
  @bottom-center { content: counter(page) " / " counter(pages); font-size: 8pt; } }"""

DRAWING = re.compile(r"<svg [^>]*>")
INK = """<style>text { font-size: 11px; fill: #667079; } .end { text-anchor: end; } .rail { fill: #d9dee3; }
  .pro { fill: #1a7f4b; } .con { fill: #c0392b; } .mid { fill: #9aa3ab; } .area { fill: #2457a6; opacity: 0.1; }
  .line { fill: none; stroke: #2457a6; stroke-width: 1.5; }
  .level { stroke: #667079; stroke-dasharray: 4 4; }</style>"""
"""A drawing on paper sees no style but its own. Only ours are any: what others wrote is text."""


def render_pdf(result: ResearchResult, style: Style = "full") -> bytes:
    """Raises `Unavailable` where something is missing. Nothing is loaded: the page holds all that it shows."""
    printer = _load_printer()
    drawn = DRAWING.sub(lambda found: found[0] + INK, render_page(result, style))
    page = printer.HTML(string=drawn, url_fetcher=_fetch_nothing)
    document = page.render(stylesheets=[printer.CSS(string=PAPER)])
    written: bytes = document.write_pdf()
    if unknown := {sign for font in document.fonts.values() for sign in font.missing if _is_wide(sign)}:
        example = "".join(map(chr, sorted(unknown)[:5]))
        raise Unavailable(SAY("pdf.no_font", signs=example), code="PDF_NO_FONT")
    return written


def _load_printer() -> Any:
    """It greets whoever lacks Pango on the standard output, which may be a document."""
    try:
        with redirect_stdout(sys.stderr):
            import weasyprint  # noqa: PLC0415  # an extra, and heavy
    except ImportError as e:
        raise Unavailable(SAY("pdf.not_installed"), code="PDF_NOT_INSTALLED") from e
    except OSError as e:
        raise Unavailable(SAY("pdf.no_pango", reason=str(e).splitlines()[0]), code="PDF_NO_PANGO") from e
    return weasyprint


def _fetch_nothing(url: str, *_: Any, **__: Any) -> Any:
    raise ValueError(f"a report loads nothing: {url}")


def _is_wide(sign: int) -> bool:
    """A Chinese sign, or its punctuation."""
    return 0x3000 <= sign <= 0x9FFF or 0xFF00 <= sign <= 0xFFEF
