"""Which models fit a request, and what happens when there are none, or the store is down."""

import asyncio
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from moot.modules.llm_platform.application.config_service import ModelRegistry
from moot.modules.llm_platform.domain.exceptions import NoAvailableModel
from moot.modules.llm_platform.domain.model_config import Capabilities, ConfigRepository, LLMConfig
from moot.shared.domain.errors import Unavailable


def a_model(alias: str, *tags: str, **changes: object) -> LLMConfig:
    facts = {"alias": alias, "base_url": "http://127.0.0.1:1/v1", "model_name": f"{alias}-1", "tags": tags}
    return LLMConfig.model_validate(facts | changes)


class Shelf(ConfigRepository):
    """Holds what it is given; may be down."""

    def __init__(self, *configs: LLMConfig) -> None:
        self.configs: Sequence[LLMConfig] = configs
        self.trouble: Exception | None = None

    async def list(self) -> Sequence[LLMConfig]:
        if self.trouble:
            raise self.trouble
        return self.configs


async def registry_of(*configs: LLMConfig, defaults: Sequence[LLMConfig] = ()) -> ModelRegistry:
    registry = ModelRegistry(Shelf(*configs), defaults)
    await registry.refresh()
    return registry


def aliases(configs: Sequence[LLMConfig]) -> list[str]:
    return [config.alias for config in configs]


class TestCandidates:
    async def test_come_in_order_of_priority_then_alias(self):
        registry = await registry_of(
            a_model("b"), a_model("z", priority=9), a_model("a"), a_model("last", priority=-1)
        )
        assert aliases(registry.candidates()) == ["z", "a", "b", "last"]
        assert aliases(registry.usable()) == ["z", "a", "b", "last"]

    async def test_an_alias_means_that_model_only(self):
        registry = await registry_of(a_model("small"), a_model("large", priority=9))
        assert aliases(registry.candidates("small")) == ["small"]
        assert aliases(registry.candidates("small", ["nobody has this tag"])) == ["small"]

    async def test_tags_mean_those_that_hold_all_of_them(self):
        registry = await registry_of(
            a_model("one", "fast"), a_model("both", "fast", "zh", "cheap"), a_model("other", "zh", priority=9)
        )
        assert aliases(registry.candidates(tags=["zh", "fast"])) == ["both"]
        assert aliases(registry.candidates(tags=["zh"])) == ["other", "both"]
        assert aliases(registry.candidates(tags=[])) == ["other", "both", "one"]

    async def test_one_that_is_switched_off_is_nobody(self):
        registry = await registry_of(a_model("on"), a_model("off", priority=9, is_active=False))
        assert aliases(registry.candidates()) == ["on"]
        assert aliases(registry.usable()) == ["on"]
        with pytest.raises(NoAvailableModel):
            registry.candidates("off")

    async def test_stay_within_their_workspace(self):
        registry = await registry_of(a_model("ours"), a_model("theirs", workspace_id="theirs"))
        assert aliases(registry.candidates()) == ["ours"]
        assert aliases(registry.candidates(workspace="theirs")) == ["theirs"]
        assert (aliases(registry.usable("theirs")), registry.usable("nobody's")) == (["theirs"], [])


class TestNoCandidate:
    async def test_the_answer_says_what_was_asked_and_what_there_is(self):
        registry = await registry_of(a_model("a", "zh", "fast"), a_model("b", is_active=False))
        with pytest.raises(NoAvailableModel) as by_alias:
            registry.candidates("c")
        with pytest.raises(NoAvailableModel) as by_tags:
            registry.candidates(tags=["zh", "deep"])
        assert str(by_alias.value) == (
            "No model that fits can be called (c). Known: a, b, which is switched off."
        )
        assert by_tags.value.in_locale("zh-CN") == ("没有可调用的模型（zh、deep）。已知：a、b（已停用）。")
        assert by_alias.value.details == {"asked": {"alias": "c", "tags": []}, "known": ["a", "b"]}

    async def test_all_switched_off_is_not_the_same_as_none(self):
        registry = await registry_of(a_model("b", is_active=False))
        assert not registry.usable()
        with pytest.raises(NoAvailableModel, match=r"No model that fits can be called \(any of this desk\)"):
            registry.candidates()

    async def test_none_at_all_says_how_to_add_one(self):
        registry = ModelRegistry(None)
        await registry.refresh()
        assert not registry.usable()
        for asked in ({}, {"alias": "a"}, {"tags": ["zh"]}):
            with pytest.raises(NoAvailableModel, match="No language model is configured"):
                registry.candidates(**asked)


