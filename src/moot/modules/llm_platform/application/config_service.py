"""Managing the models: what may be entered, what is shown of it, and changes that take effect at once."""

import unicodedata
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    SecretStr,
    StrictBool,
    ValidationInfo,
    model_validator,
)

from moot.modules.llm_platform.application.model_registry import ModelRegistry
from moot.modules.llm_platform.domain.model_config import (
    ALIAS,
    PRESETS,
    Capabilities,
    ConfigRepository,
    ContextSize,
    LLMConfig,
    ModelCard,
    Preset,
    Price,
    Priority,
    ProxyUrl,
    SecretUnreadable,
    no_such_config,
)
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.validation import Strict, refuse
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

__all__ = ["PRESETS", "ConfigBody", "ConfigPatch", "ConfigService", "ConfigView", "Preset"]


def _wrong(field: str | None, problem: str, **said: Any) -> InvalidInput:
    """Never quotes what was entered: it may be, or hold, a secret."""
    message = SAY(f"config.{problem}", field=field, **said)
    return InvalidInput(message, errors=[{"field": field, "problem": problem, "hint": str(message)}])


def _unquoted(raw: Any) -> str:
    """Text, stripped. What is not text is refused without quoting it."""
    if not isinstance(raw, str):
        raise refuse("string_type", got=type(raw).__name__)
    return raw.strip()


def _words(limit: int, *, may_be_empty: bool = False) -> AfterValidator:
    def check(raw: str, info: ValidationInfo) -> str:
        words = raw.strip()
        if not words and not may_be_empty:
            raise refuse("blank")
        if len(words) > limit:
            raise _wrong(info.field_name, "too_long", limit=limit)
        if any(unicodedata.category(char) == "Cc" and char not in "\n\t" for char in words):
            raise _wrong(info.field_name, "unprintable")
        return words

    return AfterValidator(check)


def _alias(raw: str) -> str:
    if not ALIAS.fullmatch(raw):
        raise _wrong("alias", "alias_malformed")
    return raw


def _key(raw: Any) -> SecretStr:
    key = _unquoted(raw.get_secret_value() if isinstance(raw, SecretStr) else raw)
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise _wrong("api_key", "key_malformed")
    return SecretStr(key)


def _url(raw: Any, info: ValidationInfo) -> str:
    text = _unquoted(raw)
    if not _leads_somewhere(text):
        raise _wrong(info.field_name, "url_malformed")
    return text.rstrip("/")


def _leads_somewhere(text: str) -> bool:
    try:
        url = urlsplit(text)
        whole = bool(url.hostname) and url.port != 0
    except ValueError:
        return False
    plain = text.isprintable() and " " not in text and "?" not in text and "#" not in text
    return whole and plain and url.scheme in {"http", "https"}


def _no_credentials(url: str, info: ValidationInfo) -> str:
    if "@" in urlsplit(url).netloc:
        raise _wrong(info.field_name, "url_with_credentials")
    return url


def _tags(raw: list[str]) -> list[str]:
    return list(dict.fromkeys(raw))


def _day(raw: Any) -> date:
    try:
        return raw if type(raw) is date else date.fromisoformat(raw)
    except (TypeError, ValueError):
        raise refuse("date_malformed", got=repr(raw)[:80]) from None


def _preset(raw: str) -> str:
    if raw not in PRESETS:
        raise refuse("literal_error", got=repr(raw)[:80], allowed=list(PRESETS))
    return raw


EXACT = Field(strict=True)
ModelName = Annotated[str, _words(100)]
Tag = Annotated[str, _words(50)]


class ConfigPatch(Strict):
    """Only what is sent changes; a null puts a field back to its default."""

    vendor: Annotated[str, _words(50)] | None = None
    provider_type: Literal["openai"] | None = None
    base_url: Annotated[str, BeforeValidator(_url), AfterValidator(_no_credentials)] = Field(
        default="", description="an OpenAI-compatible endpoint, as https://api.openai.com/v1"
    )
    model_name: ModelName = ""
    api_key: Annotated[SecretStr, BeforeValidator(_key)] | None = None
    description: Annotated[str, _words(2000, may_be_empty=True)] | None = None
    priority: Annotated[Priority, EXACT] | None = Field(default=None, description="larger is asked first")
    tags: Annotated[list[Tag], AfterValidator(_tags)] | None = None
    price_in: Annotated[Price, EXACT] | None = Field(
        default=None, description="per million tokens of a prompt"
    )
    price_out: Annotated[Price, EXACT] | None = Field(
        default=None, description="per million tokens of an answer"
    )
    context_size: Annotated[ContextSize, EXACT] | None = None
    knowledge_cutoff: Annotated[date, BeforeValidator(_day)] | None = None
    capabilities: Capabilities | None = None
    proxy: Annotated[ProxyUrl, BeforeValidator(_url)] | None = Field(
        default=None, repr=False, description="may hold a user and a password; stored encrypted"
    )
    is_active: StrictBool | None = None

    @model_validator(mode="before")
    @classmethod
    def _an_object(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping | BaseModel):
            raise refuse("model_type", got=type(raw).__name__)
        return raw

    def given(self) -> dict[str, Any]:
        sent = {name: getattr(self, name) for name in self.model_fields_set & LLMConfig.model_fields.keys()}
        return {name: value for name, value in sent.items() if value is not None}

    def applied_to(self, config: LLMConfig) -> LLMConfig:
        if set(config.unreadable) - self.model_fields_set:
            raise SecretUnreadable(SAY("config.enter_again", fields=config.unreadable))
        kept = {name: getattr(config, name) for name in LLMConfig.model_fields.keys() - self.model_fields_set}
        return LLMConfig(**kept | self.given() | {"unreadable": ()})


