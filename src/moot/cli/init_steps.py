"""The questions of `moot init`. Each step gives what it wants changed; none of them writes anything."""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TypeVar
from urllib.parse import urlsplit

import typer

from moot.cli.options import ask_secret, secret_in
from moot.cli.texts import SAY
from moot.modules.llm_platform.application.config_service import PRESETS, ConfigBody, ConfigView
from moot.shared.domain.errors import AppError, InvalidInput
from moot.shared.domain.messages import LOCALES, Locale, Message
from moot.shared.domain.validation import checked

T = TypeVar("T")

OTHER = "other"
OTHER_ALIAS = "custom"
LAST_PRIORITY = 10_000
BY_REQUEST = ("akshare", "yfinance")
SEARCHES = ("bocha", "searxng")

Changes = dict[str, str | None]
"""Settings by name; None removes one."""


class Questions:
    """Asks a person, in `locale`; Enter skips. `silent`: nobody is there, so every question counts as skipped."""

    def __init__(self, locale: Locale, *, silent: bool) -> None:
        self.locale: Locale = locale
        self.silent = silent

    def tell(self, key: str, /, **values: object) -> None:
        typer.echo(SAY(key, **values).in_locale(self.locale))

    def complain(self, error: AppError) -> None:
        self.tell("error", message=error.in_locale(self.locale))

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
        for option in fields(self):
            value, allowed = getattr(self, option.name), known.get(option.name)
            if value is not None and allowed and value not in allowed:
                raise InvalidInput(SAY("init.unknown", option=option.name, value=value, allowed=allowed))

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


def choose_locale(ask: Questions, given: Given) -> Locale | None:
    chosen = given.locale or ask.choice("init.ask_locale", {"zh-CN": "中文", "en-US": "English"})
    return next((known for known in LOCALES if known == chosen), None)


def choose_model(ask: Questions, given: Given, present: Present) -> ConfigBody | None:
    return _until_possible(ask, given.a_model, lambda: _model(ask, given, present))


def choose_data(ask: Questions, given: Given, sources: str) -> Changes:
    """`sources` are those asked for so far, by comma."""
    fixed = bool(given.data or given.tushare_token_env)
    return _until_possible(ask, fixed, lambda: _data(ask, given, sources))


def choose_search(ask: Questions, given: Given) -> Changes:
    return _until_possible(ask, bool(given.search), lambda: _search(ask, given))


def _until_possible(ask: Questions, fixed: bool, step: Callable[[], T]) -> T:
    """A person who entered something impossible is told, and asked again; options are not asked about."""
    while True:
        try:
            return step()
        except InvalidInput as e:
            if ask.silent or fixed:
                raise
            ask.complain(e)


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
    changes: Changes = {}
    if given.tushare_token_env:
        changes["tushare_token"] = secret_in("--tushare-token-env", given.tushare_token_env)
    name = given.data
    if name is None and not changes:
        name = ask.choice("init.ask_data", {n: SAY(f"init.data.{n}") for n in ("tushare", *BY_REQUEST)})
    if name == "tushare":
        changes |= _if_answered("tushare_token", ask.secret("init.ask_token"))
    elif name is not None:
        changes["data_sources"] = _with_source(name, sources)
    return changes


def _with_source(name: str, sources: str) -> str:
    if importlib.util.find_spec(name) is None:
        raise InvalidInput(SAY("doctor.source_missing", name=name))
    known = [known for part in sources.split(",") if (known := part.strip())]
    return ",".join(dict.fromkeys([*known, name]))


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
