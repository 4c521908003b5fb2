"""A language model the desk may call, what is known about it, and where such knowledge is kept."""

import re
from collections.abc import Collection, Sequence
from datetime import date
from ipaddress import ip_address
from typing import Annotated, Any, Literal, Protocol
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    Field,
    PlainSerializer,
    SecretStr,
    StrictBool,
    StringConstraints,
    model_validator,
)

from moot.modules.llm_platform.domain.exceptions import ConfigNotFound
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.clock import Day
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.messages import nearest, shorten
from moot.shared.domain.rate_limits import Rate
from moot.shared.domain.validation import Strict, name_kind, quote, refuse, refuse_field, suggest
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

DEFAULT_ALIAS = "default"
"""The model of `MOOT_LLM_BASE_URL`, `MOOT_LLM_API_KEY` and `MOOT_LLM_MODEL`."""
ENVIRONMENT = "environment"

PRINTABLE = r"^[^\x00-\x08\x0b-\x1f\x7f]*$"


def _words(most: int, *, least: int = 1) -> StringConstraints:
    return StringConstraints(strip_whitespace=True, min_length=least, max_length=most, pattern=PRINTABLE)


Alias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Vendor = Annotated[str, _words(50)]
ModelName = Annotated[str, _words(100)]
Description = Annotated[str, _words(2000, least=0)]
Tag = Annotated[str, _words(50)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Priority = Annotated[int, Field(ge=-10_000, le=10_000, strict=True)]
ContextSize = Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False, strict=True)]
AtOnce = Annotated[int, Field(ge=1, le=10_000, strict=True)]
PerMinute = Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)]

USUAL_TIMEOUT, LONG_TIMEOUT = 120.0, 600.0
THINKS = re.compile(r"(^|[^a-z0-9])(o\d|r\d|qwq|reason(er|ing)?|think(er|ing)?)($|[^a-z0-9])", re.IGNORECASE)
"""Names of models that think before they speak."""
PRIVATE_NAMES = ("localhost", ".localhost", ".local", ".internal", ".lan")


ProxyUrl = Annotated[str, PlainSerializer(lambda url: re.sub(r"//.*@", "//***@", url))]
"""May hold a user and a password; dumped, it does not show them."""


class Capabilities(BaseModel, frozen=True, extra="forbid"):
    """None: not known yet; the first refusal tells. A model without `max_tokens` knows `max_completion_tokens`."""

    json_schema: bool | None = None
    tools: bool | None = None
    temperature: bool | None = None
    max_tokens: bool | None = None


