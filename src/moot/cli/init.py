"""`moot init`: sets a desk up by asking. Nothing is written before the last question is answered."""

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import urlsplit

import typer

from moot.cli.llm import BaseUrl, KeyEnv, ModelName, Preset, Trial, show_trial, try_plain
from moot.cli.options import ask_secret, option, secret_in
from moot.cli.outcome import at_desk, command
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.llm_platform.application.config_service import PRESETS, ConfigBody, ConfigPatch, ConfigView
from moot.modules.market_data.application.sync import BY_REQUEST
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.messages import LOCALES, Locale, Message, locale_of
from moot.shared.domain.validation import checked
from moot.shared.infrastructure.settings import Settings
from moot.shared.infrastructure.settings_file import SETTINGS_FILE, NotSimple, change_settings

if TYPE_CHECKING:
    from moot.desk import Moot

T = TypeVar("T")

OTHER = "other"
OTHER_ALIAS = "custom"
LAST_PRIORITY = 10_000
SEARCHES = ("bocha", "searxng")

Changes = dict[str, str | None]
"""Settings by name; None removes one."""

init = typer.Typer(add_completion=False)


class Questions:
    """Asks a person, in `locale`; Enter skips. `silent`: nobody is there, so every question counts as skipped."""

    def __init__(self, locale: Locale, *, silent: bool) -> None:
        self.locale: Locale = locale
        self.silent = silent

    def tell(self, key: str, /, **values: object) -> None:
        typer.echo(SAY(key, **values).in_locale(self.locale))

    def text(self, key: str, default: str | None = None) -> str:
        """What is answered; the default, which is shown, when nothing is."""
        if self.silent:
            return default or ""
        question = SAY(key).in_locale(self.locale)
        answer: str = typer.prompt(question, default=default or "", show_default=bool(default))
        return answer.strip()

    def secret(self, key: str) -> str:
        return "" if self.silent else ask_secret(SAY(key).in_locale(self.locale))

    def sure(self, key: str) -> bool:
        return not self.silent and typer.confirm(SAY(key).in_locale(self.locale))

    def choice(self, key: str, choices: Mapping[str, str | Message]) -> str | None:
        """One of `choices`, which are names with what they mean, by its number or name; None when skipped."""
        if self.silent:
            return None
        for number, (name, meaning) in enumerate(choices.items(), 1):
            said = meaning if isinstance(meaning, str) else meaning.in_locale(self.locale)
            typer.echo(f"  {number}  {name:<10} {said}")
        by_number = {str(number): name for number, name in enumerate(choices, 1)}
        while answer := self.text(key):
            chosen = by_number.get(answer, answer)
            if chosen in choices:
                return chosen
            self.tell("init.not_a_choice", answer=answer)
        return None


@dataclass(frozen=True)
class Given:
    """What the options answer already."""

    locale: str | None = None
    preset: str | None = None
    base_url: str | None = None
    model: str | None = None
    key_env: str | None = None
    tushare_token_env: str | None = None
    data: str | None = None
    search: str | None = None
    search_key_env: str | None = None
    search_url: str | None = None

    def __post_init__(self) -> None:
        known = {"locale": LOCALES, "preset": tuple(PRESETS), "data": BY_REQUEST, "search": SEARCHES}
        for name, allowed in known.items():
            value = getattr(self, name)
            if value is not None and value not in allowed:
                raise InvalidInput(SAY("init.unknown", option=name, value=value, allowed=allowed))

    @property
    def a_model(self) -> bool:
        return bool(self.preset or self.base_url or self.model or self.key_env)


@dataclass(frozen=True)
class Present:
    """What the desk has so far: its models, the keys of those that can be called, and where they are stored."""

    models: list[ConfigView]
    keys: Mapping[str, str]
    database: str | None

    def stored(self, alias: str) -> bool:
        return any(view.alias == alias and view.source == "stored" for view in self.models)


@dataclass(frozen=True)
class Decided:
    """What will be written. `dropped`: a model did not work, and nobody wanted it all the same."""

    settings: Changes
    model: ConfigBody | None
    dropped: bool