class TestTheDefault:
    DEFAULT = a_model("default", priority=0)

    async def test_is_there_before_anything_is_read_and_without_a_store(self):
        assert aliases(ModelRegistry(Shelf(a_model("a")), [self.DEFAULT]).candidates()) == ["default"]
        assert aliases(ModelRegistry(None, [self.DEFAULT]).candidates("default")) == ["default"]

    async def test_comes_after_what_is_stored(self):
        registry = await registry_of(a_model("a"), defaults=[self.DEFAULT])
        assert aliases(registry.candidates()) == ["a", "default"]

    async def test_is_replaced_by_a_stored_one_of_its_name(self):
        registry = await registry_of(a_model("default", model_name="mine"), defaults=[self.DEFAULT])
        assert [config.model_name for config in registry.usable()] == ["mine"]

    @pytest.mark.parametrize("hidden", [{"is_active": False}, {"unreadable": ("api_key",)}])
    async def test_does_not_come_back_when_its_replacement_cannot_be_called(self, hidden):
        registry = await registry_of(a_model("default", **hidden), defaults=[self.DEFAULT])
        assert not registry.usable()


class TestRefresh:
    async def test_a_failure_keeps_what_was_known(self):
        shelf = Shelf(a_model("a"))
        registry = ModelRegistry(shelf)
        await registry.refresh()
        shelf.configs, shelf.trouble = [a_model("b")], Unavailable("the database is down")
        with capture_logs() as logs:
            await registry.refresh()
        assert aliases(registry.usable()) == ["a"]
        assert [line["log_level"] for line in logs] == ["warning"]
        shelf.trouble = None
        await registry.refresh()
        assert aliases(registry.usable()) == ["b"]

    async def test_one_that_cannot_be_decrypted_is_left_out_alone(self):
        with capture_logs() as logs:
            registry = await registry_of(a_model("a"), a_model("lost", unreadable=("api_key",)))
        assert aliases(registry.candidates()) == ["a"]
        assert [(line["log_level"], line["alias"]) for line in logs] == [("warning", "lost")]
        with pytest.raises(NoAvailableModel, match=r"key of lost cannot be decrypted.*MOOT_SECRET_KEY"):
            registry.candidates("lost")

    async def test_of_two_at_once_the_later_read_wins(self):
        """The first read is slow and old; it must not undo the second."""
        first_read, go_on = asyncio.Event(), asyncio.Event()

        class SlowShelf(Shelf):
            async def list(self) -> Sequence[LLMConfig]:
                seen = self.configs
                if not first_read.is_set():
                    first_read.set()
                    await go_on.wait()
                return seen

        shelf = SlowShelf(a_model("old"))
        registry = ModelRegistry(shelf)
        slow = asyncio.create_task(registry.refresh())
        await first_read.wait()
        shelf.configs = [a_model("new")]
        fast = asyncio.create_task(registry.refresh())
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(slow, fast)
        assert aliases(registry.usable()) == ["new"]


class TestWhatIsLearned:
    async def test_a_refusal_is_remembered_for_that_model(self):
        known = Capabilities(json_schema=True, tools=True)
        registry = await registry_of(a_model("a", capabilities=known), a_model("b", capabilities=known))
        for refused in ("json_schema", "temperature"):
            noted = registry.note_refusal(registry.candidates("a")[0], refused)
        a, b = registry.candidates()
        assert a == noted
        assert a.capabilities == Capabilities(json_schema=False, tools=True, temperature=False)
        assert b.capabilities == known

    async def test_it_outlives_a_refresh_but_not_a_change(self, clock):
        shelf = Shelf(a_model("a", updated_at=clock.now()))
        registry = ModelRegistry(shelf)
        await registry.refresh()
        registry.note_refusal(registry.candidates()[0], "tools")
        await registry.refresh()
        assert registry.candidates()[0].capabilities.tools is False
        shelf.configs = [a_model("a", updated_at=clock.now())]
        await registry.refresh()
        assert registry.candidates()[0].capabilities.tools is None

    async def test_the_same_alias_of_another_workspace_is_another_model(self):
        registry = await registry_of(a_model("a"), a_model("a", workspace_id="theirs"))
        registry.note_refusal(registry.candidates()[0], "tools")
        assert registry.candidates(workspace="theirs")[0].capabilities.tools is None
