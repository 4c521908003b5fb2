"""What a desk can be asked, wherever it stands; and the same for code that does not await."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import date, datetime
from inspect import iscoroutinefunction
from threading import Thread
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack
from uuid import UUID

from moot.modules.coordinator.application.dtos.research_dtos import EXPERTS, Asking, ResearchResult
from moot.modules.coordinator.application.run import Watch
from moot.modules.coordinator.application.session_history import SessionDetail, SessionEvent, SessionPage
from moot.modules.jobs.application.watch import DEFAULT_LIST, Watchlist
from moot.shared.domain.messages import DEFAULT_LOCALE
from moot.shared.domain.validation import refuse_field

if TYPE_CHECKING:
    from moot.modules.coordinator.application.contest import ContestResult, Move
    from moot.modules.intake.application.intake_service import Conversation, PlanDecision, Style
    from moot.modules.jobs.application.batches import BatchPage, BatchResults, BatchView, Format
    from moot.modules.jobs.application.schedules import ScheduleList, ScheduleView
    from moot.modules.market_data.application.sql import QueryResult
    from moot.shared.domain.audit import Verification
    from moot.shared.domain.messages import Locale

P = ParamSpec("P")
T = TypeVar("T")
Body = Mapping[str, Any]
Work = Coroutine[Any, Any, T]
Id = UUID | str
"""Results say the id of their session as text, sessions as what it is."""


def as_id(given: Id) -> UUID:
    """Raises `InvalidInput` for what is no id."""
    try:
        return UUID(str(given))
    except ValueError:
        raise refuse_field("uuid_parsing", "session_id", given) from None


class Desk(ABC):
    """One's own or another's: the same methods, answers and errors. Open it with `async with`."""

    locale: Locale | None
    """Of questions that name none; None: the desk elsewhere decides."""

    async def __aenter__(self) -> Self:
        return self

    @abstractmethod
    async def __aexit__(self, *_error: object) -> None: ...

    async def research(
        self,
        symbol: str,
        experts: Sequence[str] = EXPERTS,
        *,
        watch: Watch | None = None,
        **more: Unpack[Asking],
    ) -> ResearchResult:
        """Ask the experts about `symbol`, let bull and bear argue, and have the judge rule.

        `watch` is called with all that the session tells. Raises `InvalidInput` for a question that cannot be asked,
        `AllExpertsFailed` when nobody had an answer.
        """
        return await self._research(self._question(symbol, experts, more), watch)

    async def start(
        self,
        symbol: str,
        experts: Sequence[str] = EXPERTS,
        *,
        idempotency_key: str | None = None,
        **more: Unpack[Asking],
    ) -> SessionDetail:
        """Ask, and go on with something else: the session runs in the background while the desk is open.

        `events` follows it, `result` is its answer. The same key and question give the same session.
        Raises `Conflict` for a key that came with another question, `Unavailable` where nothing can be stored.
        """
        return await self.session(await self._start(self._question(symbol, experts, more), idempotency_key))

    def _question(self, symbol: str, experts: Sequence[str], more: Asking) -> dict[str, Any]:
        said = {name: value for name, value in more.items() if value is not None}
        return {"symbol": symbol, "experts": list(experts), "locale": self.locale, **said}

    @abstractmethod
    async def _research(self, question: Body, watch: Watch | None) -> ResearchResult: ...

    @abstractmethod
    async def _start(self, question: Body, idempotency_key: str | None) -> UUID: ...

    @abstractmethod
    async def retry(
        self, session_id: Id, *, skip_debate: bool | None = None, watch: Watch | None = None
    ) -> ResearchResult:
        """Run again what failed in a session, as of its moment; what had succeeded is reused. The debate is skipped
        if it was, unless told.

        Raises `SessionNotFound`, `SessionRunning`, `SessionNotRetryable`, or `AllExpertsFailed` once more.
        """

    @abstractmethod
    async def contest(self, session_id: Id, moves: Sequence[Move | Mapping[str, Any]]) -> ContestResult:
        """What the verdict would be after these moves: `Move(move="strike", claim="technical.rsi")`. The argument on
        record is weighed again, without a model, in a session of its own.

        Raises `SessionNotFound`, `SessionRunning`, `NothingToContest`, or `InvalidInput` for a claim nobody made.
        """

    @abstractmethod
    def events(self, session_id: Id, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        """What happens in a session and what has happened, from the event after `after` to `done`."""

    @abstractmethod
    async def cancel(self, session_id: Id) -> SessionDetail:
        """Stop a session, wherever it runs; raises `SessionEnded` when there is nothing to stop."""

    @abstractmethod
    async def result(self, session_id: Id) -> ResearchResult:
        """The answer a session gave; raises `SessionRunning` until it has ended."""

    @abstractmethod
    async def sessions(self, symbol: str | None = None, *, page: int = 1, page_size: int = 20) -> SessionPage:
        """Sessions of the workspace, newest first."""

    @abstractmethod
    async def session(self, session_id: Id) -> SessionDetail:
        """A session with all its nodes."""

    @abstractmethod
    async def verify(self, session_id: Id) -> Verification:
        """Whether the record of a session is still what was written."""

    @abstractmethod
    async def watchlist(self, list_name: str | None = None) -> Watchlist:
        """What is watched, on all lists or on that one: each symbol with its last verdict and the one before."""

    @abstractmethod
    async def add_to_watchlist(self, *symbols: str, list_name: str = DEFAULT_LIST) -> Watchlist:
        """The list with these on it; one that was there stays. Raises `InvalidInput` for what means no share."""

    @abstractmethod
    async def remove_from_watchlist(self, *symbols: str, list_name: str = DEFAULT_LIST) -> Watchlist:
        """The list without these. Raises `NotFound` for one that is not on it."""

    async def start_batch(
        self,
        *universe: str,
        name: str | None = None,
        top: int = 10,
        skip_unknown: bool = False,
        experts: Sequence[str] = EXPERTS,
        **more: Unpack[Asking],
    ) -> BatchView:
        """Look through many shares by rule, and have the desk judge the `top` of them: codes or names, `watch:NAME`,
        `all`, `csi300`. `max_cost` is for all of them together.

        It runs in the background while a desk works. Raises `InvalidInput` for what means no share, unless told to
        skip that.
        """
        said = {key: value for key, value in more.items() if value is not None}
        asked = {"universe": list(universe), "name": name, "top": top, "skip_unknown": skip_unknown}
        return await self._start_batch({**asked, "experts": list(experts), "locale": self.locale, **said})

    @abstractmethod
    async def batches(self, name: str | None = None, *, page: int = 1, page_size: int = 20) -> BatchPage:
        """Newest first, with how far each is."""

    @abstractmethod
    async def batch(self, batch_id: UUID) -> BatchView:
        """One, and how far it is. Raises `NotFound`."""

    @abstractmethod
    async def batch_results(self, batch_id: UUID) -> BatchResults:
        """The ranked table, as far as there is one, with what was different the last time."""

    async def export_batch(self, batch_id: UUID, to: Format = "csv") -> bytes:
        """The same as a file: json, csv, parquet or html."""
        from moot.modules.jobs.application.batch_report import render  # noqa: PLC0415 (only for a file)

        return render(await self.batch_results(batch_id), to, self.locale or DEFAULT_LOCALE)

    @abstractmethod
    async def pause_batch(self, batch_id: UUID) -> BatchView:
        """Nothing new begins, what runs comes to its end. Raises `Conflict` unless it runs."""

    @abstractmethod
    async def resume_batch(self, batch_id: UUID) -> BatchView:
        """Go on with one that was paused. Raises `Conflict` when it has ended."""

    @abstractmethod
    async def cancel_batch(self, batch_id: UUID) -> BatchView:
        """Cancel what waits and what runs. Raises `Conflict` when it has ended."""

    @abstractmethod
    async def _start_batch(self, request: Body) -> BatchView: ...

    @abstractmethod
    async def schedules(self) -> ScheduleList:
        """What is researched without being asked again, each with its last run."""

    @abstractmethod
    async def schedule(self, name: str) -> ScheduleView:
        """With its latest runs. Raises `NotFound`, as those below."""

    async def add_schedule(
        self,
        /,
        name: str,
        universe: Sequence[str],
        *,
        at: str | None = None,
        every: str = "day",
        market: str | None = None,
        **more: Any,
    ) -> ScheduleView:
        """Research `universe` on trading days from now on, at that time of the exchange, or once a `week`; `more` is
        what a batch can be asked. Raises `Conflict` for a name that is taken."""
        request = {"universe": list(universe), "locale": self.locale, **more}
        body = {"name": name, "at": at, "every": every, "market": market, "request": request}
        return await self._add_schedule(body)

    @abstractmethod
    async def pause_schedule(self, name: str) -> ScheduleView:
        """Nothing falls due until it is resumed; what has begun goes on."""

    @abstractmethod
    async def resume_schedule(self, name: str) -> ScheduleView:
        """Go on with the next due moment: what passed meanwhile is not made up for."""

    @abstractmethod
    async def remove_schedule(self, name: str) -> ScheduleView:
        """A batch that has begun goes on, what had still to begin does not."""

    @abstractmethod
    async def run_schedule(self, name: str) -> ScheduleView:
        """Once more, as of now; whoever works begins it."""

    @abstractmethod
    async def _add_schedule(self, body: Body) -> ScheduleView: ...

    async def ask(
        self,
        question: str,
        *,
        thread: UUID | None = None,
        style: Style = "research",
        accept_plan: bool = False,
        locale: str | None = None,
    ) -> Conversation:
        """Ask in your own words. Unless `accept_plan`, a plan waits for `answer_plan` before anybody researches.

        The last of its turns has the answer; what keeps a question from one is that turn's `error`.
        """
        asked = {
            "question": question,
            "thread_id": thread,
            "style": style,
            "auto_accepted_plan": accept_plan,
            "locale": locale,
        }
        return await self._ask(asked)

    async def answer_plan(self, thread: UUID, decision: PlanDecision, text: str = "") -> Conversation:
        """Say yes or no to the plan a conversation waits with, or what is to change about it."""
        return await self._answer_plan(thread, {"decision": decision, "text": text})

    @abstractmethod
    async def _ask(self, question: Body) -> Conversation: ...

    @abstractmethod
    async def _answer_plan(self, thread: UUID, said: Body) -> Conversation: ...

    @abstractmethod
    async def conversation(self, thread: UUID) -> Conversation: ...

    async def query(
        self, sql: str, *, as_of: date | datetime | str | None = None, locale: Locale | None = None
    ) -> QueryResult:
        """One SELECT over the market data as known then, run as the rules allow it; a day means its end in UTC.

        Raises `Forbidden` where they do not, `Conflict` with an `escalation_id` in its details where a person has to
        decide, `InvalidInput` for what does not run. From a desk elsewhere, days and moments in rows come as text.
        """
        return await self._query({"sql": sql, "as_of": as_of}, locale)

    @abstractmethod
    async def _query(self, query: Body, locale: Locale | None) -> QueryResult: ...


def _wait_for(
    method: Callable[Concatenate[Desk, P], Work[T]],
) -> Callable[Concatenate[BlockingDesk[Any], P], T]:
    """The same method, which returns when it is done; whoever is interrupted meanwhile interrupts it."""

    def call(self: BlockingDesk[Any], /, *given: P.args, **named: P.kwargs) -> T:
        done: T = self.wait(getattr(self.desk, method.__name__)(*given, **named))
        return done

    call.__doc__ = method.__doc__
    return call


D = TypeVar("D", bound=Desk)


class BlockingDesk(Generic[D]):
    """The same methods, run on a loop in a thread of its own. Open it with `with`. What only `desk` itself can do
    blocks here, too."""

    def __init__(self, desk: D) -> None:
        self.desk = desk
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="moot-desk", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.wait(self.desk.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.wait(self.desk.__aexit__(*error))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def wait(self, work: Work[T]) -> T:
        """What `work` comes to; raises what it raises."""
        under_way = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return under_way.result()
        except BaseException:
            under_way.cancel()
            raise

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.desk, name)
        if not iscoroutinefunction(found):
            return found
        return lambda *given, **named: self.wait(found(*given, **named))

    def events(self, session_id: Id, *, after: int = 0) -> Iterator[SessionEvent]:
        """As they come, from the event after `after` to `done`."""
        told = aiter(self.desk.events(session_id, after=after))

        async def hear() -> SessionEvent | None:
            return await anext(told, None)

        while (event := self.wait(hear())) is not None:
            yield event

    research = _wait_for(Desk.research)
    start = _wait_for(Desk.start)
    retry = _wait_for(Desk.retry)
    contest = _wait_for(Desk.contest)
    cancel = _wait_for(Desk.cancel)
    result = _wait_for(Desk.result)
    sessions = _wait_for(Desk.sessions)
    session = _wait_for(Desk.session)
    verify = _wait_for(Desk.verify)
    watchlist = _wait_for(Desk.watchlist)
    add_to_watchlist = _wait_for(Desk.add_to_watchlist)
    remove_from_watchlist = _wait_for(Desk.remove_from_watchlist)
    start_batch = _wait_for(Desk.start_batch)
    batches = _wait_for(Desk.batches)
    batch = _wait_for(Desk.batch)
    batch_results = _wait_for(Desk.batch_results)
    export_batch = _wait_for(Desk.export_batch)
    pause_batch = _wait_for(Desk.pause_batch)
    resume_batch = _wait_for(Desk.resume_batch)
    cancel_batch = _wait_for(Desk.cancel_batch)
    schedules = _wait_for(Desk.schedules)
    schedule = _wait_for(Desk.schedule)
    add_schedule = _wait_for(Desk.add_schedule)
    pause_schedule = _wait_for(Desk.pause_schedule)
    resume_schedule = _wait_for(Desk.resume_schedule)
    remove_schedule = _wait_for(Desk.remove_schedule)
    run_schedule = _wait_for(Desk.run_schedule)
    ask = _wait_for(Desk.ask)
    answer_plan = _wait_for(Desk.answer_plan)
    conversation = _wait_for(Desk.conversation)
    query = _wait_for(Desk.query)
