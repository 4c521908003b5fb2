"""Models are added, changed and removed on both databases; keys are encrypted there and masked everywhere else."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import select

from moot.modules.llm_platform.application.config_service import (
    PRESETS,
    ConfigBody,
    ConfigPatch,
    ConfigService,
    ModelRegistry,
)
from moot.modules.llm_platform.domain.exceptions import ConfigNotFound, DuplicateConfig, NoAvailableModel
from moot.modules.llm_platform.domain.model_config import (
    Capabilities,
    ConfigView,
    LLMConfig,
    SecretUnreadable,
)
from moot.modules.llm_platform.infrastructure.config_repository import Cipher, SqlConfigRepository
from moot.modules.llm_platform.infrastructure.tables import LLMConfigRow
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.validation import validate
from moot.shared.infrastructure.database import Database
from tests.fakes.clock import TickingClock

KEY = "key-canary-7f3a9b21"
PROXY = "http://user:proxy-canary-5d@proxy.example:3128"
DEFAULT = LLMConfig(
    alias="default", base_url="http://127.0.0.1:1/v1", model_name="env-1", api_key="key-of-env-0", priority=0
)
FULL = {
    "alias": "main",
    "vendor": "house",
    "base_url": "https://models.example/v1/",
    "model_name": "house-1",
    "api_key": KEY,
    "description": " the\nusual one ",
    "priority": 5,
    "tags": [" zh ", "fast"],
    "price_in": 2,
    "price_out": 8.5,
    "context_size": 128_000,
    "timeout": 90.5,
    "concurrency": 4,
    "requests_per_minute": 60,
    "tokens_per_minute": 90_000,
    "knowledge_cutoff": "2025-06-30",
    "capabilities": {"json_schema": True},
    "proxy": PROXY,
    "is_active": True,
}


def body(**changes: Any) -> ConfigBody:
    return validate(ConfigBody, {"alias": "main", "base_url": "http://m/v1", "model_name": "m"} | changes)


def patch(**sent: Any) -> ConfigPatch:
    return validate(ConfigPatch, sent)


class Desk:
    """The service, over a registry and a repository that can be looked into."""

    def __init__(self, database: Database | None, clock: TickingClock, secret: str = "one") -> None:
        stored = SqlConfigRepository(database, Cipher(secret), clock) if database else None
        self.repository = stored
        self.registry = ModelRegistry(stored, [DEFAULT])
        self.service = ConfigService(stored, self.registry)

    def aliases(self) -> list[str]:
        return [config.alias for config in self.registry.usable()]


@pytest.fixture
def open_desk(database: Database, clock) -> Callable[..., Desk]:
    ticking = TickingClock(clock.now())
    return lambda secret="one": Desk(database, ticking, secret)


@pytest.fixture
def desk(open_desk) -> Desk:
    return open_desk()


@pytest.mark.parametrize(
    ("base_url", "model", "seconds", "at_once"),
    [
        ("https://api.openai.com/v1", "gpt-4o-mini", 120, None),
        ("https://api.openai.com/v1", "o3-mini", 600, None),
        ("https://api.deepseek.com/v1", "deepseek-reasoner", 600, None),
        ("https://openrouter.ai/api/v1", "deepseek/deepseek-r1:free", 600, None),
        ("https://api.deepseek.com/v1", "deepseek-chat", 120, None),
        ("http://127.0.0.1:11434/v1", "llama3", 600, 1),
        ("http://[::1]:8080/v1", "llama3", 600, 1),
        ("http://192.168.1.20:8080/v1", "llama3", 600, 1),
        ("http://localhost:8080/v1", "llama3", 600, 1),
        ("http://ollama:11434/v1", "llama3", 600, 1),
        ("http://host.docker.internal:11434/v1", "llama3", 600, 1),
        ("https://8.8.8.8/v1", "llama3", 120, None),
    ],
)
def test_a_model_has_the_limits_that_are_usual_for_its_kind(base_url, model, seconds, at_once):
    config = LLMConfig(alias="main", base_url=base_url, model_name=model)
    assert (config.seconds, config.at_once) == (seconds, at_once)
    told = config.model_copy(update={"timeout": 33.0, "concurrency": 7})
    assert (told.seconds, told.at_once) == (33.0, 7)


class TestAModel:
    async def test_comes_back_with_every_field_and_a_masked_key(self, desk):
        created = await desk.service.create(validate(ConfigBody, FULL))
        assert created == await desk.service.get("main")
        shown = created.model_dump(mode="json", exclude={"id", "created_at", "updated_at"})
        assert shown == FULL | {
            "base_url": "https://models.example/v1",
            "api_key": "key...9b21",
            "description": "the\nusual one",
            "tags": ["zh", "fast"],
            "capabilities": Capabilities(json_schema=True).model_dump(),
            "proxy": "http://***@proxy.example:3128",
            "workspace_id": "default",
            "provider_type": "openai",
            "unreadable": [],
            "public_only": False,
            "source": "stored",
        }

    async def test_is_called_with_its_key_and_proxy_at_once(self, desk):
        await desk.service.create(validate(ConfigBody, FULL))
        [config] = desk.registry.candidates("main")
        assert (config.api_key.get_secret_value(), config.proxy) == (KEY, PROXY)
        assert config.created_at == config.updated_at is not None

    async def test_its_alias_is_taken_once(self, desk):
        await desk.service.create(body(model_name="first"))
        with pytest.raises(DuplicateConfig, match="already a model named main"):
            await desk.service.create(body(model_name="second"))
        assert (await desk.service.get("main")).model_name == "first"

    async def test_of_many_that_want_an_alias_one_gets_it(self, desk):
        wishes = (desk.service.create(body(model_name=f"m{i}")) for i in range(8))
        outcomes = await asyncio.gather(*wishes, return_exceptions=True)
        assert sum(isinstance(outcome, DuplicateConfig) for outcome in outcomes) == 7
        assert len(await desk.service.list()) == 2

    async def test_may_have_the_alias_of_another_workspace(self, desk):
        await desk.service.create(body())
        await desk.service.create(body(model_name="theirs"), "theirs")
        assert [view.model_name for view in await desk.service.list("theirs")] == ["theirs"]
        assert (await desk.service.get("main")).model_name == "m"
        await desk.service.remove("main", "theirs")
        assert "main" in desk.aliases()

    async def test_that_is_removed_is_gone_at_once(self, desk):
        await desk.service.create(body())
        await desk.service.remove("main")
        assert desk.aliases() == ["default"]
        with pytest.raises(ConfigNotFound, match="no model named main"):
            await desk.service.get("main")

    @pytest.mark.parametrize("alias", ["nobody", "no\x00body", ""])
    async def test_that_does_not_exist_is_not_found(self, desk, alias):
        for attempt in (
            desk.service.get(alias),
            desk.service.update(alias, patch(priority=2)),
            desk.service.remove(alias),
        ):
            with pytest.raises(ConfigNotFound):
                await attempt

    async def test_that_goes_away_meanwhile_is_not_found(self, desk):
        await desk.service.create(body())
        [gone] = await desk.repository.list()
        await desk.repository.remove(gone)
        with pytest.raises(ConfigNotFound):
            await desk.repository.update(gone, ["priority"])
        with pytest.raises(ConfigNotFound):
            await desk.repository.remove(gone)


class TestAChange:
    async def test_leaves_what_was_not_sent(self, desk):
        before = await desk.service.create(validate(ConfigBody, FULL))
        after = await desk.service.update("main", patch(model_name="house-2", is_active=False))
        assert after.updated_at > before.updated_at
        assert after == before.model_copy(
            update={"model_name": "house-2", "is_active": False, "updated_at": after.updated_at}
        )
        assert desk.aliases() == ["default"]

    async def test_keeps_key_and_proxy_unless_they_are_sent(self, desk):
        await desk.service.create(validate(ConfigBody, FULL))
        await desk.service.update("main", patch(priority=7))
        [config] = desk.registry.candidates("main")
        assert (config.api_key.get_secret_value(), config.proxy) == (KEY, PROXY)
        await desk.service.update("main", patch(api_key="another-key-1"))
        [config] = desk.registry.candidates("main")
        assert (config.api_key.get_secret_value(), config.proxy) == ("another-key-1", PROXY)

    @pytest.mark.accepts("W21")
    async def test_a_null_clears(self, desk):
        await desk.service.create(validate(ConfigBody, FULL))
        cleared = dict.fromkeys(
            ["api_key", "proxy", "price_in", "context_size", "knowledge_cutoff", "tags", "capabilities"]
        )
        view = await desk.service.update("main", patch(**cleared))
        assert (view.api_key, view.proxy, view.price_in, view.context_size) == ("", None, None, None)
        assert (view.knowledge_cutoff, view.tags, view.capabilities) == (None, [], Capabilities())
        assert (view.price_out, view.vendor, view.description) == (8.5, "house", "the\nusual one")

    async def test_two_at_once_both_hold(self, desk):
        await desk.service.create(body())
        await asyncio.gather(
            desk.service.update("main", patch(priority=7)),
            desk.service.update("main", patch(tags=["zh"])),
            desk.service.update("main", patch(vendor="house")),
        )
        view = await desk.service.get("main")
        assert (view.priority, view.tags, view.vendor) == (7, ["zh"], "house")

    async def test_made_elsewhere_is_seen_after_a_refresh(self, open_desk):
        here, elsewhere = open_desk(), open_desk()
        await elsewhere.service.create(body())
        assert here.aliases() == ["default"]
        assert [view.alias for view in await here.service.list()] == ["main", "default"]
        assert here.aliases() == ["main", "default"]


class TestTheEnvironment:
    async def test_is_listed_last_with_its_source(self, desk):
        await desk.service.create(body())
        views = await desk.service.list()
        assert [(view.alias, view.source) for view in views] == [
            ("main", "stored"),
            ("default", "environment"),
        ]
        assert views[1].api_key == "key...nv-0"

    async def test_is_not_changed_from_here(self, desk):
        for attempt in (
            desk.service.update("default", patch(priority=2)),
            desk.service.remove("default"),
        ):
            with pytest.raises(InvalidInput, match="MOOT_LLM_BASE_URL"):
                await attempt

    async def test_gives_way_to_a_stored_one_and_comes_back_after_it(self, desk):
        await desk.service.create(body(alias="default", model_name="mine"))
        assert [view.model_name for view in await desk.service.list()] == ["mine"]
        changed = await desk.service.update("default", patch(priority=3))
        assert (changed.source, changed.priority) == ("stored", 3)
        await desk.service.remove("default")
        assert (await desk.service.get("default")).source == "environment"

    async def test_is_all_there_is_where_nothing_is_stored(self, clock):
        desk = Desk(None, TickingClock(clock.now()))
        assert [view.alias for view in await desk.service.list()] == ["default"]
        assert (await desk.service.get("default")).model_name == "env-1"
        with pytest.raises(Unavailable, match="MOOT_PERSISTENCE=off"):
            await desk.service.create(body())

    async def test_does_not_stand_in_for_a_store_that_fails(self, desk, monkeypatch):
        async def fail() -> None:
            raise Unavailable("the database is down")

        monkeypatch.setattr(desk.repository, "list", fail)
        with pytest.raises(Unavailable):
            await desk.service.list()


class TestSecrets:
    async def test_are_nowhere_in_the_tables(self, desk, database):
        await desk.service.create(validate(ConfigBody, FULL))
        await desk.service.update("main", patch(api_key=KEY, proxy=PROXY))
        async with database.session() as db:
            rows = (await db.execute(select(LLMConfigRow.__table__))).mappings().all()
        assert [row["alias"] for row in rows] == ["main"]
        assert len(rows[0]["secrets"]["api_key"]) > 80
        assert not any(secret in repr(dict(rows[0])) for secret in (KEY, "proxy-canary"))

    async def test_are_nowhere_in_the_file(self, sqlite_database, home, clock):
        desk = Desk(sqlite_database, TickingClock(clock.now()))
        await desk.service.create(validate(ConfigBody, FULL))
        await sqlite_database.close()
        stored = b"".join(file.read_bytes() for file in home.glob("moot.db*"))
        assert b"house-1" in stored
        assert KEY.encode() not in stored
        assert b"proxy-canary" not in stored

    async def test_of_another_secret_cost_only_their_own_model(self, open_desk):
        await open_desk("old").service.create(validate(ConfigBody, FULL))
        desk = open_desk("new")
        await desk.service.create(body(alias="fresh", api_key="another-key-1"))
        await desk.service.create(body(alias="keyless"))
        assert desk.aliases() == ["fresh", "keyless", "default"]
        with pytest.raises(NoAvailableModel, match="MOOT_SECRET_KEY"):
            desk.registry.candidates("main")
        view = await desk.service.get("main")
        assert (view.unreadable, view.api_key, view.proxy) == (("api_key", "proxy"), "", None)

    async def test_of_another_secret_can_be_entered_again(self, open_desk):
        await open_desk("old").service.create(validate(ConfigBody, FULL))
        desk = open_desk("new")
        with pytest.raises(SecretUnreadable, match="api_key, proxy: cannot be decrypted"):
            await desk.service.update("main", patch(api_key="another-key-1"))
        view = await desk.service.update("main", patch(api_key="another-key-1", proxy=None))
        assert (view.unreadable, view.api_key, view.model_name) == ((), "ano...ey-1", "house-1")
        assert desk.aliases() == ["main", "default"]

    async def test_of_another_secret_do_not_keep_a_model_from_being_removed(self, open_desk):
        await open_desk("old").service.create(validate(ConfigBody, FULL))
        desk = open_desk("new")
        await desk.service.remove("main")
        assert [view.alias for view in await desk.service.list()] == ["default"]

    async def test_of_another_secret_are_untouched_and_readable_with_the_old_one(self, open_desk):
        await open_desk("old").service.create(validate(ConfigBody, FULL))
        await open_desk("new").service.list()
        desk = open_desk("old")
        await desk.service.list()
        assert desk.registry.candidates("main")[0].api_key.get_secret_value() == KEY

    def test_are_not_printed(self):
        form = validate(ConfigBody, FULL)
        config = form.config()
        printed = [
            *(repr(it) + str(it) + str(it.model_dump()) for it in (form, config)),
            config.model_dump_json(),
        ]
        assert not any(KEY in line for line in printed)
        assert not any("proxy-canary" in line for line in printed)

    @pytest.mark.parametrize(
        ("key", "shown"),
        [("", ""), ("x", "******"), ("1234567", "******"), ("12345678", "123...5678"), (KEY, "key...9b21")],
    )
    def test_are_masked(self, key, shown):
        config = validate(ConfigBody, FULL).config().model_copy(update={"api_key": SecretStr(key)})
        assert ConfigView.of(config, "stored").api_key == shown


class TestWhatIsEntered:
    @pytest.mark.parametrize("name", PRESETS)
    def test_a_preset_fills_in_where_and_what(self, name):
        form = {"alias": "p", "model_name": "m", "preset": name, "api_key": KEY}
        config = validate(ConfigBody, form).config()
        preset = PRESETS[name]
        assert (config.vendor, config.base_url, config.capabilities) == (
            preset.vendor,
            preset.base_url,
            preset.capabilities,
        )

    def test_what_is_given_goes_before_a_preset(self):
        config = body(preset="ollama", base_url="http://gpu:11434/v1", vendor="cellar").config()
        assert (config.base_url, config.vendor, config.capabilities.json_schema) == (
            "http://gpu:11434/v1",
            "cellar",
            True,
        )

    def test_a_vendor_that_needs_a_key_is_not_entered_without_one(self):
        with pytest.raises(InvalidInput, match="preset: 'deepseek' needs a key"):
            validate(ConfigBody, {"alias": "p", "model_name": "m", "preset": "deepseek"})
        assert validate(ConfigBody, {"alias": "p", "model_name": "m", "preset": "ollama"}).api_key is None

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            (
                {"preset": "opnai"},
                r"preset: 'opnai' is not known. Did you mean openai\? Allowed: openai, deepseek",
            ),
            ({"base_url": "models.example/v1"}, "base_url: write a full address"),
            ({"base_url": "ftp://models.example"}, "base_url: write a full address"),
            ({"base_url": "https:///v1"}, "base_url: write a full address"),
            ({"base_url": "http://m:port/v1"}, "base_url: write a full address"),
            ({"base_url": "http://[::1/v1"}, "base_url: write a full address"),
            ({"base_url": "http://m/v1?key=1"}, "base_url: write a full address"),
            ({"base_url": "http://m\n.example"}, "base_url: write a full address"),
            ({"base_url": 1}, "base_url: must be text, not number"),
            ({"base_url": None}, "base_url: is required, unless a preset is chosen"),
            ({"base_url": "https://me:pw@m/v1"}, "base_url: must not hold a user or a password"),
            ({"proxy": "socks5://p:1"}, "proxy: write a full address"),
            ({"alias": "-a"}, "alias: .* holds signs that are not allowed"),
            ({"alias": "a" * 65}, "alias: .* holds signs that are not allowed"),
            ({"alias": "a\n"}, "alias: .* holds signs that are not allowed"),
            ({"alias": None}, "alias: must be text, not null"),
            ({"model_name": "  "}, "model_name: must not be empty"),
            ({"model_name": "m" * 101}, "model_name: is too long. Allowed: length <= 100"),
            ({"vendor": ""}, "vendor: must not be empty"),
            ({"description": "a\x00b"}, "description: .* holds signs that are not allowed"),
            ({"tags": ["zh", " "]}, r"tags.1: must not be empty"),
            ({"tags": ["a\x00"]}, r"tags.0: .* holds signs that are not allowed"),
            ({"tags": "zh"}, "tags: must be a list, not 'zh'"),
            ({"price_in": -0.01}, r"price_in: -0.01 is out of range. Allowed: >= 0"),
            ({"price_out": float("nan")}, "price_out"),
            ({"priority": 2**40}, "priority: 1099511627776 is out of range"),
            ({"priority": True}, "priority: must be a whole number, not true"),
            ({"context_size": 0}, "context_size: 0 is out of range"),
            ({"timeout": 0}, "timeout: 0 is out of range"),
            ({"concurrency": 0}, "concurrency: 0 is out of range"),
            ({"requests_per_minute": 0}, "requests_per_minute: 0 is out of range"),
            ({"tokens_per_minute": 1.5}, "tokens_per_minute: must be a whole number"),
            ({"knowledge_cutoff": "last summer"}, "knowledge_cutoff: 'last summer' is not a date"),
            ({"is_active": "yes"}, "is_active: must be true or false, not 'yes'"),
            ({"provider_type": "grpc"}, "provider_type: 'grpc' is not known. Allowed: openai"),
            ({"api_kee": "x"}, "has no field named api_kee"),
            ({"id": "x"}, "has no field named id"),
        ],
    )
    def test_what_is_wrong_is_said_with_its_field(self, wrong, said):
        with pytest.raises(InvalidInput, match=said):
            body(**wrong)

    def test_nowhere_to_go_names_the_presets(self):
        with pytest.raises(
            InvalidInput, match=r"unless a preset is chosen. Allowed: openai, deepseek"
        ) as refused:
            validate(ConfigBody, {"alias": "a", "model_name": "m"})
        assert refused.value.in_locale("zh-CN").startswith("base_url：必填，除非选用一个预设。")
        assert refused.value.details["errors"][0]["field"] == "base_url"

    @pytest.mark.parametrize("field", ["alias", "preset", "id", "workspace_id", "unreadable"])
    def test_some_things_are_not_changed(self, field):
        with pytest.raises(InvalidInput, match=f"has no field named {field}"):
            patch(**{field: "x"})

    @pytest.mark.parametrize(
        "wrong",
        [
            {"api_key": [KEY]},
            {"api_key": {"key": KEY}},
            {"api_key": f"{KEY}\nX-Other: 1"},
            {"api_key": f"{KEY} {KEY}"},
            {"base_url": f"https://{KEY}@m/v1"},
            {"base_url": f"https://m/v1?key={KEY}"},
            {"base_url": [KEY]},
            {"proxy": f"nothing://{KEY}@m"},
            {"proxy": [KEY]},
            {"apikey": KEY},
            {"api_key": KEY, "model_name": None},
        ],
    )
    def test_a_refused_key_is_not_repeated(self, wrong):
        with pytest.raises(InvalidInput) as refused:
            body(**wrong)
        assert KEY not in str(refused.value) + str(refused.value.details)

    @pytest.mark.parametrize("raw", [[KEY], KEY, KEY.encode(), None])
    def test_nor_where_there_is_no_object_at_all(self, raw):
        with pytest.raises(InvalidInput, match="must be an object") as refused:
            validate(ConfigBody, raw)
        assert KEY not in str(refused.value) + str(refused.value.details)

    def test_a_key_is_taken_without_the_space_around_it(self):
        assert body(api_key=f" {KEY}\n").config().api_key.get_secret_value() == KEY
