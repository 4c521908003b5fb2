"""Wires the keys to where they are kept."""

from moot.modules.access.application.access_service import AccessService
from moot.modules.access.infrastructure import SqlKeyRepository
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.database import Database


class AccessContainer:
    """`database` None: nothing is stored, so there are no keys."""

    def __init__(self, database: Database | None, clock: Clock) -> None:
        self._service = AccessService(SqlKeyRepository(database) if database else None, clock)

    def access_service(self) -> AccessService:
        return self._service

    async def close(self) -> None:
        await self._service.finish()
