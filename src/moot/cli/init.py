"""`moot init`: sets a desk up by asking. Nothing is written before the last question is answered."""

import importlib.util
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import urlsplit

import typer

from moot.cli.llm import BaseUrl, KeyEnv, ModelName, Preset, Trial, show_trial, try_plain
from moot.cli.options import ask_secret, check_typed, option, secret_in
from moot.cli.outcome import at_desk, command
from moot.cli.texts import SAY, environment_locale
from moot.modules.llm_platform.application.config_service import PRESETS, ConfigBody, ConfigPatch, ConfigView
from moot.modules.market_data.application.sync import BY_REQUEST
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.messages import LOCALES, Locale, Message, locale_of
from moot.shared.infrastructure.settings import Settings
from moot.shared.infrastructure.settings_file import SETTINGS_FILE, NotSimple, change_settings

if TYPE_CHECKING:
    from moot.desk import Moot

T = TypeVar("T")

OTHER = "other"
OTHER_ALIAS = "custom"
LAST_PRIORITY = 10_000
SEARCHES = ("bocha", "searxng")
ALLOWED = {"locale": LOCALES, "preset": tuple(PRESETS), "data": BY_REQUEST, "search": SEARCHES}
A_MODEL = ("preset", "base_url", "model", "key_env")

Changes = dict[str, str | None]
"""Settings by name; None removes one."""
Given = Mapping[str, str | None]
"""What the options answer already, by their names."""


def init(
    locale: Annotated[str | None, option("help.init_locale", told={"locales": LOCALES})] = None,
    preset: Preset = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    key_env: KeyEnv = None,
    tushare_token_env: Annotated[str | None, option("help.init_token_env", metavar="VAR")] = None,
    data: Annotated[str | None, option("help.init_data")] = None,
    search: Annotated[str | None, option("help.init_search")] = None,
    search_key_env: Annotated[str | None, option("help.init_search_key", metavar="VAR")] = None,
    search_url: Annotated[str | None, option("help.init_search_url")] = None,
    yes: Annotated[bool, option("help.init_yes", "--yes")] = False,
) -> None:
    given: Given = {name: value for name, value in locals().items() if name != "yes"}
    with command() as settings:
        for name, allowed in ALLOWED.items():
            if (value := given[name]) is not None and value not in allowed:
                raise InvalidInput(SAY("init.unknown", option=name, value=value, allowed=allowed))
        Interview(settings, given, silent=yes).hold()


