"""`moot init`: sets a desk up by asking. Nothing is written before the last question is answered."""

import importlib.util
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import urlsplit

import typer

from moot.cli.command import at_desk, command
from moot.cli.llm import BaseUrl, KeyEnv, ModelName, Preset, show_trial
from moot.cli.options import ask_secret, check_typed, option, secret_in
from moot.cli.texts import SAY, environment_locale
from moot.cli.upkeep import list_sources, name_search
from moot.modules.llm_platform.application.config_service import PRESETS, ConfigBody, ConfigPatch, ConfigView
from moot.modules.llm_platform.application.trial import Trial, try_model
from moot.modules.market_data.application.sync import BY_REQUEST
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.messages import LANGUAGES, LOCALES, Locale, Message, locale_of
from moot.shared.infrastructure.home import SETTINGS_FILE, NotSimple, change_settings
from moot.shared.infrastructure.settings import Settings, split_names

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
        locale = self._given["locale"] or self._choose("init.ask_locale", LANGUAGES)
        self._locale = locale_of(locale) if locale else self._locale
        self._show_present()
        model = self._until_possible(self._model, *A_MODEL)
        dropped = model is not None and not self._will_do(model)
        changes = self._until_possible(self._data, "data", "tushare_token_env")
        if "tushare_token" in changes:
            self._tell("init.token_untested")
        changes |= self._until_possible(self._search, "search")
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

    def _ask(self, key: str, default: str = "", *, secret: bool = False) -> str:
        """What is answered; the default, which is shown, when nothing is."""
        if self._silent:
            return default
        question = SAY(key).in_locale(self._locale)
        if secret:
            return ask_secret(question)
        return str(typer.prompt(question, default=default, show_default=bool(default))).strip()

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

    def _until_possible(self, step: Callable[[], T], *options: str) -> T:
        """A person who entered something impossible is told, and asked again; options are not asked about."""
        fixed = self._silent or any(self._given[name] for name in options)
        while True:
            try:
                return step()
            except InvalidInput as e:
                if fixed:
                    raise
                self._tell("error", message=e.in_locale(self._locale))

    def _show_present(self) -> None:
        there = {
            "models": [f"{view.alias} ({view.model_name})" for view in self._present],
            "sources": list_sources(self._settings),
            "search": name_search(self._settings),
        }
        said = {name: value or SAY("init.nothing") for name, value in there.items()}
        self._tell("init.present", locale=self._locale, **said)

    def _model(self) -> ConfigBody | None:
        given = self._given
        if self._database is None:
            if self._names_a_model:
                raise Unavailable(SAY("init.nothing_stored"))
            self._tell("init.nothing_stored")
            return None
        endpoints = {name: preset.base_url for name, preset in PRESETS.items()} | {OTHER: SAY("init.other")}
        chosen = given["preset"] or (
            OTHER if self._names_a_model else self._choose("init.ask_model", endpoints)
        )
        if chosen is None:
            return None
        preset = PRESETS.get(chosen)
        alias = chosen if preset else OTHER_ALIAS
        suggested = (preset.suggested_model if preset else None) or ""
        return check_typed(
            ConfigBody,
            alias=alias,
            preset=preset.name if preset else None,
            base_url=given["base_url"] or (None if preset else self._ask("init.ask_url")) or None,
            model_name=given["model"] or self._ask("init.ask_name", suggested) or None,
            api_key=self._key(alias, asked=not preset or preset.needs_key) or None,
            priority=min(1 + max((view.priority for view in self._present), default=0), LAST_PRIORITY),
        )

    def _key(self, alias: str, *, asked: bool) -> str:
        stored = self._keys.get(alias, "")
        if not asked and not self._given["key_env"]:
            return stored
        return self._secret("key_env", "init.ask_key_again" if stored else "llm.ask_key") or stored

    def _secret(self, option: str, question: str) -> str:
        """In the environment variable that the option names, or else what is answered."""
        variable = self._given[option]
        name = f"--{option.replace('_', '-')}"
        return secret_in(name, variable) if variable else self._ask(question, secret=True)

    def _will_do(self, model: ConfigBody) -> bool:
        """One real call, to a model that nobody but this process knows yet; who wants one that fails can have it."""
        config = model.config().model_copy(update={"alias": f"{model.alias}.trial"})

        async def work(desk: "Moot") -> Trial:
            registry = desk.llm_platform.registry
            registry.defaults = (*registry.defaults, config)
            await registry.refresh()
            return await try_model(desk.llm_platform.llm_service(), config.alias, "plain", caller="cli")

        self._tell("llm.testing", alias=model.alias, model=model.model_name)
        trial = at_desk(self._settings, work)
        show_trial("plain", trial, self._settings.currency, self._locale)
        if trial.problem is None or self._silent:
            return trial.problem is None
        return typer.confirm(SAY("init.keep_failing").in_locale(self._locale))

    def _data(self) -> Changes:
        name, with_token = self._given["data"], bool(self._given["tushare_token_env"])
        if name is None and not with_token:
            choices = {name: SAY(f"init.data.{name}") for name in ("tushare", *BY_REQUEST)}
            name = self._choose("init.ask_data", choices)
        changes: Changes = {}
        if with_token or name == "tushare":
            token = self._secret("tushare_token_env", "init.ask_token")
            changes = self._change("tushare_token", token, "--tushare-token-env")
        if name in BY_REQUEST:
            if importlib.util.find_spec(name) is None:
                raise InvalidInput(SAY("doctor.source_missing", name=name))
            known = split_names(self._settings.data_sources)
            changes["data_sources"] = ",".join(dict.fromkeys([*known, name]))
        return changes

    def _search(self) -> Changes:
        given, choices = self._given, {name: SAY(f"init.search.{name}") for name in SEARCHES}
        name = given["search"] or self._choose("init.ask_search", choices)
        if name == "bocha":
            key = self._secret("search_key_env", "init.ask_bocha")
            return self._change("bocha_api_key", key, "--search-key-env")
        if name == "searxng":
            url = given["search_url"] or self._ask("init.ask_searxng")
            if url and not (urlsplit(url).scheme in {"http", "https"} and urlsplit(url).hostname):
                raise InvalidInput(SAY("init.no_address", url=url))
            chosen = self._change("searxng_url", url, "--search-url")
            return {**chosen, "bocha_api_key": None} if chosen else {}  # Bocha goes first while it has a key
        return {}

    def _change(self, setting: str, answer: str, option: str) -> Changes:
        """Nothing where a person skips it; where there is none, the option should have given the answer."""
        if not answer and self._silent:
            raise InvalidInput(SAY("init.option_missing", option=option))
        return {setting: answer} if answer else {}

    def _write(self, changes: Changes, model: ConfigBody | None) -> None:
        if changes:
            told = {"file": self._file, "names": list(changes)}
            try:
                change_settings(self._file, changes)
            except NotSimple:
                raise InvalidInput(SAY("init.by_hand", **told)) from None
            self._tell("init.settings_in", **told)
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
