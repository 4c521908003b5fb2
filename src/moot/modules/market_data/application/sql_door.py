"""SQL for people: the `database` tool, as far as the rules allow it."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, BeforeValidator, Field

from moot.modules.market_data.application.query_result import QueryResult
from moot.modules.market_data.application.sql_tables import EARLIEST, DatabaseTool
from moot.shared.domain.clock import Clock
from moot.shared.domain.messages import Locale, Message
from moot.shared.domain.validation import Strict, checked, refuse, refused

DATABASE = "database"
LONGEST = 100_000
NO_TEXT = re.compile("[\x00\ud800-\udfff]")


def _storable(text: str) -> str:
    """Whether it is SQL is for the rules to say; that it can be written down is asked for here."""
    if not text.strip():
        raise refuse("blank")
    if NO_TEXT.search(text):
        raise ValueError("holds a character that is none")
    return text


def _moment(value: Any) -> date | datetime:
    """A day, or a moment with its zone: without one it could be any of 24."""
    is_text = isinstance(value, str)
    found = _read(date.fromisoformat, value) or _read(datetime.fromisoformat, value) if is_text else value
    if not isinstance(found, date) or (isinstance(found, datetime) and found.tzinfo is None):
        raise refuse("moment_malformed", got=repr(value))
    if (found.date() if isinstance(found, datetime) else found) < EARLIEST:
        raise refuse("out_of_range", got=repr(value), allowed=[f">= {EARLIEST}"])
    return found


def _read(parse: Callable[[str], date], text: str) -> date | None:
    try:
        return parse(text)
    except ValueError:
        return None


class Statement(Strict):
    sql: Annotated[str, AfterValidator(_storable)] = Field(
        max_length=LONGEST, description="one SELECT", examples=["SELECT symbol, name FROM companies"]
    )


class SqlQuestion(Statement):
    as_of: Annotated[date | datetime, BeforeValidator(_moment)] | None = Field(
        default=None,
        description="what was known then: a day (its end, in UTC) or a moment with zone; default: now",
    )


class Allowed(Protocol):
    @property
    def args(self) -> Mapping[str, Any]: ...

    @property
    def notice(self) -> Message | None: ...


class ToolRules(Protocol):
    """The rules, as a tool meets them."""

    async def allowed(
        self,
        tool: str,
        args: Mapping[str, Any],
        context: Mapping[str, Any],
        *,
        requester: str,
        workspace: str,
    ) -> Allowed:
        """What may be done, on the record already, and what was changed for which reason.

        Raises `Forbidden` for no, and `Conflict` with an `escalation_id` where a person has to decide.
        """


class SqlDoor:
    def __init__(self, tool: DatabaseTool, rules: ToolRules, clock: Clock) -> None:
        self._tool, self._rules, self._clock = tool, rules, clock

    def tables(self) -> dict[str, list[str]]:
        return self._tool.tables()

    async def query(
        self, question: SqlQuestion | Mapping[str, Any], *, requester: str, workspace: str, locale: Locale
    ) -> QueryResult:
        """Raises `InvalidInput` for what cannot be run, and what `ToolRules` raises."""
        asked = question if isinstance(question, SqlQuestion) else checked(SqlQuestion, question)
        as_of = self._as_of(asked.as_of)
        context = {"locale": locale, "as_of": as_of.isoformat(), "open_breakers": []}
        allowed = await self._rules.allowed(
            DATABASE, {"sql": asked.sql}, context, requester=requester, workspace=workspace
        )
        result = await self._tool.query(checked(Statement, allowed.args).sql, as_of=as_of)
        if allowed.notice is None:
            return result
        return result.model_copy(update={"notices": (allowed.notice.in_locale(locale),)})

    def _as_of(self, asked: date | datetime | None) -> datetime:
        """A day means its end in UTC; today's is now."""
        now = self._clock.now().astimezone(UTC)
        if asked is None or asked == now.date():
            return now
        if asked > now if isinstance(asked, datetime) else asked > now.date():
            raise refused("in_future", "as_of", asked.isoformat())
        moment = asked if isinstance(asked, datetime) else datetime.combine(asked, time.max, UTC)
        return moment.astimezone(UTC)