class Interview:
    """Asks a person what is not `given`; Enter skips. `silent`: nobody is there, so every question is skipped."""

    def __init__(self, settings: Settings, given: Given, *, silent: bool) -> None:
        self._settings, self._given, self._silent = settings, given, silent
        self._names_a_model = any(given[name] for name in A_MODEL)
        self._locale: Locale = environment_locale()
        self._file = settings.home.expanduser() / SETTINGS_FILE
        self._present: list[ConfigView] = []
        self._keys: dict[str, str] = {}
        self._database: str | None = None

    def hold(self) -> None:
        at_desk(self._settings, self._look_around)
        if not self._silent:
            self._tell("init.welcome")
        locale = self._given["locale"] or self._choose(
            "init.ask_locale", {"zh-CN": "中文", "en-US": "English"}
        )
        self._locale = locale_of(locale) if locale else self._locale
        self._show_present()
        model = self._agree_on_a_model()
        dropped = model is not None and not self._works(model) and not self._is_sure("init.keep_failing")
        changes = self._until_possible(
            self._data, bool(self._given["data"] or self._given["tushare_token_env"])
        )
        if "tushare_token" in changes:
            self._tell("init.token_untested")
        changes |= self._until_possible(self._search, bool(self._given["search"]))
        if locale:
            changes["locale"] = locale
        self._write(changes, None if dropped else model)
        if dropped:
            self._tell("init.model_dropped")
        self._tell("init.home", home=self._settings.home.expanduser())
        self._tell("init.next")
        if dropped:
            raise typer.Exit(1)

    async def _look_around(self, desk: "Moot") -> None:
        self._present = await desk.llm_platform.config_service().list()
        self._database = desk.database.safe_url if desk.database else None
        with suppress(Unavailable):  # no model can be called
            candidates = desk.llm_platform.llm_service().candidates()
            self._keys = {config.alias: config.api_key.get_secret_value() for config in candidates}

    def _tell(self, key: str, /, **values: object) -> None:
        typer.echo(SAY(key, **values).in_locale(self._locale))

    def _ask(self, key: str, default: str | None = None) -> str:
        """What is answered; the default, which is shown, when nothing is."""
        if self._silent:
            return default or ""
        question = SAY(key).in_locale(self._locale)
        answer: str = typer.prompt(question, default=default or "", show_default=bool(default))
        return answer.strip()

    def _ask_secret(self, key: str) -> str:
        return "" if self._silent else ask_secret(SAY(key).in_locale(self._locale))

    def _is_sure(self, key: str) -> bool:
        return not self._silent and typer.confirm(SAY(key).in_locale(self._locale))

    def _choose(self, key: str, choices: Mapping[str, str | Message]) -> str | None:
        """One of `choices`, which are names with what they mean, by its number or name; None when skipped."""
        if self._silent:
            return None
        for number, (name, meaning) in enumerate(choices.items(), 1):
            said = meaning if isinstance(meaning, str) else meaning.in_locale(self._locale)
            typer.echo(f"  {number}  {name:<10} {said}")
        by_number = {str(number): name for number, name in enumerate(choices, 1)}
        while answer := self._ask(key):
            chosen = by_number.get(answer, answer)
            if chosen in choices:
                return chosen
            self._tell("init.not_a_choice", answer=answer)
        return None

    def _until_possible(self, step: Callable[[], T], fixed: bool) -> T:
        """A person who entered something impossible is told, and asked again; options are not asked about."""
        while True:
            try:
                return step()
            except InvalidInput as e:
                if self._silent or fixed:
                    raise
                self._tell("error", message=e.in_locale(self._locale))

    def _show_present(self) -> None:
        settings, nothing = self._settings, SAY("init.nothing")
        tushare = ["tushare"] if settings.tushare_token.get_secret_value() else []
        bocha = settings.bocha_api_key.get_secret_value()
        self._tell(
            "init.present",
            locale=self._locale,
            models=[f"{view.alias} ({view.model_name})" for view in self._present] or nothing,
            sources=[*tushare, *filter(None, settings.data_sources.split(","))] or nothing,
            search="Bocha" if bocha else "SearXNG" if settings.searxng_url else nothing,
        )

    def _agree_on_a_model(self) -> ConfigBody | None:
        if self._database is not None:
            return self._until_possible(self._model, self._names_a_model)
        if self._names_a_model:
            raise Unavailable(SAY("init.nothing_stored"))
        self._tell("init.nothing_stored")
        return None

    def _model(self) -> ConfigBody | None:
        given = self._given
        endpoints = {name: preset.base_url for name, preset in PRESETS.items()} | {OTHER: SAY("init.other")}
        chosen = given["preset"] or (
            OTHER if self._names_a_model else self._choose("init.ask_model", endpoints)
        )
        if chosen is None:
            return None
        preset = PRESETS.get(chosen)
        alias = chosen if preset else OTHER_ALIAS
        suggested = preset.suggested_model if preset else None
        return check_typed(
            ConfigBody,
            alias=alias,
            preset=preset.name if preset else None,
            base_url=given["base_url"] or (None if preset else self._ask("init.ask_url")) or None,
            model_name=given["model"] or self._ask("init.ask_name", suggested) or None,
            api_key=self._key(self._keys.get(alias, ""), asked=not preset or preset.needs_key) or None,
            priority=min(1 + max((view.priority for view in self._present), default=0), LAST_PRIORITY),
        )

    def _key(self, stored: str, *, asked: bool) -> str:
        if self._given["key_env"]:
            return secret_in("--key-env", self._given["key_env"])
        question = "init.ask_key_again" if stored else "llm.ask_key"
        return (self._ask_secret(question) if asked else "") or stored

    def _works(self, model: ConfigBody) -> bool:
        """One real call, to a model that nobody but this process knows yet."""
        config = model.config().model_copy(update={"alias": f"{model.alias}.trial"})

        async def work(desk: "Moot") -> Trial:
            registry = desk.llm_platform.registry
            registry.defaults = (*registry.defaults, config)
            await registry.refresh()
            return await try_plain(desk.llm_platform.llm_service(), config.alias)

        self._tell("llm.testing", alias=model.alias, model=model.model_name)
        trial = at_desk(self._settings, work)
        show_trial("plain", trial, self._settings.currency, self._locale)
        return trial.problem is None

    def _data(self) -> Changes:
        given = self._given
        changes: Changes = {}
        if given["tushare_token_env"]:
            changes["tushare_token"] = secret_in("--tushare-token-env", given["tushare_token_env"])
        name = given["data"]
        if name is None and not changes:
            choices = {name: SAY(f"init.data.{name}") for name in ("tushare", *BY_REQUEST)}
            name = self._choose("init.ask_data", choices)
        if name == "tushare":
            changes |= _if_answered("tushare_token", self._ask_secret("init.ask_token"))
        elif name is not None:
            if importlib.util.find_spec(name) is None:
                raise InvalidInput(SAY("doctor.source_missing", name=name))
            known = [part.strip() for part in self._settings.data_sources.split(",") if part.strip()]
            changes["data_sources"] = ",".join(dict.fromkeys([*known, name]))
        return changes

    def _search(self) -> Changes:
        given, choices = self._given, {name: SAY(f"init.search.{name}") for name in SEARCHES}
        name = given["search"] or self._choose("init.ask_search", choices)
        if name == "bocha":
            variable = given["search_key_env"]
            key = secret_in("--search-key-env", variable) if variable else self._ask_secret("init.ask_bocha")
            return _if_answered("bocha_api_key", key, "--search-key-env" if self._silent else None)
        if name == "searxng":
            url = given["search_url"] or self._ask("init.ask_searxng")
            if url and not (urlsplit(url).scheme in {"http", "https"} and urlsplit(url).hostname):
                raise InvalidInput(SAY("init.no_address", url=url))
            chosen = _if_answered("searxng_url", url, "--search-url" if self._silent else None)
            return {**chosen, "bocha_api_key": None} if chosen else {}  # Bocha goes first while it has a key
        return {}

    def _write(self, changes: Changes, model: ConfigBody | None) -> None:
        if changes:
            names = list(changes)
            try:
                change_settings(self._file, changes)
            except NotSimple:
                raise InvalidInput(SAY("init.by_hand", file=self._file, names=names)) from None
            self._tell("init.settings_in", file=self._file, names=names)
        for variable in (f"MOOT_{name.upper()}" for name in changes):
            if os.environ.get(variable):
                self._tell("init.environment_wins", variable=variable)
        if model is not None:
            at_desk(self._settings, lambda desk: self._store(desk, model))
            self._tell("init.model_in", alias=model.alias, database=self._database)
        elif not changes:
            self._tell("init.unchanged")

    async def _store(self, desk: "Moot", model: ConfigBody) -> None:
        """Of a model that is stored already, what was not answered stays."""
        service = desk.llm_platform.config_service()
        if not any(view.alias == model.alias and view.source == "stored" for view in self._present):
            await service.create(model)
            return
        url, name, key = model.config().base_url, model.model_name, model.api_key
        patch = check_typed(ConfigPatch, base_url=url, model_name=name, api_key=key)
        await service.update(model.alias, patch)


def _if_answered(setting: str, answer: str, required: str | None = None) -> Changes:
    """`required` names the option that should have given the answer."""
    if not answer and required:
        raise InvalidInput(SAY("init.option_missing", option=required))
    return {setting: answer} if answer else {}
