"""One tree of settings: `MOOT_*` environment variables, then `settings.toml` in Moot's home, then defaults.

The defaults work on a fresh machine; `moot init` writes the file.
"""

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Locale
from moot.shared.domain.texts import SAY
from moot.shared.domain.validation import invalid_input
from moot.shared.infrastructure.home import SETTINGS_FILE, read_settings

Seconds = Annotated[float, Field(gt=0)]
Price = Annotated[float, Field(ge=0)]
Cost = Annotated[float, Field(gt=0, le=10**9)]
Tokens = Annotated[int, Field(gt=0, le=10**15)]
Count = Annotated[int, Field(ge=1)]


def default_home() -> Path:
    return Path.home() / ".moot"


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="MOOT_", env_ignore_empty=True, frozen=True, extra="forbid")

    home: Path = Field(default_factory=default_home)  # where Moot keeps its files
    database_url: str = ""  # SQLAlchemy URL; empty: an SQLite file in home
    persistence: bool = True  # off: nothing is stored and session_id is empty
    locale: Locale | None = None  # language of the command line and the SDK; empty: the terminal's
    node_timeout: Seconds | None = None  # seconds a node may take; empty: 60 beside its model calls
    optional_nodes: str = ""
    """What is left out when it fails, by comma: experts, debate, judge, or steps of a plan by type."""
    open: bool = False  # over HTTP this machine needs no key, even where there are keys
    private_urls: bool = False  # key holders may add models at private addresses of this network
    max_sessions: Count = 256  # sessions a process runs at once
    max_waiting: int = Field(256, ge=0)
    """Callers that may wait for their turn; more are refused for now (429)."""
    worker: bool = True  # off: what runs in the background waits for a `moot worker` of its own
    worker_sessions: Count = 8  # sessions every worker takes from the queue at once; the last to start says
    lease_seconds: float = Field(8.0, ge=1)
    """How long a silent process keeps its sessions before others take over."""
    shutdown_grace: float = Field(25.0, ge=0)
    """Seconds `moot serve` lets its sessions end when it is told to stop."""
    judge_quorum: Count = 2  # experts a verdict needs when more than two are asked
    calibration: Path | None = None  # a JSON table of what weights have been worth: verdicts get a forecast
    llm_base_url: str = ""  # an OpenAI-compatible endpoint: the model `default`
    llm_api_key: SecretStr = SecretStr("")  # its key, if it wants one
    llm_model: str = ""  # the name of its model
    llm_price_in: Price | None = None  # price of a million prompt tokens of that model
    llm_price_out: Price | None = None  # price of a million completion tokens of that model
    llm_proxy: str = ""  # HTTP proxy on the way to that model
    llm_timeout: Seconds | None = None  # seconds a request to it may take; empty: 120, local or thinking 600
    llm_concurrency: Count | None = None  # requests to it at once; empty: 1 if it is local, else no limit
    llm_requests_per_minute: Count | None = None  # requests to it a minute, of all processes together
    llm_tokens_per_minute: Tokens | None = None  # tokens it may use a minute, likewise
    llm_deadline: Seconds | None = None  # seconds any model call may take, with all retries and waiting
    llm_max_tokens: Count = 4096  # tokens an agent's answer may have
    analyst: Literal["auto", "rubric", "llm"] = "auto"
    """Who judges: `auto` is a model when one is configured, else rules."""
    analyst_fallback: Literal["none", "rubric"] = "none"
    """`rubric`: rules judge where a model failed, and the result says so."""
    min_grounding: float = Field(0.8, ge=0, le=1)
    """Share of a model's numbers that must stand in its evidence."""
    goal_alignment: Literal["words", "embeddings", "model"] = "words"
    """What tells how well an agent's action serves its goal: `embeddings` is an extra."""
    plan_repairs: int = Field(2, ge=0, le=10)  # times `moot ask` makes a plan anew that the rules reject
    currency: str = "CNY"  # currency of prices, budgets and costs
    budget_session_tokens: Tokens | None = None  # tokens a session may use
    budget_session_cost: Cost | None = None  # what a session may cost
    budget_day_tokens: Tokens | None = None  # tokens a workspace may use in a UTC day
    budget_day_cost: Cost | None = None  # what a workspace may cost in a day
    audit: Literal["best_effort", "strict"] = "best_effort"
    """`strict`: a call that cannot be recorded is not made."""
    audit_key: SecretStr = SecretStr("")
    """Signs the ends of records; keep it away from the database. Empty: they are not signed."""
    secret_key: SecretStr = SecretStr("")
    """Encrypts stored keys; empty: a file in home that only you can read."""
    bocha_api_key: SecretStr = SecretStr("")  # key of Bocha web search
    bocha_url: str = "https://api.bochaai.com"  # where Bocha is reached
    searxng_url: str = ""  # a SearXNG instance, for web search without a key
    tushare_token: SecretStr = SecretStr("")  # token of Tushare Pro, for A-shares
    tushare_url: str = "https://api.tushare.pro"  # where Tushare Pro is reached
    data_sources: str = ""  # more sources, by comma: akshare (A-shares), yfinance (US), each an extra
    data_files: Path | None = None  # a YAML that describes files of your own, as a source
    data_order: dict[str, list[str]] = Field(default_factory=dict)
    """Sources by dataset, as JSON: {"bars": ["akshare", "tushare"]}."""
    data_requests_per_minute: dict[str, Count] = Field(default_factory=dict)
    """By source, of all processes together, as JSON: {"tushare": 500}."""
    demo_seed: int = 1  # seed of the synthetic demo market
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @property
    def resolved_database_url(self) -> str:
        return self.database_url or f"sqlite:///{self.home.expanduser() / 'moot.db'}"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        home = init_settings().get("home") or env_settings().get("home") or default_home()
        file = Path(home).expanduser() / SETTINGS_FILE
        return init_settings, env_settings, InitSettingsSource(settings_cls, read_settings(file))


def split_names(text: str) -> list[str]:
    """What a setting lists, separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def load_settings() -> Settings:
    """Read the environment and the file; say which setting is wrong, and why, when one is."""
    try:
        return Settings()
    except tomllib.TOMLDecodeError as e:
        raise InvalidInput(SAY("settings_unreadable", reason=e), code="SETTINGS_INVALID") from None
    except SettingsError as e:  # from a source that reads JSON; it names the setting in its own words only
        name = str(e).partition('"')[2].partition('"')[0]
        said = SAY("invalid.json_invalid", field=f"MOOT_{name.upper()}", hint=e.__cause__)
        raise InvalidInput(said, code="SETTINGS_INVALID") from None
    except ValidationError as e:
        wrong = e.errors()
        for error in wrong:
            error["loc"] = (f"MOOT_{error['loc'][0]}".upper(), *error["loc"][1:])
        raise invalid_input(wrong, "SETTINGS_INVALID") from None
