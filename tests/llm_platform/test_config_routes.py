"""The models over HTTP, behind a small app: real service, real database, and keys that never come out."""

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI
from structlog.testing import capture_logs

from moot.modules.llm_platform.application.config_service import ConfigBody, ConfigService, ModelRegistry
from moot.modules.llm_platform.domain.model_config import LLMConfig
from moot.modules.llm_platform.infrastructure.config_repository import Cipher, SqlConfigRepository
from moot.modules.llm_platform.presentation.routes import router
from moot.shared.infrastructure.database import Database
from moot.shared.presentation.errors import install_error_handlers
from tests.fakes.clock import FixedClock

CONFIGS = "/llm-platform/configs"
KEY = "key-canary-7f3a9b21"
DEFAULT = LLMConfig(alias="default", base_url="http://127.0.0.1:1/v1", model_name="env-1", priority=0)
NEW = {"alias": "main", "base_url": "https://models.example/v1", "model_name": "house-1", "api_key": KEY}


class Platform:
    """What the routes ask the container for."""

    def __init__(self, database: Database, clock: FixedClock) -> None:
        repository = SqlConfigRepository(database, Cipher("secret"), clock)
        self.registry = ModelRegistry(repository, [DEFAULT])
        self._service = ConfigService(repository, self.registry)

    def config_service(self, *, for_guest: bool = False) -> ConfigService:
        assert not for_guest
        return self._service


@pytest.fixture
def platform(sqlite_database, clock) -> Platform:
    return Platform(sqlite_database, clock)


@pytest.fixture
async def client(platform) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.state.llm_platform = platform
    app.include_router(router)
    install_error_handlers(app)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    english = {"accept-language": "en"}
    async with httpx.AsyncClient(transport=transport, base_url="http://desk", headers=english) as client:
        yield client


async def test_a_model_is_added_shown_changed_and_removed(client, platform):
    created = await client.post(CONFIGS, json=NEW)
    assert created.status_code == 201
    assert created.json()["api_key"] == "key...9b21"
    assert (await client.get(f"{CONFIGS}/main")).json() == created.json()
    assert platform.registry.candidates("main")[0].api_key.get_secret_value() == KEY

    changed = await client.patch(f"{CONFIGS}/main", json={"priority": 3, "api_key": None})
    assert changed.status_code == 200
    assert (changed.json()["priority"], changed.json()["api_key"]) == (3, "")
    assert changed.json()["model_name"] == "house-1"

    removed = await client.delete(f"{CONFIGS}/main")
    assert (removed.status_code, removed.content) == (204, b"")
    assert (await client.get(f"{CONFIGS}/main")).status_code == 404
    assert [config.alias for config in platform.registry.usable()] == ["default"]


async def test_the_list_has_stored_ones_and_the_one_of_the_environment(client):
    await client.post(CONFIGS, json=NEW)
    listed = (await client.get(CONFIGS)).json()
    assert [(item["alias"], item["source"]) for item in listed] == [
        ("main", "stored"),
        ("default", "environment"),
    ]


async def test_a_second_of_the_same_alias_is_a_conflict(client):
    await client.post(CONFIGS, json=NEW)
    answer = await client.post(CONFIGS, json=NEW)
    assert (answer.status_code, answer.json()["code"]) == (409, "LLM_CONFIG_DUPLICATE")


async def test_what_is_not_there_is_not_found_in_the_readers_language(client):
    for method in ("GET", "DELETE"):
        answer = await client.request(method, f"{CONFIGS}/nobody", headers={"accept-language": "zh"})
        assert (answer.status_code, answer.json()["code"]) == (404, "LLM_CONFIG_NOT_FOUND")
        assert answer.json()["message"].startswith("没有名为 nobody 的模型")
    assert (await client.patch(f"{CONFIGS}/nobody", json={})).status_code == 404


async def test_the_environment_is_not_changed_over_http(client):
    for answer in (
        await client.patch(f"{CONFIGS}/default", json={"priority": 9}),
        await client.delete(f"{CONFIGS}/default"),
    ):
        assert answer.status_code == 400
        assert "MOOT_LLM_BASE_URL" in answer.json()["message"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"base_url": "nowhere"}, "base_url: write a full address"),
        ({"price_in": -1}, "price_in: -1 is out of range"),
        ({"preset": "nobody"}, "preset: 'nobody' is not known. Allowed: openai"),
        ({"model": "x"}, "has no field named model"),
        ({"tags": [""]}, "tags.0: must not be empty"),
    ],
)
async def test_a_bad_request_says_what_is_wrong(client, wrong, said):
    answer = await client.post(CONFIGS, json=NEW | wrong)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
    assert said in answer.json()["message"]
    assert answer.json()["details"]["errors"]


async def test_a_refresh_brings_in_what_was_stored_elsewhere(client, platform, sqlite_database, clock):
    elsewhere = Platform(sqlite_database, clock).config_service()
    await elsewhere.create(ConfigBody.model_validate(NEW))
    assert [config.alias for config in platform.registry.usable()] == ["default"]
    answer = await client.post(f"{CONFIGS}/refresh")
    assert [item["alias"] for item in answer.json()] == ["main", "default"]
    assert [config.alias for config in platform.registry.usable()] == ["main", "default"]


async def test_presets_are_listed(client):
    presets = {item["name"]: item for item in (await client.get("/llm-platform/presets")).json()}
    assert list(presets) == ["openai", "deepseek", "qwen", "zhipu", "moonshot", "ollama", "vllm", "llamacpp"]
    assert presets["ollama"]["needs_key"] is False
    assert presets["openai"]["base_url"] == "https://api.openai.com/v1"


async def test_a_key_comes_out_nowhere(client):
    with capture_logs() as logs:
        answers = [
            await client.post(CONFIGS, json=NEW),
            await client.post(CONFIGS, json=NEW),
            await client.get(CONFIGS),
            await client.patch(f"{CONFIGS}/main", json={"api_key": KEY}),
            await client.patch(f"{CONFIGS}/main", json={"api_key": [KEY]}),
            await client.patch(f"{CONFIGS}/main", json={"api_key": f"{KEY}\n{KEY}"}),
            await client.post(CONFIGS, json=NEW | {"base_url": f"https://{KEY}@m/v1"}),
            await client.post(CONFIGS, json=[NEW]),
            await client.post(CONFIGS, json=KEY),
            await client.post(CONFIGS, content=f"api_key={KEY}"),
            await client.post(
                CONFIGS, content=f'{{"api_key": "{KEY}"', headers={"content-type": "application/json"}
            ),
            await client.post(f"{CONFIGS}/refresh"),
            await client.delete(f"{CONFIGS}/main"),
        ]
    assert [answer.status_code for answer in answers] == [
        201, 409, 200, 200, 400, 400, 400, 400, 400, 400, 400, 200, 204,
    ]  # fmt: skip
    assert not any(KEY in answer.text for answer in answers)
    assert KEY not in str(logs)


def test_the_schema_shows_a_key_as_a_password():
    app = FastAPI()
    app.include_router(router)
    schemas = app.openapi()["components"]["schemas"]
    [key, _null] = schemas["ConfigBody"]["properties"]["api_key"]["anyOf"]
    assert (key["format"], key["writeOnly"]) == ("password", True)
    assert schemas["ConfigBody"]["required"] == ["model_name", "alias"]
    assert "required" not in schemas["ConfigPatch"]
