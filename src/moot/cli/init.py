"""`moot init`: sets a desk up by asking. Nothing is written before the last question is answered."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moot.cli.init_steps import (
    Changes,
    Given,
    Present,
    Questions,
    choose_data,
    choose_locale,
    choose_model,
    choose_search,
)
from moot.cli.llm import BaseUrl, KeyEnv, ModelName, Preset, Trial, show_trial, try_plain
from moot.cli.options import option
from moot.cli.outcome import at_desk, command
from moot.cli.texts import SAY, environment_locale, say
from moot.modules.llm_platform.application.config_service import ConfigBody, ConfigPatch
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.validation import checked
from moot.shared.infrastructure.settings import Settings
from moot.shared.infrastructure.settings_file import SETTINGS_FILE, NotSimple, change_settings

if TYPE_CHECKING:
    from moot.desk import Moot

init = typer.Typer(add_completion=False)


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
    locale = choose_locale(ask, given)
    ask.locale = locale or ask.locale
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
        model = choose_model(ask, given, present)
    elif given.a_model:
        raise Unavailable(SAY("init.nothing_stored"))
    else:
        ask.tell("init.nothing_stored")
    if model is not None and not _works(ask, settings, model):
        dropped = not ask.sure("init.keep_failing")
    changes = choose_data(ask, given, settings.data_sources)
    if "tushare_token" in changes:
        ask.tell("init.token_untested")
    return Decided(changes | choose_search(ask, given), None if dropped else model, dropped)


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
