"""Search responses in SQL, until they are too old to stand for the web of today."""

from sqlalchemy import Connection, delete, select

from moot.modules.llm_platform.domain.search import CACHE_TIME, WebSearchRequest, WebSearchResponse
from moot.modules.llm_platform.infrastructure.tables import WebSearchCacheRow
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.transactions import transaction, upsert


class SqlSearchCache:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    async def get(self, key: str) -> WebSearchResponse | None:
        good = select(WebSearchCacheRow.response_data).where(
            WebSearchCacheRow.cache_key == key, WebSearchCacheRow.expires_at > self._clock.now()
        )
        async with transaction(self._database.session) as db:
            kept = await db.scalar(good)
        return WebSearchResponse.model_validate_json(kept) if kept else None

    async def put(self, key: str, request: WebSearchRequest, response: WebSearchResponse) -> None:
        now = self._clock.now()
        row = {
            "cache_key": key,
            "request_params": request.model_dump(mode="json"),
            "response_data": response.model_dump_json(),
            "created_at": now,
            "expires_at": now + CACHE_TIME[request.freshness],
        }

        def write(db: Connection) -> None:
            upsert(db, WebSearchCacheRow, [row])

        await self._database.write(write)

    async def cleanup_expired(self) -> int:
        removed = 0

        def write(db: Connection) -> None:
            nonlocal removed
            expired = WebSearchCacheRow.expires_at <= self._clock.now()
            gone = db.scalars(delete(WebSearchCacheRow).where(expired).returning(WebSearchCacheRow.cache_key))
            removed = len(gone.all())

        await self._database.write(write)
        return removed