class ConfigBody(ConfigPatch):
    """A new model. A preset stands in for vendor, endpoint and capabilities where they are not given."""

    alias: Annotated[str, AfterValidator(_alias)]
    model_name: ModelName
    preset: Annotated[str, AfterValidator(_preset)] | None = None

    @model_validator(mode="after")
    def _can_be_reached(self) -> "ConfigBody":
        if self.base_url:
            return self
        if self.preset is None:
            raise _wrong("base_url", "base_url_missing", presets=list(PRESETS))
        if PRESETS[self.preset].needs_key and not self.api_key:
            raise _wrong("api_key", "key_missing", preset=self.preset)
        return self

    def config(self, workspace: str = DEFAULT_WORKSPACE) -> LLMConfig:
        filled = PRESETS[self.preset].fills if self.preset else {}
        return LLMConfig(**filled | self.given() | {"workspace_id": workspace})


class ConfigView(ModelCard):
    """A config as it is shown, secrets masked. One of the `environment` is changed there."""

    api_key: str
    proxy: str | None
    source: Literal["stored", "environment"]

    @classmethod
    def of(cls, config: LLMConfig, source: Literal["stored", "environment"]) -> "ConfigView":
        key = masked(config.api_key.get_secret_value())
        return cls(**config.model_dump() | {"api_key": key, "source": source})


Views = list[ConfigView]


def masked(key: str) -> str:
    if len(key) < 8:
        return key and "******"
    return f"{key[:3]}...{key[-4:]}"


class ConfigService:
    """`repository` None: nothing is stored on this desk, and there is only what the environment says."""

    def __init__(self, repository: ConfigRepository | None, registry: ModelRegistry) -> None:
        self._repository, self._registry = repository, registry

    async def list(self, workspace: str = DEFAULT_WORKSPACE) -> Views:
        """All of them, switched off ones too; who is asked first comes first."""
        configs = await self._repository.list(workspace) if self._repository else ()
        stored = {config.alias: ConfigView.of(config, "stored") for config in configs}
        views = {alias: ConfigView.of(c, "environment") for alias, c in self._environment(workspace).items()}
        return sorted((views | stored).values(), key=lambda view: view.preference)

    async def get(self, alias: str, workspace: str = DEFAULT_WORKSPACE) -> ConfigView:
        if stored := await self._stored(alias, workspace):
            return ConfigView.of(stored, "stored")
        if config := self._environment(workspace).get(alias):
            return ConfigView.of(config, "environment")
        raise no_such_config(alias)

    async def create(self, body: ConfigBody, workspace: str = DEFAULT_WORKSPACE) -> ConfigView:
        """Raises `DuplicateConfig`. A model of the environment is no duplicate: the new one takes its place."""
        await self._writable.add(body.config(workspace))
        await self._registry.refresh()
        return await self.get(body.alias, workspace)

    async def update(self, alias: str, patch: ConfigPatch, workspace: str = DEFAULT_WORKSPACE) -> ConfigView:
        config = await self._changeable(alias, workspace)
        await self._writable.update(patch.applied_to(config), patch.model_fields_set)
        await self._registry.refresh()
        return await self.get(alias, workspace)

    async def remove(self, alias: str, workspace: str = DEFAULT_WORKSPACE) -> None:
        await self._changeable(alias, workspace)
        await self._writable.remove(alias, workspace)
        await self._registry.refresh()

    async def refresh(self, workspace: str = DEFAULT_WORKSPACE) -> Views:
        await self._registry.refresh()
        return await self.list(workspace)

    @property
    def _writable(self) -> ConfigRepository:
        if self._repository is None:
            raise Unavailable(SAY("config.nothing_stored"), code="PERSISTENCE_OFF")
        return self._repository

    async def _stored(self, alias: str, workspace: str) -> LLMConfig | None:
        if self._repository is None or not ALIAS.fullmatch(alias):
            return None
        return await self._repository.get(alias, workspace)

    async def _changeable(self, alias: str, workspace: str) -> LLMConfig:
        if stored := await self._stored(alias, workspace):
            return stored
        if alias in self._environment(workspace):
            raise InvalidInput(SAY("config.of_environment", alias=alias))
        raise no_such_config(alias)

    def _environment(self, workspace: str) -> dict[str, LLMConfig]:
        return {c.alias: c for c in self._registry.defaults if c.workspace_id == workspace}