class ModelCard(BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """What anybody may see of a model. Of several models the one with the larger `priority` is asked first.

    Prices are per million tokens, in the desk's currency; without them a call's cost is unknown. `timeout` is for one
    request, `concurrency` how many may be under way at once; without them what is usual for such a model holds.
    `requests_per_minute` and `tokens_per_minute` are what all who share the database may ask of it together.
    `unreadable` names the fields that were encrypted with another secret: until they are entered again the model
    cannot be called. `public_only`: who said where it is has a key, so it must not be in the desk's own network.
    """

    id: UUID = Field(default_factory=uuid4)
    workspace_id: str = DEFAULT_WORKSPACE
    alias: Alias
    vendor: Vendor = "custom"
    provider_type: Literal["openai"] = "openai"
    base_url: str
    model_name: ModelName
    description: Description = ""
    priority: Priority = 1
    tags: list[Tag] = []
    price_in: Price | None = None
    price_out: Price | None = None
    context_size: ContextSize | None = None
    timeout: Seconds | None = None
    concurrency: AtOnce | None = None
    requests_per_minute: PerMinute | None = None
    tokens_per_minute: PerMinute | None = None
    knowledge_cutoff: date | None = None
    capabilities: Capabilities = Capabilities()
    is_active: bool = True
    public_only: bool = False
    unreadable: tuple[str, ...] = ()
    created_at: AwareDatetime | None = None
    updated_at: AwareDatetime | None = None

    @property
    def usable(self) -> bool:
        return self.is_active and not self.unreadable

    @property
    def seconds(self) -> float:
        """A model near by answers as fast as its machine can, and one that thinks takes its time."""
        slow = self._is_near or THINKS.search(self.model_name)
        return self.timeout or (LONG_TIMEOUT if slow else USUAL_TIMEOUT)

    @property
    def at_once(self) -> int | None:
        """None: as many as there are. A model near by has one machine, where two would only slow each other down."""
        return self.concurrency or (1 if self._is_near else None)

    @property
    def rate(self) -> Rate | None:
        """By the alias, which is the same in every process; None: it may be asked as often as anybody likes."""
        requests, tokens = self.requests_per_minute, self.tokens_per_minute
        name = f"model:{self.workspace_id}:{self.alias}"
        return Rate(name, requests, tokens) if requests or tokens else None

    @property
    def _is_near(self) -> bool:
        host = urlsplit(self.base_url).hostname or ""
        try:
            return not ip_address(host).is_global
        except ValueError:
            return "." not in host or host.endswith(PRIVATE_NAMES)


class LLMConfig(ModelCard):
    """Any OpenAI-compatible endpoint, with what it takes to call it. Printed or dumped it shows no secret."""

    api_key: SecretStr = SecretStr("")
    proxy: ProxyUrl | None = Field(default=None, repr=False)

    def cost(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """What so many tokens cost; None when the price or the count is not known."""
        if self.price_in is None or self.price_out is None:
            return None
        if prompt_tokens is None or completion_tokens is None:
            return None
        return (prompt_tokens * self.price_in + completion_tokens * self.price_out) / 1_000_000


class Preset(BaseModel, frozen=True):
    """An endpoint that needs no looking up: a name stands for where a vendor is reached and what it can do.

    `suggested_model` is a name to start with; None where the models are those you installed yourself.
    """

    name: str
    vendor: str
    base_url: str
    needs_key: bool = True
    suggested_model: str | None = None
    concurrency: int | None = None
    capabilities: Capabilities = Capabilities()


def _cloud(name: str, base_url: str, suggested_model: str | None = None, **can: bool) -> Preset:
    able = Capabilities(tools=True, **can)
    return Preset(
        name=name, vendor=name, base_url=base_url, suggested_model=suggested_model, capabilities=able
    )


def _local_preset(name: str, port: int, **more: int) -> Preset:
    """Servers that hold any model to a schema as it speaks; whether it uses tools depends on the model."""
    url, able = f"http://127.0.0.1:{port}/v1", Capabilities(json_schema=True)
    return Preset.model_validate(
        {"name": name, "vendor": name, "base_url": url, "needs_key": False, "capabilities": able, **more}
    )


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        _cloud("openai", "https://api.openai.com/v1", "gpt-4o-mini", json_schema=True),
        _cloud("deepseek", "https://api.deepseek.com/v1", "deepseek-chat", json_schema=False),
        _cloud("qwen", "https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen-plus"),
        _cloud("zhipu", "https://open.bigmodel.cn/api/paas/v4"),
        _cloud("moonshot", "https://api.moonshot.cn/v1"),
        _local_preset("ollama", 11434),
        _local_preset("vllm", 8000, concurrency=16),
        _local_preset("llamacpp", 8080),
    )
}


class SecretUnreadable(Unavailable, code="SECRET_UNREADABLE", passing=False):
    """Something was encrypted with another secret than the present one."""


def _strip(raw: Any) -> str:
    if not isinstance(raw, str):
        raise refuse("string_type", got=name_kind(raw))
    return raw.strip()


def _key(raw: Any) -> SecretStr:
    key = _strip(raw.get_secret_value() if isinstance(raw, SecretStr) else raw)
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise refuse("key_malformed")
    return SecretStr(key)


def _url(raw: Any) -> str:
    """May hold a user and a password."""
    text = _strip(raw)
    try:
        url = urlsplit(text)
        leads_somewhere = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        leads_somewhere = False
    if not leads_somewhere or not text.isprintable() or set(" ?#") & set(text):
        raise refuse("url_malformed")
    return text.rstrip("/")


def _endpoint(raw: Any) -> str:
    url = _url(raw)
    if "@" in urlsplit(url).netloc:
        raise refuse("url_with_credentials")
    return url


def _preset(raw: str) -> str:
    if raw not in PRESETS:
        raise refuse("literal_error", got=quote(raw), allowed=list(PRESETS))
    return raw


