"""The one way to make a page: what it knows of its reader, the template it is rendered with, how it is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.datastructures import ImmutableMultiDict

from moot.modules.jobs.application.batch_report import JOB_TEXTS
from moot.shared.domain.datasets import DATASET_TEXTS
from moot.shared.domain.errors import AppError, InvalidInput
from moot.shared.domain.experts import EXPERT_TEXTS
from moot.shared.domain.markdown import drop_unseen
from moot.shared.domain.messages import LANGUAGES, LOCALES, Catalogue, Locale
from moot.shared.domain.symbol import SPELLINGS, Market
from moot.shared.presentation.caller import caller_of, reader_of, workspace_of
from moot.shared.presentation.errors import STATUS
from moot.web.charts import bar_chart, football_field, gantt_chart, line_chart
from moot.web.formats import filters

if TYPE_CHECKING:
    from moot.modules.access.application import AccessService
    from moot.modules.coordinator.container import CoordinatorContainer
    from moot.modules.evaluation.container import EvaluationContainer
    from moot.modules.governance.container import GovernanceContainer
    from moot.modules.intake.container import IntakeContainer
    from moot.modules.jobs.container import JobsContainer
    from moot.modules.llm_platform.container import LLMPlatformContainer
    from moot.modules.market_data.container import MarketDataContainer
    from moot.shared.domain.clock import Clock
    from moot.shared.infrastructure.settings import Settings

HERE = Path(__file__).parent
SAY = Catalogue(EXPERT_TEXTS, DATASET_TEXTS, JOB_TEXTS, *sorted((HERE / "texts").iterdir()))
"""A folder of texts for each page; those of `frame` are every page's."""

PREFERENCES: Mapping[str, tuple[str, ...]] = {
    "locale": LOCALES,
    "theme": ("auto", "light", "dark"),
    "tones": ("auto", "red", "green"),  # which colour is up: by the market, or always that
}
A_YEAR = 365 * 24 * 3600

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Accept, Accept-Language, Cookie",
}
"""A stricter referrer policy would have browsers hide where a form comes from, and every form be refused."""
MOST_FIELDS = 500


