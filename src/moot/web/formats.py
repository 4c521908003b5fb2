"""Figures and moments as people of a language read them: the filters of templates."""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from markupsafe import Markup

from moot.shared.domain.messages import Locale

NONE = "—"
Steps = tuple[tuple[float, str], ...]
LARGE: Mapping[Locale, Steps] = {
    "zh-CN": ((1e12, "万亿"), (1e8, "亿"), (1e4, "万")),
    "en-US": ((1e12, " tn"), (1e9, " bn"), (1e6, " m")),
}
SIGNS = {"CNY": "¥", "USD": "$"}


def number(value: float | None, digits: int | None = None) -> str:
    """With separators; without `digits`, as many as a figure of its size needs."""
    if value is None or not math.isfinite(value):
        return NONE
    if digits is None:
        digits = 0 if isinstance(value, int) or abs(value) >= 10_000 else 2
    return f"{value:,.{digits}f}".replace("-", "−")


def percent(value: float | None, digits: int = 1, *, signed: bool = False) -> str:
    """Of a fraction: 0.123 is 12.3%."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:{'+' if signed else ''}.{digits}%}".replace("-", "−")


def money(locale: Locale) -> Callable[..., str]:
    def tell(value: float | None, currency: str = "", digits: int | None = None) -> str:
        """Large amounts in the units of the language; an unknown currency by its code."""
        if value is None or not math.isfinite(value):
            return NONE
        sign = SIGNS.get(currency, f"{currency} " if currency else "")
        step, unit = next((s for s in LARGE[locale] if abs(value) >= s[0]), (1.0, ""))
        figure = number(value / step, 2 if digits is None else digits)
        return f"{sign}{figure}{unit}"

    return tell


def moment(value: datetime | str | None) -> str | Markup:
    """For the reader's own clock: the browser puts it into their zone, and without a script it is UTC."""
    if value is None:
        return NONE
    at = (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)
    told = '<time datetime="{}" class="moment">{:%Y-%m-%d %H:%M} UTC</time>'
    return Markup(told).format(at.isoformat(), at)  # noqa: S704  # a constant; what is put in is escaped


def day(value: date | str | None) -> str:
    return NONE if value is None else str(value)[:10]


def seconds(locale: Locale) -> Callable[[float | None], str]:
    hour, minute, second = ("小时", "分", "秒") if locale == "zh-CN" else (" h ", " min ", " s")

    def tell(milliseconds: float | None) -> str:
        """How long something took."""
        if milliseconds is None:
            return NONE
        took = milliseconds / 1000
        if took < 60:
            return f"{took:.1f}{second}"
        minutes, rest = divmod(int(took), 60)
        return (
            f"{minutes // 60}{hour}{minutes % 60}{minute}"
            if minutes >= 60
            else f"{minutes}{minute}{rest}{second}"
        )

    return tell


def filters(locale: Locale) -> dict[str, Callable[..., Any]]:
    plain: dict[str, Callable[..., Any]] = {
        "number": number,
        "percent": percent,
        "moment": moment,
        "day": day,
    }
    return plain | {"money": money(locale), "seconds": seconds(locale)}
