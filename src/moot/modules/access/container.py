"""Wires the keys to where they are kept."""

from moot.modules.access.application import AccessService
from moot.modules.access.infrastructure import SqlKeyRepository
from moot.shared.domain.clock import Clock
from moot.shared.infrastructure.database import Database


def access_service(database: Database | None, clock: Clock) -> AccessService:
    """`database` None: nothing is stored, so there are no keys."""
    return AccessService(SqlKeyRepository(database) if database else None, clock)