@cache
def environment(locale: Locale) -> Environment:
    """Templates that speak one language: macros need not be told which."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=tidy,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= filters(locale) | {"zip_texts": partial(_zip_texts, locale)}
    texts = SAY.texts(locale)
    made.globals.update(
        say=lambda key, **values: SAY(key, **values).in_locale(locale),
        known=texts.__contains__,
        named=lambda table, name: texts.get(f"{table}.{name}", name),
        locale=locale,
        languages=LANGUAGES,
        market_of=market_of,
        tone_of=tone_of,
        line_chart=line_chart,
        bar_chart=bar_chart,
        gantt_chart=gantt_chart,
        football_field=football_field,
    )
    return made


def tidy(value: Any) -> Any:
    """Words of others without the signs that a reader does not see and a page obeys."""
    plain = isinstance(value, str) and not isinstance(value, Markup)
    return drop_unseen(value) if plain and not value.isprintable() else value


def _zip_texts(locale: Locale, names: Iterable[str], table: str) -> list[tuple[str, str]]:
    """Each name with its text in a table of the catalogue, for a choice."""
    return [(name, SAY(f"{table}.{name}").in_locale(locale)) for name in names]


def market_of(symbol: str) -> str:
    """By whose custom a rise is coloured: the synthetic market follows the Chinese one."""
    market = next((market for market, spelling in SPELLINGS.items() if spelling.fullmatch(symbol)), None)
    return "cn" if market in {Market.CN, Market.DEMO} else "other"


def tone_of(value: float | None) -> str:
    """The class of a figure that went up or down."""
    return "" if not value else "up" if value > 0 else "down"


class Services(Protocol):
    """The desk, as pages see it: whoever puts the application together has the pages, and they have not the desk."""

    access: AccessService
    coordinator: CoordinatorContainer
    evaluation: EvaluationContainer
    governance: GovernanceContainer
    intake: IntakeContainer
    jobs: JobsContainer
    llm_platform: LLMPlatformContainer
    market_data: MarketDataContainer
    settings: Settings
    clock: Clock

    def work(self) -> None:
        """Take what is begun from the queue, unless others are to."""


@dataclass(frozen=True)
class Page:
    """What a page knows of its reader."""

    request: Request

    @property
    def desk(self) -> Services:
        found: Services = self.request.app.state.desk
        return found

    @property
    def now(self) -> datetime:
        return self.desk.clock.now()

    @property
    def locale(self) -> Locale:
        chosen = self._preference("locale")
        return next((locale for locale in LOCALES if locale == chosen), None) or reader_of(self.request)

    @property
    def theme(self) -> str:
        return self._preference("theme")

    @property
    def tones(self) -> str:
        return self._preference("tones")

    @property
    def workspace(self) -> str:
        return workspace_of(self.request)

    @property
    def caller(self) -> str | None:
        return caller_of(self.request)

    @property
    def scopes(self) -> tuple[str, ...]:
        return getattr(self.request.state, "scopes", ())

    def may(self, scope: str) -> bool:
        return scope in self.scopes

    @property
    def path(self) -> str:
        return self.request.url.path

    @property
    def address(self) -> str:
        """Path and query, to come back to."""
        query = self.request.url.query
        return f"{self.path}?{query}" if query else self.path

    def is_at(self, path: str) -> bool:
        """Whether this page is there, or below it."""
        return self.path == path or (path != "/" and self.path.startswith(f"{path}/"))

    @property
    def navigation(self) -> list[Any]:
        """Of all pages those that the reader may see."""
        return [place for place in self.request.app.state.navigation if self.may(place.scope)]

    def say(self, key: str, /, **values: Any) -> str:
        return SAY(key, **values).in_locale(self.locale)

    @property
    def filters(self) -> dict[str, Any]:
        """What of a list is wanted. Its page is a number; whatever else is said there is refused by name."""
        asked: dict[str, Any] = {
            name: value for name, value in self.request.query_params.items() if value.strip()
        }
        if asked.get("page", "").isdecimal():
            asked["page"] = int(asked["page"])
        return asked

    def with_query(self, **changes: Any) -> str:
        """The address of this page with other parameters; None takes one away."""
        query = dict(self.request.query_params) | changes
        return f"{self.path}?{urlencode({name: value for name, value in query.items() if value is not None})}"

    def asset(self, name: str) -> str:
        """By the version, so that no browser keeps the file of another."""
        return f"/static/{name}?v={self.request.app.version}"

    def write(self, template: str, /, **given: Any) -> str:
        """A part of a page, as text."""
        return environment(self.locale).get_template(template).render(page=self, **given)

    def render(
        self, template: str, /, *, error: AppError | None = None, status: int = 200, **given: Any
    ) -> HTMLResponse:
        """With what is wrong, if anything, beside the form that it is about."""
        if error is not None and status == 200:
            status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
        text = self.write(template, **{"flaws": Flaws.of(error, self), **given})
        return HTMLResponse(text, status, {**HEADERS, "Content-Language": self.locale})

    def go(self, to: str) -> Response:
        """After a form: what is there is asked for anew, so that nobody sends the form twice by reloading."""
        if "hx-request" in self.request.headers:
            return Response(headers={"HX-Redirect": to})
        return RedirectResponse(to, 303)

    def _preference(self, name: str) -> str:
        chosen = self.request.cookies.get(name, "")
        return chosen if chosen in PREFERENCES[name] else "auto"


Reader = Annotated[Page, Depends(Page)]


async def read_form(request: Request) -> ImmutableMultiDict[str, str]:
    """What a form of a page brought; fields left empty are not there."""
    try:
        fields = parse_qsl((await request.body()).decode(), max_num_fields=MOST_FIELDS)
    except ValueError:
        raise InvalidInput(SAY("form_malformed")) from None
    return ImmutableMultiDict(fields)


Form = Annotated[ImmutableMultiDict[str, str], Depends(read_form)]


@dataclass(frozen=True)
class Flaws:
    """What is wrong with a form: in a sentence that names the fields, and which those are."""

    message: str = ""
    fields: frozenset[str] = frozenset()

    @classmethod
    def of(cls, error: AppError | None, page: Page) -> Flaws:
        """An error names its field itself, or has a list of what is wrong with each."""
        if error is None:
            return cls()
        found = error.details.get("errors") or [{"field": error.details.get("field", "")}]
        named = [problem["field"] for problem in found]
        return cls(
            error.in_locale(page.locale), frozenset([*named, *(name.partition(".")[0] for name in named)])
        )


def show_error(request: Request, error: AppError, status: int) -> Response:
    """An error as a page; whoever is not known yet is asked for their key first."""
    page = Page(request)
    if status == 401:
        return page.go(f"/login?next={quote(page.address if request.method == 'GET' else '/')}")
    key = f"error.{status}"
    title = page.say(key if key in SAY.texts(page.locale) else f"error.{'input' if status < 500 else '500'}")
    template = "flaw.html" if "hx-request" in request.headers else "error.html"
    return page.render(
        template, status=status, code=status, title=title, message=error.in_locale(page.locale)
    )