@init.command(help=say("help.init"))
def set_up(
    locale: Annotated[str | None, option("help.init_locale", told={"locales": LOCALES})] = None,
    preset: Preset = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    key_env: KeyEnv = None,
    tushare_token_env: Annotated[str | None, option("help.init_token_env", metavar="VAR")] = None,
    source: Annotated[str | None, option("help.init_data", "--data")] = None,
    search: Annotated[str | None, option("help.init_search")] = None,
    search_key_env: Annotated[str | None, option("help.init_search_key", metavar="VAR")] = None,
    search_url: Annotated[str | None, option("help.init_search_url")] = None,
    yes: Annotated[bool, option("help.init_yes", "--yes")] = False,
) -> None:
    with command() as settings:
        a_model = (preset, base_url, model, key_env)
        given = Given(locale, *a_model, tushare_token_env, source, search, search_key_env, search_url)
        _set_up(settings, given, Questions(environment_locale(), silent=yes))


def _set_up(settings: Settings, given: Given, ask: Questions) -> None:
    present = at_desk(settings, _look_around)
    if not ask.silent:
        ask.tell("init.welcome")
    locale = given.locale or ask.choice("init.ask_locale", {"zh-CN": "中文", "en-US": "English"})
    ask.locale = locale_of(locale) if locale else ask.locale
    _show_present(ask, settings, present)
    decided = _decide(ask, given, settings, present)
    if locale:
        decided.settings["locale"] = locale
    _write(settings, decided, present)
    _show_end(ask, settings, decided, present)
    if decided.dropped:
        raise typer.Exit(1)


async def _look_around(desk: "Moot") -> Present:
    try:
        callable_now = desk.llm_platform.llm_service().candidates()
    except Unavailable:
        callable_now = []
    return Present(
        models=await desk.llm_platform.config_service().list(),
        keys={config.alias: config.api_key.get_secret_value() for config in callable_now},
        database=desk.database.safe_url if desk.database else None,
    )


def _decide(ask: Questions, given: Given, settings: Settings, present: Present) -> Decided:
    model, dropped = None, False
    if present.database is not None:
        model = _until_possible(ask, given.a_model, lambda: _model(ask, given, present))
    elif given.a_model:
        raise Unavailable(SAY("init.nothing_stored"))
    else:
        ask.tell("init.nothing_stored")
    if model is not None and not _works(ask, settings, model):
        dropped = not ask.sure("init.keep_failing")
    data_given, search_given = bool(given.data or given.tushare_token_env), bool(given.search)
    changes = _until_possible(ask, data_given, lambda: _data(ask, given, settings.data_sources))
    if "tushare_token" in changes:
        ask.tell("init.token_untested")
    changes |= _until_possible(ask, search_given, lambda: _search(ask, given))
    return Decided(changes, None if dropped else model, dropped)


def _until_possible(ask: Questions, fixed: bool, step: Callable[[], T]) -> T:
    """A person who entered something impossible is told, and asked again; options are not asked about."""
    while True:
        try:
            return step()
        except InvalidInput as e:
            if ask.silent or fixed:
                raise
            ask.tell("error", message=e.in_locale(ask.locale))


def _model(ask: Questions, given: Given, present: Present) -> ConfigBody | None:
    chosen = given.preset or (OTHER if given.a_model else ask.choice("init.ask_model", _endpoints()))
    if chosen is None:
        return None
    preset = PRESETS.get(chosen)
    alias = chosen if preset else OTHER_ALIAS
    entered = {
        "alias": alias,
        "preset": preset.name if preset else None,
        "base_url": given.base_url or (None if preset else ask.text("init.ask_url")),
        "model_name": given.model or ask.text("init.ask_name", preset.suggested_model if preset else None),
        "api_key": _key(ask, given, present.keys.get(alias, ""), asked=not preset or preset.needs_key),
        "priority": min(1 + max((view.priority for view in present.models), default=0), LAST_PRIORITY),
    }
    return checked(ConfigBody, {name: value for name, value in entered.items() if value})


def _endpoints() -> dict[str, str | Message]:
    return {name: preset.base_url for name, preset in PRESETS.items()} | {OTHER: SAY("init.other")}


def _key(ask: Questions, given: Given, stored: str, *, asked: bool) -> str:
    if given.key_env:
        return secret_in("--key-env", given.key_env)
    return (ask.secret("init.ask_key_again" if stored else "llm.ask_key") if asked else "") or stored


def _data(ask: Questions, given: Given, sources: str) -> Changes:
    """`sources` are those asked for so far, by comma."""
    changes: Changes = {}
    if given.tushare_token_env:
        changes["tushare_token"] = secret_in("--tushare-token-env", given.tushare_token_env)
    name = given.data
    if name is None and not changes:
        name = ask.choice("init.ask_data", {n: SAY(f"init.data.{n}") for n in ("tushare", *BY_REQUEST)})
    if name == "tushare":
        changes |= _if_answered("tushare_token", ask.secret("init.ask_token"))
    elif name is not None:
        if importlib.util.find_spec(name) is None:
            raise InvalidInput(SAY("doctor.source_missing", name=name))
        known = [known for part in sources.split(",") if (known := part.strip())]
        changes["data_sources"] = ",".join(dict.fromkeys([*known, name]))
    return changes


