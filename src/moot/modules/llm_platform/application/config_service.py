"""The models at hand: which there are, which of them fit a request, and changes that take effect at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import date, datetime
from uuid import UUID

import structlog

from moot.modules.llm_platform.domain.exceptions import NoAvailableModel
from moot.modules.llm_platform.domain.model_config import (
    PRESETS,
    ConfigBody,
    ConfigPatch,
    ConfigRepository,
    ConfigView,
    LLMConfig,
    Preset,
    no_such_config,
)
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput, Unavailable
from moot.shared.domain.validation import refuse_field
from moot.shared.infrastructure.execution_context import DEFAULT_WORKSPACE

__all__ = ["PRESETS", "ConfigBody", "ConfigPatch", "ConfigService", "ConfigView", "ModelRegistry", "Preset"]

logger = structlog.get_logger(__name__)

Views = list[ConfigView]


class ModelRegistry:
    """Answers from memory; `refresh` reads what is stored. `defaults` hold until a stored config takes their alias.

    One that is stored but switched off, or whose key cannot be decrypted, still hides the default of its alias:
    nobody is sent to a model that was replaced on purpose.
    """

    def __init__(self, repository: ConfigRepository | None, defaults: Sequence[LLMConfig] = ()) -> None:
        self._repository = repository
        self.defaults = tuple(defaults)
        self._known = _by_place(defaults)
        self._learned: dict[tuple[UUID, datetime | None], dict[str, bool]] = {}
        self._reloading = asyncio.Lock()

    async def refresh(self) -> None:
        """Reload; if that fails, go on with what was known."""
        try:
            await self.reload()
        except Exception:  # bulkhead: a registry that cannot be read must not stop the desk
            logger.warning("models not reloaded, those known before stay", exc_info=True)

    async def reload(self) -> None:
        """One at a time, so that the latest read wins."""
        if self._repository is None:
            return
        async with self._reloading:
            stored = await self._repository.list()
            self._known = _by_place(self.defaults) | _by_place(stored)
        for config in stored:
            if config.unreadable:
                logger.warning("model left out, encrypted with another secret", alias=config.alias)

    def candidates(
        self, alias: str | None = None, tags: Sequence[str] | None = None, workspace: str = DEFAULT_WORKSPACE
    ) -> list[LLMConfig]:
        """Whom to ask, in that order; never empty: raises `NoAvailableModel`."""
        wanted = set(tags or ()) if alias is None else set()
        fitting = [c for c in self.usable(workspace) if alias in (None, c.alias) and wanted <= set(c.tags)]
        if not fitting:
            raise self._nobody(alias, tags, workspace)
        return fitting

    @property
    def longest_timeout(self) -> float:
        """Of the slowest model in any workspace, in seconds."""
        return max((config.seconds for config in self._known.values()), default=0.0)

    def list_known(self, workspace: str = DEFAULT_WORKSPACE) -> list[LLMConfig]:
        """All of a workspace, switched off ones too; who is asked first comes first."""
        mine = (config for config in self._known.values() if config.workspace_id == workspace)
        return sorted(mine, key=lambda config: (-config.priority, config.alias))

    def usable(self, workspace: str = DEFAULT_WORKSPACE) -> list[LLMConfig]:
        """Those that may be called, in the same order."""
        return [self._as_learned(config) for config in self.list_known(workspace) if config.usable]

    def note_refusal(self, config: LLMConfig, name: str) -> LLMConfig:
        """The model without what it turned out to refuse; so it is known until its config changes."""
        self._learned.setdefault((config.id, config.updated_at), {})[name] = False
        return self._as_learned(config)

    def knowledge_cutoff(self, alias: str | None, workspace: str) -> date | None:
        """The day up to which a model knows the world, if somebody said so."""
        config = self._known.get((workspace, alias or ""))
        return config.knowledge_cutoff if config else None

    def _as_learned(self, config: LLMConfig) -> LLMConfig:
        learned = self._learned.get((config.id, config.updated_at))
        if not learned:
            return config
        return config.model_copy(update={"capabilities": config.capabilities.model_copy(update=learned)})

    def _nobody(self, alias: str | None, tags: Sequence[str] | None, workspace: str) -> NoAvailableModel:
        known = self.list_known(workspace)
        if not known:
            return NoAvailableModel(SAY("llm.not_configured"))
        if any(config.alias == alias and config.unreadable for config in known):
            return NoAvailableModel(SAY("config.unreadable", alias=alias), alias=alias)
        asked = {"alias": alias, "tags": list(tags or ())}
        wanted = alias or asked["tags"] or SAY("config.asked_any")
        states = [
            SAY(f"config.{'on' if c.usable else 'locked' if c.is_active else 'off'}", model=c.alias)
            for c in known
        ]
        message = SAY("config.none_fits", asked=wanted, known=states)
        return NoAvailableModel(message, asked=asked, known=[config.alias for config in known])


def _by_place(configs: Iterable[LLMConfig]) -> dict[tuple[str, str], LLMConfig]:
    return {(config.workspace_id, config.alias): config for config in configs}


WHERE = frozenset({"base_url", "proxy"})


class ConfigService:
    """`repository` None: nothing is stored on this desk, and there is only what the environment says.

    `leads_outside` tells whether a URL is on the public web; None: whoever asks may use any.
    """

    def __init__(
        self,
        repository: ConfigRepository | None,
        registry: ModelRegistry,
        leads_outside: Callable[[str], Awaitable[bool]] | None = None,
    ) -> None:
        self._repository, self._registry, self._leads_outside = repository, registry, leads_outside

    async def list(self, workspace: str = DEFAULT_WORKSPACE) -> Views:
        """All of them as they are stored now, switched off ones too; who is asked first comes first."""
        await self._registry.reload()
        return [
            ConfigView.of(config, "environment" if config in self._registry.defaults else "stored")
            for config in self._registry.list_known(workspace)
        ]

    async def get(self, alias: str, workspace: str = DEFAULT_WORKSPACE) -> ConfigView:
        known = {view.alias: view for view in await self.list(workspace)}
        if alias not in known:
            raise no_such_config(alias, list(known))
        return known[alias]

    async def create(self, body: ConfigBody, workspace: str = DEFAULT_WORKSPACE) -> ConfigView:
        """Raises `DuplicateConfig`. A model of the environment is no duplicate: the new one takes its place."""
        await self._writable.add(await self._vet(body.config(workspace)))
        return await self.get(body.alias, workspace)

    async def update(self, alias: str, patch: ConfigPatch, workspace: str = DEFAULT_WORKSPACE) -> ConfigView:
        config, fields = await self._require_changeable(alias, workspace), patch.model_fields_set
        changed = patch.apply_to(config)
        if fields & WHERE:
            changed, fields = await self._vet(changed), {*fields, "public_only"}
        await self._writable.update(changed, fields)
        return await self.get(alias, workspace)

    async def _vet(self, config: LLMConfig) -> LLMConfig:
        """Held to the public web from now on, if whoever says where it is may use no other."""
        if self._leads_outside is None:
            return config.model_copy(update={"public_only": False})
        for name in WHERE:
            if (url := getattr(config, name)) and not await self._leads_outside(url):
                raise refuse_field("not_public", name, None)
        return config.model_copy(update={"public_only": True})

    async def remove(self, alias: str, workspace: str = DEFAULT_WORKSPACE) -> None:
        await self._writable.remove(await self._require_changeable(alias, workspace))
        await self._registry.refresh()

    @property
    def _writable(self) -> ConfigRepository:
        if self._repository is None:
            raise Unavailable(SAY("config.nothing_stored"), code="PERSISTENCE_OFF")
        return self._repository

    async def _require_changeable(self, alias: str, workspace: str) -> LLMConfig:
        view = await self.get(alias, workspace)
        if view.source == "environment":
            raise InvalidInput(SAY("config.of_environment", alias=alias))
        return next(config for config in self._registry.list_known(workspace) if config.alias == alias)
