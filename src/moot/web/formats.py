"""Figures and moments as people of a language read them: the filters of templates."""

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import cache, partial
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markupsafe import Markup

from moot.shared.domain.messages import Locale

NONE = "—"
Steps = tuple[tuple[float, str], ...]
LARGE: Mapping[Locale, Steps] = {
    "zh-CN": ((1e12, "万亿"), (1e8, "亿"), (1e4, "万")),
    "en-US": ((1e12, " tn"), (1e9, " bn"), (1e6, " m")),
}
TIMES: Mapping[Locale, tuple[str, str, str, str]] = {
    "zh-CN": ("小时", "分", "秒", "毫秒"),
    "en-US": (" h ", " min ", " s", " ms"),
}
SIGNS = {"CNY": "¥", "USD": "$"}


def number(value: float | None, digits: int | None = None, *, signed: bool = False) -> str:
    """With separators; without `digits`, as many as a figure of its size needs."""
    if value is None or not math.isfinite(value):
        return NONE
    if digits is None:
        digits = 0 if isinstance(value, int) or abs(value) >= 10_000 else 2
    return f"{value:{'+' if signed else ''},.{digits}f}".replace("-", "−")


def percent(value: float | None, digits: int = 1, *, signed: bool = False) -> str:
    """Of a fraction: 0.123 is 12.3%."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:{'+' if signed else ''}.{digits}%}".replace("-", "−")


def money(locale: Locale, value: float | None, currency: str = "", digits: int = 2) -> str:
    """Large amounts in the units of the language; an unknown currency by its code."""
    if value is None or not math.isfinite(value):
        return NONE
    sign = SIGNS.get(currency, f"{currency} " if currency else "")
    step, unit = next((s for s in LARGE.get(locale, LARGE["en-US"]) if abs(value) >= s[0]), (1.0, ""))
    return f"{sign}{number(value / step, digits)}{unit}"


def moment(value: datetime | str | None) -> str | Markup:
    """For the reader's own clock: the browser puts it into their zone, and without a script it is UTC."""
    if value is None:
        return NONE
    at = (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)
    told = '<time datetime="{}" class="moment">{:%Y-%m-%d %H:%M} UTC</time>'
    return Markup(told).format(at.isoformat(timespec="minutes"), at)  # noqa: S704  # a constant; what is put in is escaped


def day(value: date | str | None) -> str:
    return NONE if value is None else str(value)[:10]


def seconds(locale: Locale, milliseconds: float | None) -> str:
    """How long something took."""
    if milliseconds is None:
        return NONE
    hour, minute, second, thousandth = TIMES.get(locale, TIMES["en-US"])
    took = milliseconds / 1000
    if took < 0.1:
        return f"{milliseconds:.0f}{thousandth}"
    if took < 60:
        return f"{took:.1f}{second}"
    minutes, rest = divmod(int(took), 60)
    if minutes < 60:
        return f"{minutes}{minute}{rest}{second}"
    return f"{minutes // 60}{hour}{minutes % 60}{minute}"


SOURCE = re.compile(r"\[(\d{1,3})\]")


@cache
def _reader() -> MarkdownIt:
    """Of Markdown by strangers: no markup of its own, no pictures, and links to the web alone."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    reader.validateLink = lambda url: url.lower().startswith(("http://", "https://"))  # type: ignore[method-assign]

    def text(_self: Any, tokens: Any, index: int, _options: Any, env: Mapping[str, Any]) -> str:
        """A source that is cited leads to it."""
        words, sources = escapeHtml(tokens[index].content), env.get("sources", "")
        return SOURCE.sub(rf'<a class="cited" href="#{sources}\1">[\1]</a>', words) if sources else words

    reader.add_render_rule("text", text)
    return reader


def prose(text: str, sources: str = "", below: int = 3) -> Markup:
    """Markdown as a page shows it, its headings from level `below` on; ids of its sources begin with `sources`."""
    env: dict[str, Any] = {"sources": sources}
    tokens = _reader().parse(text, env)
    for token in tokens:
        token.attrs.pop("style", None)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + below - 1, 6)}"
        for child in token.children or ():
            if child.type == "link_open":
                child.attrs |= {"rel": "noopener noreferrer nofollow", "target": "_blank"}
    return Markup(_reader().renderer.render(tokens, _reader().options, env))  # noqa: S704  # escaped by the reader


def as_json(value: Any) -> str:
    """For people who read and write it."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def filters(locale: Locale) -> dict[str, Callable[..., Any]]:
    return {
        "number": number,
        "percent": percent,
        "moment": moment,
        "day": day,
        "prose": prose,
        "as_json": as_json,
        "money": partial(money, locale),
        "seconds": partial(seconds, locale),
    }
