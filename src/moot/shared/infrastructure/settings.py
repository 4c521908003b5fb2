"""One tree of settings, read from `MOOT_*` environment variables. Defaults work on a fresh machine."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.messages import Locale


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="MOOT_", env_ignore_empty=True, frozen=True, extra="ignore")

    home: Path = Field(
        default_factory=lambda: Path.home() / ".moot", description="where Moot keeps its files"
    )
    database_url: str = Field(default="", description="SQLAlchemy URL; empty: an SQLite file in home")
    persistence: bool = Field(default=True, description="off: nothing is stored and session_id is empty")
    locale: Locale | None = Field(
        default=None, description="language of the command line and the SDK; empty: the terminal's"
    )
    node_timeout: float = Field(default=60.0, gt=0, description="seconds a node may take")
    judge_quorum: int = Field(
        default=2, ge=1, description="experts a verdict needs when more than two are asked"
    )
    tushare_token: SecretStr = Field(default=SecretStr(""), description="token of Tushare Pro, for A-shares")
    tushare_url: str = Field(default="https://api.tushare.pro", description="where Tushare Pro is reached")
    data_sources: str = Field(
        default="", description="more sources, by comma: akshare (A-shares), yfinance (US), each an extra"
    )
    data_files: Path | None = Field(
        default=None, description="a YAML that describes files of your own, as a source"
    )
    data_order: dict[str, list[str]] = Field(
        default_factory=dict, description='sources by dataset, as JSON: {"bars": ["akshare", "tushare"]}'
    )
    demo_seed: int = Field(default=1, description="seed of the synthetic demo market")
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @property
    def resolved_database_url(self) -> str:
        return self.database_url or f"sqlite:///{self.home.expanduser() / 'moot.db'}"


def load_settings() -> Settings:
    """Read the environment; say which variable is wrong, and why, when one is."""
    try:
        return Settings()
    except ValidationError as e:
        wrong = "; ".join(f"MOOT_{str(err['loc'][0]).upper()}: {err['msg']}" for err in e.errors())
        raise InvalidInput(wrong, code="SETTINGS_INVALID") from None
