"""Many shares at once: what is asked, how far it is, and the ranked table that comes of it."""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any, Literal, Protocol
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, Field, StrictBool

from moot.shared.domain.brief import Brief, Usage
from moot.shared.domain.claims import Action
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.leases import Leases
from moot.shared.domain.universe import Screening
from moot.shared.domain.validation import Strict
from moot.shared.infrastructure.frames import Table

MOST_SHARES = 10_000
MOST_JUDGED = 1_000
LONGEST_NAME = 64
WATCHED = "watch:"
"""Before the name of a watch-list."""

BatchStatus = Literal["running", "paused", "cancelled", "done", "failed"]
Format = Literal["json", "csv", "parquet", "html"]


class BatchRequest(Strict, Brief):
    """What is done with every share is the brief, `max_cost` the limit for all of them together.

    `universe` is as it was given, so that it can be asked again on another day: shares by a code in any spelling, or
    by a name; `watch:NAME` for a watch-list, `all` for every listed company, `csi300` or `csi500` for an index.
    """

    universe: list[str] = Field(min_length=1, max_length=MOST_SHARES, examples=[["csi300"]])
    name: str = Field(
        default_factory=lambda given: ", ".join(given.get("universe", ()))[:LONGEST_NAME],
        min_length=1,
        max_length=LONGEST_NAME,
        description="batches of one name are compared with each other; default: the universe",
    )
    top: int = Field(
        default=10,
        ge=0,
        le=MOST_JUDGED,
        description="how many the desk judges, of those that lead the screen",
    )
    skip_unknown: StrictBool = Field(
        default=False, description="whether to go on without what means no share; listed in left_out"
    )
    experts: list[ExpertType] = Field(default_factory=lambda: list(ExpertType), min_length=1, max_length=100)


class LeftOut(BaseModel, frozen=True):
    """What was given and means no share, and why."""

    given: str
    why: str


class Batch(BaseModel, frozen=True):
    """`ended_at` None: somebody sees to it until nothing is left to do. `reason` says why it failed, or did less than
    was asked."""

    id: UUID
    workspace_id: str
    name: str
    status: BatchStatus
    as_of: AwareDatetime
    request: BatchRequest
    created_at: AwareDatetime
    ended_at: AwareDatetime | None = None
    requested_by: str | None = None
    reason: str | None = None
    over_limit: bool = False
    """It may cost no more: what had not begun by then was left."""
    left_out: list[LeftOut] = []
    shares: int
    """In the universe; `screened` are those of them that could be ranked, None: nobody has looked yet."""
    screened: int | None = None


State = Literal[
    "judged",
    "abstained",
    "unjudged",
    "failed",
    "waiting",
    "running",
    "asked",
    "cancelled",
    "unpaid",
    "screened",
    "set_aside",
]
"""How a share fared. Those that the desk was to judge: `unjudged`, as no debate was wanted; `asked`: a person is;
`unpaid`: not begun, as the money was spent. The others were looked at by rule only, or could not be."""
PENDING: Collection[State] = ("waiting", "running", "asked")


class Progress(BaseModel, frozen=True):
    """`states` count those that the desk is to judge. `cost` None: some model has no price."""

    states: dict[State, int] = {}
    requests: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    currency: str = ""

    @property
    def chosen(self) -> int:
        return sum(self.states.values())

    @property
    def ended(self) -> int:
        return sum(count for state, count in self.states.items() if state not in PENDING)


class BatchView(Batch):
    """A batch, and how far it is."""

    progress: Progress


class BatchPage(BaseModel, frozen=True):
    """Newest first."""

    items: list[BatchView]
    total: int


class Ruled(BaseModel, frozen=True):
    """How the desk left a share. `lean` is that of its verdict, from -1 to 1."""

    state: State
    action: Action | None = None
    lean: float | None = None
    confidence: float | None = None
    position_percent: float | None = None


class Answer(Ruled, Usage):
    """What became of a session of a batch."""

    session_id: UUID
    symbol: str
    reason: str | None = None
    over_limit: bool = False
    """A model was not asked as that could have cost more than the batch may."""


class Before(BaseModel, frozen=True):
    """Of the last batch of the same name."""

    rank: int | None
    action: Action | None
    lean: float | None


class Place(BaseModel, frozen=True):
    """Where a share stands: the first thing that is said."""

    rank: int | None
    symbol: str
    name: str
    basis: Literal["verdict", "screen"] | None