class ConfigPatch(Strict):
    """Only what is sent changes; a null puts a field back to its default."""

    vendor: Vendor | None = None
    provider_type: Literal["openai"] | None = None
    base_url: Annotated[str, BeforeValidator(_endpoint)] = Field(
        default="", description="an OpenAI-compatible endpoint, as https://api.openai.com/v1"
    )
    model_name: ModelName = ""
    api_key: Annotated[SecretStr, BeforeValidator(_key)] | None = None
    description: Description | None = None
    priority: Priority | None = Field(default=None, description="larger is asked first")
    tags: Annotated[list[Tag], Field(max_length=100)] | None = None
    price_in: Price | None = Field(default=None, description="per million tokens of a prompt")
    price_out: Price | None = Field(default=None, description="per million tokens of an answer")
    context_size: ContextSize | None = None
    timeout: Seconds | None = Field(default=None, description="seconds a request may take")
    concurrency: AtOnce | None = Field(default=None, description="requests at once; more wait for their turn")
    requests_per_minute: PerMinute | None = Field(
        default=None, description="of all processes together; more wait for their turn"
    )
    tokens_per_minute: PerMinute | None = Field(
        default=None, description="likewise; counted as what a call may use, then as what it used"
    )
    knowledge_cutoff: Day | None = None
    capabilities: Capabilities | None = None
    proxy: Annotated[ProxyUrl, BeforeValidator(_url)] | None = Field(
        default=None, repr=False, description="may hold a user and a password; stored encrypted"
    )
    is_active: StrictBool | None = None

    def dump_given(self) -> dict[str, Any]:
        sent = {name: getattr(self, name) for name in self.model_fields_set & LLMConfig.model_fields.keys()}
        return {name: value for name, value in sent.items() if value is not None}

    def apply_to(self, config: LLMConfig) -> LLMConfig:
        if set(config.unreadable) - self.model_fields_set:
            raise SecretUnreadable(SAY("config.enter_again", fields=config.unreadable))
        kept = {name: getattr(config, name) for name in LLMConfig.model_fields.keys() - self.model_fields_set}
        return LLMConfig(**kept | self.dump_given() | {"unreadable": ()})


FILLED = {"vendor", "base_url", "concurrency", "capabilities"}


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
            raise refuse_field("base_url_missing", "base_url", None, allowed=list(PRESETS))
        if PRESETS[self.preset].needs_key and not self.api_key:
            raise refuse_field("key_missing", "preset", self.preset)
        return self

    def config(self, workspace: str = DEFAULT_WORKSPACE) -> LLMConfig:
        filled = PRESETS[self.preset].model_dump(include=FILLED) if self.preset else {}
        return LLMConfig(**filled | self.dump_given() | {"workspace_id": workspace})


class ConfigView(ModelCard):
    """A config as it is shown, secrets masked, limits as they hold. One of the `environment` is changed there."""

    api_key: str
    proxy: str | None
    source: Literal["stored", "environment"]

    @classmethod
    def of(cls, config: LLMConfig, source: Literal["stored", "environment"]) -> "ConfigView":
        key = config.api_key.get_secret_value()
        masked = f"{key[:3]}...{key[-4:]}" if len(key) >= 8 else key and "******"
        limits = {"timeout": config.seconds, "concurrency": config.at_once}
        return cls(**config.model_dump() | limits | {"api_key": masked, "source": source})


class ConfigRepository(Protocol):
    """Keeps configs, their secrets encrypted. An alias is unique within its workspace."""

    async def list(self) -> Sequence[LLMConfig]:
        """Those of all workspaces."""

    async def add(self, config: LLMConfig) -> None:
        """Raises `DuplicateConfig`."""

    async def update(self, config: LLMConfig, fields: Collection[str]) -> None:
        """Write those fields and no others; raises `ConfigNotFound`."""

    async def remove(self, config: LLMConfig) -> None:
        """Raises `ConfigNotFound`."""


def no_such_config(alias: str, known: Sequence[str] = ()) -> ConfigNotFound:
    said = SAY("config.not_found", alias=shorten(alias))
    return ConfigNotFound(suggest(said, nearest(alias, known)))