def _search(ask: Questions, given: Given) -> Changes:
    name = given.search or ask.choice("init.ask_search", {n: SAY(f"init.search.{n}") for n in SEARCHES})
    if name == "bocha":
        variable = given.search_key_env
        key = secret_in("--search-key-env", variable) if variable else ask.secret("init.ask_bocha")
        return _if_answered("bocha_api_key", key, "--search-key-env" if ask.silent else None)
    if name == "searxng":
        url = given.search_url or ask.text("init.ask_searxng")
        if url and not (urlsplit(url).scheme in {"http", "https"} and urlsplit(url).hostname):
            raise InvalidInput(SAY("init.no_address", url=url))
        chosen = _if_answered("searxng_url", url, "--search-url" if ask.silent else None)
        return {**chosen, "bocha_api_key": None} if chosen else {}  # Bocha goes first while it has a key
    return {}


def _if_answered(setting: str, answer: str, required: str | None = None) -> Changes:
    """`required` names the option that should have given the answer."""
    if not answer and required:
        raise InvalidInput(SAY("init.option_missing", option=required))
    return {setting: answer} if answer else {}


def _works(ask: Questions, settings: Settings, model: ConfigBody) -> bool:
    """One real call, to a model that nobody but this process knows yet."""
    config = model.config().model_copy(update={"alias": f"{model.alias}.trial"})

    async def work(desk: "Moot") -> Trial:
        registry = desk.llm_platform.registry
        registry.defaults = (*registry.defaults, config)
        await registry.refresh()
        return await try_plain(desk.llm_platform.llm_service(), config.alias)

    ask.tell("llm.testing", alias=model.alias, model=model.model_name)
    trial = at_desk(settings, work)
    show_trial("plain", trial, settings.currency, ask.locale)
    return trial.problem is None


def _write(settings: Settings, decided: Decided, present: Present) -> None:
    if decided.settings:
        try:
            change_settings(_file(settings), decided.settings)
        except NotSimple:
            names = list(decided.settings)
            raise InvalidInput(SAY("init.by_hand", file=_file(settings), names=names)) from None
    model = decided.model
    if model is None:
        return

    async def work(desk: "Moot") -> None:
        service = desk.llm_platform.config_service()
        if present.stored(model.alias):
            await service.update(model.alias, _changes(model))
        else:
            await service.create(model)

    at_desk(settings, work)


def _changes(model: ConfigBody) -> ConfigPatch:
    """What was answered; the rest of the stored model stays."""
    answered = {"base_url": model.config().base_url, "model_name": model.model_name, "api_key": model.api_key}
    return checked(ConfigPatch, {name: value for name, value in answered.items() if value is not None})


def _file(settings: Settings) -> Path:
    return settings.home.expanduser() / SETTINGS_FILE


def _show_present(ask: Questions, settings: Settings, present: Present) -> None:
    nothing = SAY("init.nothing")
    tushare = ["tushare"] if settings.tushare_token.get_secret_value() else []
    sources = [*tushare, *filter(None, settings.data_sources.split(","))]
    bocha, searxng = settings.bocha_api_key.get_secret_value(), settings.searxng_url
    ask.tell(
        "init.present",
        locale=ask.locale,
        models=[f"{view.alias} ({view.model_name})" for view in present.models] or nothing,
        sources=sources or nothing,
        search="Bocha" if bocha else "SearXNG" if searxng else nothing,
    )


def _show_end(ask: Questions, settings: Settings, decided: Decided, present: Present) -> None:
    if decided.settings:
        ask.tell("init.settings_in", file=_file(settings), names=list(decided.settings))
    for name in decided.settings:
        variable = f"MOOT_{name.upper()}"
        if os.environ.get(variable):
            ask.tell("init.environment_wins", variable=variable)
    if decided.model is not None:
        ask.tell("init.model_in", alias=decided.model.alias, database=present.database)
    if decided.dropped:
        ask.tell("init.model_dropped")
    if not decided.settings and decided.model is None:
        ask.tell("init.unchanged")
    ask.tell("init.home", home=settings.home.expanduser())
    ask.tell("init.next")