class Ranked(Ruled, Place):
    """`basis` is what its rank goes by: the verdict's lean, or that of the screen. Neither tells what will happen."""

    screen_rank: int | None = None
    screen_lean: float | None = None
    scores: dict[str, float | None] = {}
    data_until: date | None = None
    cost: float | None = None
    note: str = ""
    session_id: UUID | None = None
    before: Before | None = None


COLUMNS = tuple(name for name in Ranked.model_fields if name not in ("scores", "before"))
BEFORE = tuple(Before.model_fields)


class BatchResults(BaseModel, Table, frozen=True):
    """`rows` by rank, judged shares first, then those without a rank. `previous` is the last batch of the same name
    before this one, `gone` what was in it and is not in this one; `left_out` the experts no screen can ask."""

    batch: BatchView
    rows: list[Ranked]
    previous: Batch | None = None
    gone: list[str] = []
    left_out: list[str] = []
    notes: list[str] = []

    @property
    def changed(self) -> list[Ranked]:
        """Those on which the verdict is another than the last time."""
        judged = [row for row in self.rows if row.action and row.before and row.before.action]
        return [row for row in judged if row.before and row.action != row.before.action]

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
        """The scores and what was before in columns of their own."""
        scored = list(dict.fromkeys(name for row in self.rows for name in row.scores))
        columns = (*COLUMNS, *(f"before_{name}" for name in BEFORE), *scored)
        return columns, [self._list(row, scored) for row in self.rows]

    def _list(self, row: Ranked, scored: Sequence[str]) -> Sequence[Any]:
        told = row.model_copy(update={"session_id": str(row.session_id) if row.session_id else None})
        before = [getattr(row.before, name, None) for name in BEFORE]
        return [*(getattr(told, name) for name in COLUMNS), *before, *map(row.scores.get, scored)]


class BatchStore(Leases):
    """Where batches are kept. `workspace` None: of whichever."""

    @abstractmethod
    async def add(self, batch: Batch, symbols: Sequence[str]) -> None:
        """One that is there already stays as it is."""

    @abstractmethod
    async def find(self, batch_id: UUID, workspace: str | None = None) -> Batch | None: ...

    @abstractmethod
    async def find_page(
        self, workspace: str, name: str | None, page: int, size: int
    ) -> tuple[list[Batch], int]:
        """Newest first, and how many there are."""

    @abstractmethod
    async def find_ids(self, workspace: str, first: UUID, last: UUID) -> list[UUID]:
        """Newest first."""

    @abstractmethod
    async def find_previous(self, batch: Batch) -> Batch | None:
        """The last of the same name and workspace that is done and was begun before this one."""

    @abstractmethod
    async def find_open(self, now: AwareDatetime) -> list[UUID]:
        """Those of all workspaces that something is to be done for, and nobody does."""

    @abstractmethod
    async def update(self, batch_id: UUID, among: Collection[BatchStatus], **changes: Any) -> bool:
        """False where it is in none of these states, or has ended."""

    @abstractmethod
    async def read_symbols(self, batch_id: UUID) -> list[str]: ...

    @abstractmethod
    async def read_screening(self, batch_id: UUID) -> Screening | None: ...

    @abstractmethod
    async def keep_screening(self, batch_id: UUID, screening: Screening) -> None:
        """The first is kept."""


class Panel(Protocol):
    """The desk, as batches see it: which shares there are, the screen, and the sessions that judge."""

    async def find_shares(self, text: str, as_of: AwareDatetime) -> Sequence[str]:
        """The symbols of what a person means, of what was listed then: a company; `all`, those of the demo market
        where there is no other; the members of an index. Raise `InvalidInput` that helps, or `Unavailable` where no
        source tells the members."""

    def check(self, request: BatchRequest) -> None:
        """Raise `InvalidInput` for what no session can be asked."""

    async def screen(
        self, request: BatchRequest, symbols: Sequence[str], as_of: AwareDatetime
    ) -> Screening: ...

    async def ask(self, batch: Batch, symbol: str) -> None:
        """Have a session wait for a worker; of a batch and a symbol there is one, however often it is asked for."""

    async def list_answers(self, batch_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[Answer]]: ...

    async def find_batch(self, session_id: UUID) -> UUID | None:
        """Whose part a session is that has not begun."""

    async def wake(self, session_ids: Collection[UUID]) -> None:
        """Those that were held back, and whose turn is over: they get another."""

    async def cancel(self, session_id: UUID, workspace: str) -> None:
        """Unless it has ended."""
