"""Managing the models: what may be entered, what is shown of it, and changes that take effect at once."""

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, StrictBool, model_validator

from moot.modules.llm_platform.application.model_registry import ModelRegistry
from moot.modules.llm_platform.domain.model_config import (
    PRESETS,
    Alias,
    Capabilities,
    ConfigRepository,
    ContextSize,
    Description,
    LLMConfig,
    ModelCard,
    ModelName,
    Preset,
    Price,
    Priority,
    ProxyUrl,
    SecretUnreadable,
    Tag,
    Vendor,
    no_such_config,
)
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.moments import Day
from moot.shared.domain.validation import Strict, refuse, refused
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

__all__ = ["PRESETS", "ConfigBody", "ConfigPatch", "ConfigService", "ConfigView", "Preset"]


def _strip(raw: Any) -> str:
    if not isinstance(raw, str):
        raise refuse("string_type", got=type(raw).__name__)
    return raw.strip()


def _key(raw: Any) -> SecretStr:
    key = _strip(raw.get_secret_value() if isinstance(raw, SecretStr) else raw)
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise refuse("key_malformed")
    return SecretStr(key)


def _url(raw: Any) -> str:
    text = _strip(raw)
    if not _leads_somewhere(text):
        raise refuse("url_malformed")
    return text.rstrip("/")


def _leads_somewhere(text: str) -> bool:
    try:
        url = urlsplit(text)
        whole = bool(url.hostname) and url.port != 0
    except ValueError:
        return False
    plain = text.isprintable() and " " not in text and "?" not in text and "#" not in text
    return whole and plain and url.scheme in {"http", "https"}


def _no_credentials(url: str) -> str:
    if "@" in urlsplit(url).netloc:
        raise refuse("url_with_credentials")
    return url


def _preset(raw: str) -> str:
    if raw not in PRESETS:
        raise refuse("literal_error", got=repr(raw)[:80], allowed=list(PRESETS))
    return raw


class ConfigPatch(Strict):
    """Only what is sent changes; a null puts a field back to its default."""

    vendor: Vendor | None = None
    provider_type: Literal["openai"] | None = None
    base_url: Annotated[str, BeforeValidator(_url), AfterValidator(_no_credentials)] = Field(
        default="", description="an OpenAI-compatible endpoint, as https://api.openai.com/v1"
    )
    model_name: ModelName = ""
    api_key: Annotated[SecretStr, BeforeValidator(_key)] | None = None
    description: Description | None = None
    priority: Priority | None = Field(default=None, description="larger is asked first")
    tags: list[Tag] | None = None
    price_in: Price | None = Field(default=None, description="per million tokens of a prompt")
    price_out: Price | None = Field(default=None, description="per million tokens of an answer")
    context_size: ContextSize | None = None
    knowledge_cutoff: Day | None = None
    capabilities: Capabilities | None = None
    proxy: Annotated[ProxyUrl, BeforeValidator(_url)] | None = Field(
        default=None, repr=False, description="may hold a user and a password; stored encrypted"
    )
    is_active: StrictBool | None = None

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

    alias: Alias
    model_name: ModelName
    preset: Annotated[str, AfterValidator(_preset)] | None = None

    @model_validator(mode="after")
    def _can_be_reached(self) -> "ConfigBody":
        if self.base_url:
            return self
        if self.preset is None:
            raise refused("base_url_missing", "base_url", None, allowed=list(PRESETS))
        if PRESETS[self.preset].needs_key and not self.api_key:
            raise refused("key_missing", "preset", self.preset)
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
        """All of them as they are stored now, switched off ones too; who is asked first comes first."""
        await self._registry.refresh()
        return [
            ConfigView.of(config, "environment" if config in self._registry.defaults else "stored")
            for config in self._registry.known(workspace)
        ]

    async def get(self, alias: str, workspace: str = DEFAULT_WORKSPACE) -> ConfigView:
        for view in await self.list(workspace):
            if view.alias == alias:
                return view
        raise no_such_config(alias)

    async def create(self, body: ConfigBody, workspace: str = DEFAULT_WORKSPACE) -> ConfigView:
        """Raises `DuplicateConfig`. A model of the environment is no duplicate: the new one takes its place."""
        await self._writable.add(body.config(workspace))
        return await self.get(body.alias, workspace)

    async def update(self, alias: str, patch: ConfigPatch, workspace: str = DEFAULT_WORKSPACE) -> ConfigView:
        config = await self._changeable(alias, workspace)
        await self._writable.update(patch.applied_to(config), patch.model_fields_set)
        return await self.get(alias, workspace)

    async def remove(self, alias: str, workspace: str = DEFAULT_WORKSPACE) -> None:
        await self._writable.remove(await self._changeable(alias, workspace))
        await self._registry.refresh()

    @property
    def _writable(self) -> ConfigRepository:
        if self._repository is None:
            raise Unavailable(SAY("config.nothing_stored"), code="PERSISTENCE_OFF")
        return self._repository

    async def _changeable(self, alias: str, workspace: str) -> LLMConfig:
        view = await self.get(alias, workspace)
        if view.source == "environment":
            raise InvalidInput(SAY("config.of_environment", alias=alias))
        return next(config for config in self._registry.known(workspace) if config.alias == alias)
