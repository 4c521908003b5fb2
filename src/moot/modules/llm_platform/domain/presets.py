"""Endpoints that need no looking up: a name stands for where a vendor is reached and what it can do."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from moot.modules.llm_platform.domain.model_config import Capabilities


class Preset(BaseModel):
    """`suggested_model` is a name to start with; None where the models are those you installed yourself."""

    model_config = ConfigDict(frozen=True)

    name: str
    vendor: str
    base_url: str
    needs_key: bool = True
    suggested_model: str | None = None
    capabilities: Capabilities = Capabilities()

    @property
    def fills(self) -> dict[str, Any]:
        """The fields of a config it stands in for."""
        return {"vendor": self.vendor, "base_url": self.base_url, "capabilities": self.capabilities}


def _cloud(name: str, base_url: str, suggested_model: str | None = None, **can: bool) -> Preset:
    return Preset(
        name=name,
        vendor=name,
        base_url=base_url,
        suggested_model=suggested_model,
        capabilities=Capabilities(**can),
    )


def _local(name: str, port: int) -> Preset:
    """Servers that hold any model to a schema as it speaks; whether it uses tools depends on the model."""
    return Preset(
        name=name,
        vendor=name,
        base_url=f"http://127.0.0.1:{port}/v1",
        needs_key=False,
        capabilities=Capabilities(json_schema=True),
    )


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        _cloud("openai", "https://api.openai.com/v1", "gpt-4o-mini", json_schema=True, tools=True),
        _cloud("deepseek", "https://api.deepseek.com/v1", "deepseek-chat", json_schema=False, tools=True),
        _cloud("qwen", "https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen-plus", tools=True),
        _cloud("zhipu", "https://open.bigmodel.cn/api/paas/v4", tools=True),
        _cloud("moonshot", "https://api.moonshot.cn/v1", tools=True),
        _local("ollama", 11434),
        _local("vllm", 8000),
        _local("llamacpp", 8080),
    )
}
