"""The outbox: what is noted, by whom it is sent, and what becomes of what fails. On both databases."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr
from sqlalchemy import select
from structlog.testing import capture_logs

from moot.modules.coordinator.domain.model.session import ResearchSession
from moot.modules.coordinator.infrastructure.session_repository import SqlResearchSessionRepository
from moot.modules.jobs.application.delivery import HANDFUL, DeliveryService
from moot.modules.jobs.application.destinations import DestinationBody, DestinationService
from moot.modules.jobs.domain.destinations import (
    HELD,
    LONGEST_PAUSE,
    MOST_ATTEMPTS,
    DeliveryFailed,
    Destination,
    find_pause,
)
from moot.modules.jobs.domain.notices import Notice, Told
from moot.modules.jobs.domain.texts import SAY
from moot.modules.jobs.domain.watch import Ruling
from moot.modules.jobs.infrastructure.causes import NotificationRow, follow_causes
from moot.modules.jobs.infrastructure.notify_store import SqlNotifications
from moot.modules.llm_platform.infrastructure.config_repository import Cipher
from moot.shared.domain.errors import Conflict, InvalidInput, NotFound, Unavailable
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.transactions import transaction
from tests.fakes.clock import HandClock

NOW = datetime(2026, 6, 30, 10, 0, tzinfo=UTC)
ADDRESS = "https://chat.example/send?key=a-key-of-a-chat-group"
SYMBOL = "900001.DEMO"


@dataclass
class Mailbox:
    """Takes what it is sent, unless it is told to fail."""

    taken: list[tuple[str, Notice]] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    async def __call__(self, to: Destination, notice: Notice) -> None:
        await asyncio.sleep(0)  # as a network would, it lets others go on
        if self.errors:
            raise self.errors.pop(0)
        self.taken.append((to.name, notice))

    @property
    def titles(self) -> list[str]:
        return [notice.title for _, notice in self.taken]


class Shelf:
    """What the desk would find in its record, out of the sessions a test has ended."""

    def __init__(self) -> None:
        self.sessions: dict[UUID, ResearchSession] = {}

    async def on(self, symbol: str, workspace: str) -> list[Ruling]:
        mine = (s for s in self.sessions.values() if (s.symbol, s.workspace_id) == (symbol, workspace))
        return [ruling for session in mine if (ruling := self._rule(session))]

    async def tell(self, session_id: UUID, workspace: str) -> Told:
        session = self.sessions[session_id]
        return Told(
            symbol=session.symbol,
            names={"zh-CN": "幻山酒业", "en-US": "Mirage Hill Distillers"},
            locale=session.locale,
            horizon=session.horizon,
            as_of=session.as_of,
            ruling=self._rule(session),
            reason=session.reason or "Cheap.\nMore of it",
            notices={"zh-CN": ["不构成投资建议。"], "en-US": ["No advice."]},
        )

    def _rule(self, session: ResearchSession) -> Ruling | None:
        if session.verdict_status != "judged" or session.trigger_source == "contest":
            return None
        known = session.model_dump(include={"horizon", "as_of", "completed_at"})
        return Ruling(session_id=session.id, action=session.verdict_action, **known)


@dataclass
class Scene:
    database: Database
    clock: HandClock = field(default_factory=lambda: HandClock(NOW))
    mailbox: Mailbox = field(default_factory=Mailbox)
    shelf: Shelf = field(default_factory=Shelf)

    def __post_init__(self) -> None:
        trail = AuditTrail(self.database)
        follow_causes(trail)
        self.repository = SqlResearchSessionRepository(trail)
        self.store = SqlNotifications(self.database, Cipher("of the test"))

    def places(self, workspace: str = "default") -> DestinationService:
        return DestinationService(self.store, self.mailbox, self.clock, workspace)

    async def add(self, name: str = "team", workspace: str = "default", **more: Any) -> None:
        given = {"kind": "wecom", "url": SecretStr(ADDRESS), "locale": "en-US", **more}
        await self.places(workspace).add(DestinationBody(name=name, **given))

    def worker(self) -> DeliveryService:
        parts = self.store, self.shelf, self.mailbox, self.clock
        return DeliveryService(*parts, chance=lambda: 0.5)

    async def deliver(self) -> int:
        return await self.worker().deliver_due()

    async def end(self, action: str | None = None, **more: Any) -> UUID:
        """A session that ends a minute later, with that verdict, or failed."""
        judged = {"verdict_status": "judged", "verdict_action": action, "status": "completed"}
        failed = {"verdict_status": "failed", "status": "failed", "reason": "nobody had an answer"}
        self.clock.move(60)
        given: dict[str, Any] = {"as_of": self.clock.now(), "locale": "en-US", "workspace_id": "default"}
        session = ResearchSession(
            **given
            | {"id": uuid4(), "symbol": SYMBOL, "experts": [], "created_at": self.clock.now()}
            | {"completed_at": self.clock.now()}
            | (judged if action else failed)
            | more
        )
        await self.repository.save_session(session)
        await self.repository.update_session(session)
        self.shelf.sessions[session.id] = session
        return session.id

    async def rows(self) -> list[NotificationRow]:
        async with transaction(self.database.session) as db:
            return list(await db.scalars(select(NotificationRow).order_by(NotificationRow.created_at)))


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


async def test_another_verdict_is_told_and_the_same_is_not(scene):
    await scene.add()
    for action in ("HOLD", "HOLD", "BUY", "BUY", "SELL"):
        await scene.end(action)
    assert await scene.deliver() == 2
    company = "Mirage Hill Distillers (900001.DEMO)"
    assert scene.mailbox.titles == [f"{company}: HOLD → BUY", f"{company}: BUY → SELL"]
    assert [row.status for row in await scene.rows()] == ["sent", "sent"]
    assert await scene.deliver() == 0


async def test_a_message_says_it_all_in_the_language_of_its_reader(scene):
    await scene.add("team", locale="zh-CN")
    await scene.add("desk", locale="en-US")
    await scene.end("HOLD")
    session = await scene.end("BUY")
    assert await scene.deliver() == 2
    told = dict(scene.mailbox.taken)
    assert told["desk"].text == (
        "Mirage Hill Distillers (900001.DEMO): HOLD → BUY\nWhy: Cheap.\n"
        f"Session {session}, as of 2026-06-30, over 20 trading days\nNo advice."
    )
    assert told["team"].text == (
        "幻山酒业（900001.DEMO）：观望 → 买入\n原因（英文原文）：Cheap.\n"
        f"会话 {session}，截至 2026-06-30，期限 20 个交易日\n不构成投资建议。"
    )
    assert (told["team"].action, told["team"].before, told["team"].session_id) == ("BUY", "HOLD", session)
    assert told["team"].id != told["desk"].id


async def test_what_changes_nothing_is_not_told(scene):
    await scene.add()
    await scene.end("HOLD")
    await scene.end("BUY", horizon=60)
    await scene.end("BUY", symbol="900002.DEMO")
    await scene.end("BUY", workspace_id="theirs")
    await scene.end("BUY", trigger_source="contest")
    await scene.end("SELL", as_of=NOW - timedelta(days=400))
    await scene.end("BUY", verdict_status="skipped", verdict_action=None, status="completed")
    await scene.end(status="cancelled")
    assert (await scene.deliver(), await scene.rows()) == (0, [])


async def test_a_failure_is_told_with_its_reason(scene):
    await scene.add()
    await scene.end()
    await scene.end(status="partial", reason="the judge failed\nwith details")
    assert await scene.deliver() == 2
    texts = [notice.text for _, notice in scene.mailbox.taken]
    assert "900001.DEMO): the research failed\nWhy: nobody had an answer\n" in texts[0]
    assert "Why: the judge failed\nSession" in texts[1]


async def test_only_what_a_destination_wants_is_noted(scene):
    await scene.add("ops", occasions=("failure",))
    await scene.add("elsewhere", workspace="theirs")
    await scene.end("HOLD")
    await scene.end("BUY")
    await scene.end()
    assert [row.occasion for row in await scene.rows()] == ["failure"]
    assert [row.about for row in await scene.rows()] == [{}]


async def test_where_nobody_is_told_nothing_is_written(scene):
    await scene.end("HOLD")
    await scene.end()
    assert await scene.rows() == []


async def test_the_note_stands_or_falls_with_what_caused_it(scene, monkeypatch):
    await scene.add()
    session = await scene.end()
    noted = scene.shelf.sessions[session]
    await scene.repository.update_session(noted)  # told twice, as after a crash, it is noted once
    assert len(await scene.rows()) == 1
    assert await scene.deliver() == 1
    await scene.repository.update_session(noted)
    assert await scene.deliver() == 0

    def fail(*_given: object, **_named: object) -> None:
        raise Unavailable("no room")

    monkeypatch.setattr("moot.modules.jobs.infrastructure.causes.upsert", fail)
    other = noted.model_copy(update={"id": uuid4()})
    await scene.repository.save_session(other.model_copy(update={"status": "running"}))
    with pytest.raises(Unavailable):
        await scene.repository.update_session(other)
    stored = await scene.repository.get_session_by_id(other.id, None)
    assert (stored.status, len(await scene.rows())) == ("running", 1)


async def test_what_failed_is_tried_again_later_and_later(scene):
    await scene.add()
    await scene.end()
    scene.mailbox.errors = [DeliveryFailed(SAY("delivery.timeout", place="it", seconds=1)) for _ in range(2)]
    assert await scene.deliver() == 0
    (row,) = await scene.rows()
    assert (row.status, row.attempts, row.due_at) == (
        "due",
        1,
        pytest.approx(scene.clock.now() + timedelta(seconds=33), abs=SECOND),
    )
    assert row.error == "it did not answer within 1 seconds."
    scene.clock.move(32)
    assert await scene.deliver() == 0
    scene.clock.move(2)
    assert await scene.deliver() == 0
    scene.clock.move(60)
    assert (await scene.deliver(), len(scene.mailbox.errors)) == (0, 0)
    scene.clock.move(7)
    assert await scene.deliver() == 1
    (row,) = await scene.rows()
    assert (row.status, row.attempts, row.error) == ("sent", 3, None)


SECOND = timedelta(seconds=1)


def test_pauses_grow_to_an_hour_and_heed_what_is_asked_for():
    pauses = [find_pause(n, 0.0, 0.0).total_seconds() for n in range(1, MOST_ATTEMPTS)]
    assert pauses == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert find_pause(1, 0.0, 1.0).total_seconds() == 36
    assert find_pause(1, 90.0, 0.5).total_seconds() == 90
    assert find_pause(1, 10.0**9, 0.5).total_seconds() == LONGEST_PAUSE


async def test_what_always_fails_is_given_up_where_everybody_sees_it(scene):
    await scene.add()
    await scene.end()
    gone = DeliveryFailed(SAY("delivery.status", place="it", status=500, said="down"))
    scene.mailbox.errors = [gone] * MOST_ATTEMPTS
    with capture_logs() as logs:
        for _ in range(MOST_ATTEMPTS):
            assert await scene.deliver() == 0
            scene.clock.move(2 * LONGEST_PAUSE)
        assert await scene.deliver() == 0
    (given_up,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert (given_up["event"], given_up["attempts"]) == ("notification given up", MOST_ATTEMPTS)
    (view,) = await scene.places().list()
    assert (view.sent, view.waiting, view.given_up) == (0, 0, 1)
    assert view.last_error == "it answered with HTTP 500: down"
    assert ADDRESS not in f"{logs} {view!r} {view.model_dump_json()}"
    assert "a-key-of-a-chat-group" not in f"{logs} {view!r} {view.model_dump_json()}"


async def test_a_defect_keeps_nothing_else_from_being_sent(scene):
    await scene.add()
    await scene.end()
    await scene.end()
    scene.mailbox.errors = [KeyError("a defect")]
    with capture_logs() as logs:
        assert await scene.deliver() == 1
    assert [(entry["log_level"], type(entry["exc_info"])) for entry in logs] == [("warning", KeyError)]
    assert sorted(row.status for row in await scene.rows()) == ["due", "sent"]


async def test_the_longest_message_fits_the_strictest_service(scene, monkeypatch):
    await scene.add(locale="zh-CN")
    await scene.end(reason="很" * 5000, locale="zh-CN")

    async def tell(session_id: UUID, workspace: str) -> Told:
        told = await Shelf.tell(scene.shelf, session_id, workspace)
        return told.model_copy(update={"names": {"zh-CN": "长" * 500}})

    monkeypatch.setattr(scene.shelf, "tell", tell)
    assert await scene.deliver() == 1
    ((_, notice),) = scene.mailbox.taken
    assert "很" in notice.text
    assert len(notice.text.encode()) < 1500


async def test_what_cannot_pass_is_given_up_at_once(scene):
    await scene.add()
    await scene.end()
    scene.mailbox.errors = [DeliveryFailed(SAY("delivery.nothing"), passing=False)]
    await scene.deliver()
    assert [(row.status, row.attempts) for row in await scene.rows()] == [("given_up", 1)]


async def test_two_workers_never_send_the_same(scene):
    for name in ("a", "b", "c"):
        await scene.add(name)
    for _ in range(5):
        await scene.end()
    workers = [scene.worker() for _ in range(4)]
    sent = await asyncio.gather(*(worker.deliver_due() for worker in workers))
    assert sum(sent) == 15
    assert len({notice.id for _, notice in scene.mailbox.taken}) == len(scene.mailbox.taken) == 15


async def test_what_a_worker_took_and_never_sent_another_sends(scene):
    await scene.add()
    await scene.end()
    (row,) = await scene.store.find_due(scene.clock.now(), 10)
    (taken,) = await scene.store.claim([row], scene.clock.now())
    assert (await scene.store.claim([row], scene.clock.now()), await scene.deliver()) == ([], 0)
    scene.clock.move(HELD.total_seconds())
    assert await scene.deliver() == 1
    await scene.store.postpone(taken, scene.clock.now(), "too late")  # it changes nothing any more
    assert [(row.status, row.error) for row in await scene.rows()] == [("sent", None)]


async def test_many_at_once_are_one_message_with_the_urgent_on_top(scene):
    await scene.add("desk", locale="en-US")
    await scene.add("team", locale="zh-CN")
    for n in range(121):
        await scene.end("HOLD" if n % 2 else "BUY")
    await scene.end(symbol="900002.DEMO")
    assert await scene.deliver() == 2 * 121
    by_place = dict(scene.mailbox.taken)
    assert len(scene.mailbox.taken) == 2
    first = by_place["desk"]
    title, failed, *_ = first.text.split("\n")
    assert title == first.title == "121 notifications: 1 failed, 120 changed verdicts"
    assert failed == "Mirage Hill Distillers (900002.DEMO): the research failed"
    assert first.text.endswith("more\nNo advice.")
    assert len(first.text.encode()) <= 2048
    assert by_place["team"].title == "121 条通知：研究失败 1 条、裁决变化 120 条"
    assert by_place["team"].text.endswith("条\n不构成投资建议。")
    assert len({item.session_id for item in first.items}) == 121, "in full for whoever reads the items"
    assert {row.status for row in await scene.rows()} == {"sent"}


async def test_a_handful_comes_one_by_one_and_what_says_nothing_does_not_count(scene):
    await scene.add()
    for _ in range(HANDFUL):
        await scene.end()
    assert await scene.deliver() == HANDFUL
    assert {notice.occasion for _, notice in scene.mailbox.taken} == {"failure"}
    for _ in range(20):
        await scene.end("BUY")
    await scene.end("HOLD")
    assert (await scene.deliver(), scene.mailbox.taken[-1][1].occasion) == (1, "verdict")


async def test_a_digest_that_fails_is_told_again_as_one_with_what_came_meanwhile(scene):
    await scene.add()
    for _ in range(HANDFUL + 1):
        await scene.end()
    scene.mailbox.errors = [DeliveryFailed(SAY("delivery.nothing"))]
    assert await scene.deliver() == 0
    assert {(row.status, row.attempts) for row in await scene.rows()} == {("due", 1)}
    await scene.end()
    scene.clock.move(60)
    assert (await scene.deliver(), len(scene.mailbox.taken)) == (HANDFUL + 2, 1)


async def test_what_cannot_be_told_keeps_nothing_out_of_a_digest(scene):
    await scene.add()
    ids = [await scene.end() for _ in range(HANDFUL + 2)]
    del scene.shelf.sessions[ids[0]]
    assert (await scene.deliver(), len(scene.mailbox.taken[0][1].items)) == (HANDFUL + 1,) * 2
    assert sorted(row.status for row in await scene.rows()) == ["due"] + ["sent"] * (HANDFUL + 1)


async def test_two_workers_make_one_digest(scene):
    await scene.add()
    for _ in range(3 * HANDFUL):
        await scene.end()
    workers = [scene.worker() for _ in range(4)]
    sent = await asyncio.gather(*(worker.deliver_due() for worker in workers))
    assert (sum(sent), len(scene.mailbox.taken)) == (3 * HANDFUL, 1)


def half_reached(scene: Scene) -> DeliveryService:
    """A worker that cannot reach the place `down`."""

    async def send(to: Destination, notice: Notice) -> None:
        if to.name == "down":
            raise DeliveryFailed(SAY("delivery.nothing"))
        await scene.mailbox(to, notice)

    return DeliveryService(scene.store, scene.shelf, send, scene.clock)


async def test_a_place_that_is_down_keeps_no_other_waiting(scene):
    await scene.add("up")
    await scene.add("down")
    await scene.end()
    worker = half_reached(scene)
    assert await worker.deliver_due() == 1
    assert {view.name: (view.sent, view.waiting) for view in await scene.places().list()} == {
        "down": (0, 1),
        "up": (1, 0),
    }


async def test_a_place_with_a_long_queue_does_not_fill_the_rounds_while_it_is_down(scene, monkeypatch):
    monkeypatch.setattr("moot.modules.jobs.application.delivery.AT_ONCE", 3)
    await scene.add("down")
    for _ in range(4):
        await scene.end()
    await scene.add("up")
    await scene.end()
    worker = half_reached(scene)
    assert [await worker.deliver_due() for _ in range(2)] == [0, 1]
    waiting = [row.attempts for row in await scene.rows() if row.status == "due"]
    assert sorted(waiting) == [0, 0, 0, 0, 1], "one was tried for all of them"


async def test_secrets_are_stored_encrypted_and_another_key_cannot_read_them(scene):
    await scene.add(kind="dingtalk", secret=SecretStr("signing secret"))
    (known,) = await scene.store.list("default")
    assert (known.url.get_secret_value(), known.secret.get_secret_value()) == (ADDRESS, "signing secret")
    await scene.end()
    other = SqlNotifications(scene.database, Cipher("of somebody else"))
    (locked,) = await other.list("default")
    assert (locked.unreadable, locked.url.get_secret_value(), locked.place) == (
        True,
        "",
        "https://chat.example",
    )
    worker = DeliveryService(other, scene.shelf, scene.mailbox, scene.clock)
    assert await worker.deliver_due() == 0
    (row,) = await scene.rows()
    assert "encrypted with another secret" in row.error


async def test_old_ones_are_forgotten_and_so_is_what_went_to_nobody(scene):
    await scene.add()
    await scene.add("gone")
    await scene.end()
    assert await scene.deliver() == 2
    await scene.places().remove("gone")
    assert len(await scene.rows()) == 1
    scene.clock.move(31 * 24 * 3600)
    await scene.end()
    await scene.deliver()
    assert [row.created_at for row in await scene.rows()] == [scene.clock.now()]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "a b"}, "1 to 64 printable characters"),
        ({"url": "ftp://chat.example/x"}, "begin with one of http, https"),
        ({"url": "https://user:hunter22@chat.example/x"}, "not usable"),
        ({"url": "https://chat.example/a b"}, "not usable"),
        ({"url": "https://"}, "not usable"),
        ({"secret": "s"}, "wecom has no signatures"),
        ({"kind": "email", "url": "smtp://mail.example"}, "a sender and at least one recipient"),
        (
            {"kind": "email", "url": "smtp://h", "sender": "a@b", "recipients": ("x\r\nBcc: y@z",)},
            "not an e-mail",
        ),
        ({"kind": "email", "url": "https://h", "sender": "a@b", "recipients": ("a@b",)}, "smtp, smtps"),
    ],
)
async def test_what_cannot_be_sent_to_is_refused(sqlite_database, given, said):
    scene = Scene(sqlite_database)
    whole = {"name": "team", "kind": "wecom", "url": ADDRESS, **given}
    with pytest.raises(InvalidInput) as refused:
        await scene.places().add(DestinationBody(**whole))
    assert said in str(refused.value)
    assert "hunter22" not in str(refused.value)


async def test_a_name_is_taken_once_in_a_workspace(sqlite_database):
    scene = Scene(sqlite_database)
    await scene.add()
    await scene.add(workspace="theirs")
    with pytest.raises(Conflict, match="There is a destination team already"):
        await scene.add()
    with pytest.raises(NotFound, match=r"There is no destination tema\. Did you mean team\?"):
        await scene.places().remove("tema")
    await scene.places().test("team")
    assert scene.mailbox.titles == ["Moot can reach team. This is a test."]
