"""What a reader may ask of the history: one strict shape for REST and the command line."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from moot.modules.coordinator.domain.model.session import (
    LAST_PAGE,
    MOST_PER_PAGE,
    SessionFilter,
    SessionStatus,
    VerdictAction,
)
from moot.modules.coordinator.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.moments import FIRST_DAY, Day, read_moment
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import Strict, refuse

D = TypeVar("D", bound=date)
LAST_YEAR = 2199


def _moment_in_utc(value: Any) -> datetime:
    """A day begins at midnight UTC."""
    moment = read_moment(value)
    return moment.astimezone(UTC) if isinstance(moment, datetime) else _midnight(moment)


def _not_too_late(value: D) -> D:
    """A day after the last one could not be counted any more."""
    if value.year > LAST_YEAR:
        raise refuse("out_of_range", got=f"'{value}'", allowed=[f"{FIRST_DAY} - {LAST_YEAR}-12-31"])
    return value


def _some_text(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise refuse("blank")
    return text


SomeDay = Annotated[Day, AfterValidator(_not_too_late)]
Moment = Annotated[datetime, BeforeValidator(_moment_in_utc), AfterValidator(_not_too_late)]

TWO_FORMS = {
    "created_after": "start_date",
    "created_before": "end_date",
    "skip": "page",
    "limit": "page_size",
}


class SessionQuery(Strict):
    """All conditions must hold. Periods and pages can be asked for in two forms, but not in both at once."""

    symbol: str | None = Field(default=None, examples=["900001.DEMO"])
    status: SessionStatus | None = None
    verdict_action: VerdictAction | None = Field(default=None, description="only sessions with this verdict")
    trigger_source: Annotated[str, AfterValidator(_some_text)] | None = Field(
        default=None, description="how they were started: api, cli, sdk, …"
    )
    start_date: SomeDay | None = Field(default=None, description="first day (UTC)")
    end_date: SomeDay | None = Field(default=None, description="last day (UTC)")
    page: int = Field(default=1, ge=1, le=LAST_PAGE)
    page_size: int = Field(default=20, ge=1, le=MOST_PER_PAGE)
    created_after: Moment | None = Field(default=None, description="from this moment on; or start_date")
    created_before: Moment | None = Field(default=None, description="before this moment; or end_date")
    skip: int | None = Field(default=None, ge=0, le=LAST_PAGE, description="how many to leave out; or page")
    limit: int | None = Field(default=None, ge=1, le=MOST_PER_PAGE, description="another name of page_size")

    def of(self, workspace_id: str) -> SessionFilter:
        """Raises `InvalidInput` for what no single field can be blamed for."""
        self._refuse_both_forms()
        start, end = self._period()
        return SessionFilter(
            workspace_id=workspace_id,
            symbol=None if self.symbol is None else Symbol.parse(self.symbol).text,
            created_from=start,
            created_before=end,
            page_size=self.limit or self.page_size,
            **self.model_dump(include={"status", "verdict_action", "trigger_source", "page", "skip"}),
        )

    def _refuse_both_forms(self) -> None:
        given = self.model_fields_set
        for other, field in TWO_FORMS.items():
            if other in given and field in given:
                raise InvalidInput(SAY("sessions.both_forms", field=other, other=field), field=other)

    def _period(self) -> tuple[datetime | None, datetime | None]:
        start = _midnight(self.start_date) if self.start_date else self.created_after
        end = _midnight(self.end_date) + timedelta(days=1) if self.end_date else self.created_before
        if start and end and start >= end:
            field = "end_date" if self.end_date else "created_before"
            raise InvalidInput(SAY("sessions.ends_first", field=field), field=field)
        return start, end


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)
