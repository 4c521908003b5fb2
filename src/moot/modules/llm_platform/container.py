"""Wires the models, the record of their calls, the budget and the web."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import cached_property
from uuid import UUID

from moot.modules.llm_platform.application.call_logs import (
    ExternalAPICallLogQueryService,
    LLMCallLogQueryService,
    UsageService,
)
from moot.modules.llm_platform.application.config_service import ConfigBody, ConfigService, ModelRegistry
from moot.modules.llm_platform.application.llm_service import LLMService
from moot.modules.llm_platform.application.speaker import EngineChoice, Speaker
from moot.modules.llm_platform.application.web_search import (
    Page,
    Searches,
    WebPageService,
    WebSearchService,
)
from moot.modules.llm_platform.domain.budget import Budget, Limits
from moot.modules.llm_platform.domain.call_record import CallJournal
from moot.modules.llm_platform.domain.chat import Complete
from moot.modules.llm_platform.domain.model_config import DEFAULT_ALIAS, ENVIRONMENT, LLMConfig
from moot.modules.llm_platform.infrastructure.call_journal import MODEL_BODIES, MODEL_KINDS, SqlCallJournal
from moot.modules.llm_platform.infrastructure.config_repository import SqlConfigRepository, cipher_for
from moot.modules.llm_platform.infrastructure.spending_store import SqlBudget
from moot.shared.domain.clock import Clock
from moot.shared.domain.guard import Guard, let_through
from moot.shared.domain.validation import validate
from moot.shared.infrastructure.call_audit import CallAudit, ExternalCalls
from moot.shared.infrastructure.execution_context import current_replay
from moot.shared.infrastructure.settings import Settings

ABANDONED_AFTER = 4
"""Time-outs of the slowest model. A call older than that has nobody who waits for it any more."""

CALL_KINDS, CALL_BODIES = MODEL_KINDS, MODEL_BODIES
"""For whoever verifies or prunes a record: what links vouch for in model calls, and the texts that may go."""


class LLMPlatformContainer:
    """`audit` None: nothing is stored, so there are no configs but the environment's, no budgets and no cache.

    Every model passes `guard` as `model:<alias>`, the search service as `web-search:<name>`.
    """

    def __init__(
        self, settings: Settings, *, audit: CallAudit | None, clock: Clock, guard: Guard = let_through
    ) -> None:
        self._settings, self._audit, self._clock, self._guard = settings, audit, clock, guard
        self._opened = AsyncExitStack()
        self.cipher = cipher_for(settings.secret_key, settings.home)
        """For whoever else has secrets to keep on this desk."""
        limits = Limits(**{name: getattr(settings, f"budget_{name}") for name in Limits._fields})
        self._journal = self._database = self._repository = None
        journal, budget = CallJournal(), Budget(limits)
        if audit is not None:
            journal = self._journal = SqlCallJournal(audit)
            self._database = audit.trail.database
            self._repository = SqlConfigRepository(self._database, self.cipher, clock)
            budget = SqlBudget(self._database, clock, limits, settings.currency)
        self.registry = ModelRegistry(self._repository, _environment_model(settings))
        self._llm = LLMService(
            self.registry,
            lambda config, request: self._complete(config, request),  # noqa: PLW0108 - not before it is called
            journal,
            budget,
            deadline=settings.llm_deadline,
            max_tokens=settings.llm_max_tokens,
            guard=guard,
        )

    @cached_property
    def _complete(self) -> Complete:
        """From the first call: what the client of models stands on takes a quarter of a second to load."""
        from moot.modules.llm_platform.infrastructure.openai_client import OpenAIChatModel

        model = OpenAIChatModel(private_urls=self._settings.private_urls)
        self._opened.push_async_callback(model.aclose)
        return model.complete

    @cached_property
    def _fetch(self) -> Callable[[str], Awaitable[Page]]:
        from moot.modules.llm_platform.infrastructure.public_web import PageFetcher

        pages = PageFetcher()
        self._opened.push_async_callback(pages.aclose)
        return pages.text

    @cached_property
    def web_search(self) -> WebSearchService:
        from moot.modules.llm_platform.infrastructure import web_searches as web

        key, url = self._settings.bocha_api_key, self._settings.searxng_url
        # Bocha without a key says, when it is asked, what there is to set up.
        bocha = key.get_secret_value() or not url
        provider = web.BochaSearch(self._settings.bocha_url, key) if bocha else web.SearxngSearch(url)
        self._opened.push_async_callback(provider.aclose)
        searches = web.SqlSearches(self._database, self._clock) if self._database else Searches()
        return WebSearchService(provider, ExternalCalls(self._audit), searches, self._clock, self._guard)

    async def open(self) -> None:
        """Load the stored models, and close the calls a process that died left open."""
        await self.registry.refresh()
        if self._journal:
            patience = timedelta(seconds=ABANDONED_AFTER * self.registry.longest_timeout)
            given_up = self._clock.now() - patience
            await self._journal.close_abandoned(before=given_up)

    async def close_calls_of(self, session_id: UUID) -> None:
        """Those that nobody will complete: the process that ran the session is gone."""
        if self._journal:
            await self._journal.close_abandoned(session_id=session_id)

    async def close(self) -> None:
        await self._opened.aclose()

    def llm_service(self) -> LLMService:
        return self._llm

    def speaker(self) -> Speaker:
        return Speaker(self._llm, min_grounding=self._settings.min_grounding)

    def engine_choice(self) -> EngineChoice:
        return EngineChoice(self._llm, self._settings.analyst, self._settings.analyst_fallback)

    def config_service(self, *, for_guest: bool = False) -> ConfigService:
        """A guest knows the desk's network only from outside, unless its owner says otherwise."""
        if not for_guest or self._settings.private_urls:
            return ConfigService(self._repository, self.registry)
        from moot.modules.llm_platform.infrastructure.public_web import leads_outside

        return ConfigService(self._repository, self.registry, leads_outside)

    def usage_service(self) -> UsageService:
        return UsageService(
            self._journal.usage if self._journal else None, self._clock, self._settings.currency
        )

    def web_to_search(self) -> WebSearchService | None:
        """For research: the service that is configured; on replay, if the session searched, whichever it was."""
        replay = current_replay()
        configured = bool(self._settings.bocha_api_key.get_secret_value() or self._settings.searxng_url)
        searched = configured if replay is None else replay.searched
        return self.web_search if searched else None

    def web_page_service(self) -> WebPageService:
        return WebPageService(
            lambda url: self._fetch(url),  # noqa: PLW0108 - not before it is called
            ExternalCalls(self._audit),
        )

    def llm_call_logs(self) -> LLMCallLogQueryService | None:
        return self._journal.model_calls if self._journal else None

    def external_call_logs(self) -> ExternalAPICallLogQueryService | None:
        return self._journal.external_calls if self._journal else None


LIMITS = ("price_in", "price_out", "timeout", "concurrency", "requests_per_minute", "tokens_per_minute")


def _environment_model(settings: Settings) -> list[LLMConfig]:
    """The model of `MOOT_LLM_*`, held to the same rules as a stored one; asked last."""
    if not settings.llm_base_url or not settings.llm_model:
        return []
    given = {
        "alias": DEFAULT_ALIAS,
        "vendor": ENVIRONMENT,
        "base_url": settings.llm_base_url,
        "model_name": settings.llm_model,
        "api_key": settings.llm_api_key.get_secret_value() or None,
        "proxy": settings.llm_proxy or None,
        "priority": 0,
    }
    given |= {name: getattr(settings, f"llm_{name}") for name in LIMITS}
    return [validate(ConfigBody, given).config()]
