"""Keys: made once, kept as digests, trusted for a second, rationed, and revoked for good. On both databases."""

import asyncio
import re
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from moot.modules.access.application import AccessService
from moot.modules.access.domain import (
    ATTEMPTS_A_MINUTE,
    INCLUDES,
    REMEMBERED,
    SCOPES,
    ApiKey,
    Buckets,
    digest_of,
    id_of,
    mint,
    network_of,
)
from moot.modules.access.infrastructure import SqlKeyRepository
from moot.shared.domain.errors import (
    Forbidden,
    InvalidInput,
    NotFound,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.redaction import REDACT
from tests.fakes.clock import PATIENCE, FixedClock

ADDRESS = "203.0.113.9"


class Stopwatch:
    """Seconds that pass when the test says so, and while somebody waits."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def wait(self, seconds: float) -> None:
        self.now += seconds


class CountingKeys(SqlKeyRepository):
    """Counts how often keys are looked up and noted; `failing` makes the notes fail, `held` makes them wait."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.looked_up = 0
        self.noted: list[datetime] = []
        self.failing = False
        self.held = asyncio.Event()
        self.held.set()

    async def get(self, key_id: str) -> ApiKey | None:
        self.looked_up += 1
        return await super().get(key_id)

    async def change(self, key_id: str, **moments: datetime) -> None:
        if "last_used_at" in moments:
            await self.held.wait()
            if self.failing:
                raise Unavailable("the disk is full")
            self.noted.append(moments["last_used_at"])
        await super().change(key_id, **moments)


@pytest.fixture
def stopwatch() -> Stopwatch:
    return Stopwatch()


@pytest.fixture
def keys(database: Database) -> CountingKeys:
    return CountingKeys(database)


@pytest.fixture
def service(keys: CountingKeys, clock: FixedClock, stopwatch: Stopwatch) -> AccessService:
    return AccessService(keys, clock, seconds=stopwatch, pause=stopwatch.wait)


def test_a_key_is_its_name_an_id_and_a_long_secret():
    made = {mint() for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch(r"moot_[a-z0-9]{8}_[A-Za-z0-9_-]{43}", key) for key in made)
    assert all(id_of(key) == key[5:13] for key in made)


A_KEY = f"moot_abcd1234_{'x' * 43}"


@pytest.mark.parametrize("text", ["", "moot_", "moot_abcd1234_short", "sk-" + "a" * 60, A_KEY + "\n"])
def test_what_is_no_key_has_no_id(text):
    assert id_of(text) is None


def test_admin_may_do_everything_and_research_and_approve_may_read():
    assert {scope: sorted(included) for scope, included in INCLUDES.items()} == {
        "read": ["read"],
        "research": ["read", "research"],
        "approve": ["approve", "read"],
        "admin": sorted(SCOPES),
    }


async def test_of_a_new_key_everything_is_stored_but_the_key(service, database, clock):
    key, secret = await service.create(" nightly ", ["research", "read", "read"], "team-a")
    assert await service.list() == [
        ApiKey(
            id=secret[5:13],
            key_hash=digest_of(secret),
            name="nightly",
            scopes=("read", "research"),
            workspace_id="team-a",
            created_at=clock.now(),
        )
    ]
    assert key.key_hash not in repr(key)
    async with database.session() as db:
        row = (await db.execute(text("SELECT * FROM api_keys"))).one()
    assert secret[13:] not in str(row)


@pytest.mark.parametrize(
    ("name", "scopes", "workspace", "said"),
    [
        (" ", ["read"], "default", "name: use 1 to 100 printable characters."),
        ("a\nb", ["read"], "default", "name: use 1 to 100 printable characters."),
        ("n" * 101, ["read"], "default", "name: use 1 to 100 printable characters."),
        ("n", [], "default", "scope: cannot be []. Allowed: one or more of read, research, approve, admin."),
        ("n", ["read", "write"], "default", "scope: cannot be [read, write]."),
        ("n", ["read", "reserch"], "default", "research, approve, admin. Did you mean research?"),
        ("n", ["aprove", "admn"], "default", "Did you mean approve, admin?"),
        ("n", ["read"], "-a", "workspace: '-a' cannot be used."),
        ("n", ["read"], "w" * 65, "cannot be used."),
    ],
)
async def test_a_key_that_makes_no_sense_is_not_made(clock, name, scopes, workspace, said):
    with pytest.raises(InvalidInput, match=re.escape(said)):
        await AccessService(None, clock).create(name, scopes, workspace)


async def test_a_key_lets_its_holder_in_for_what_it_may_do(service):
    key, secret = await service.create("nightly", ["research"], "team-a")
    for needed in ("read", "research"):
        assert (await service.admit(secret, needed, ADDRESS)).workspace_id == "team-a"
    for needed in ("approve", "admin"):
        with pytest.raises(Forbidden, match=f"needs the scope {needed}; the key nightly has research") as e:
            await service.admit(secret, needed, ADDRESS)
        assert e.value.details == {"needed": needed, "scopes": ["research"]}
    assert key.revoked_at is None
    await service.finish()


async def test_another_secret_behind_a_known_id_opens_nothing(service):
    _, secret = await service.create("nightly")
    for wrong in (secret[:14] + mint()[14:], mint(), "nonsense", ""):
        with pytest.raises(Unauthenticated, match="unknown, or it was revoked"):
            await service.admit(wrong, "read", ADDRESS)


async def test_a_revoked_key_is_refused_at_once_wherever_it_was_revoked(service, database, clock, stopwatch):
    key, secret = await service.create("nightly")
    await service.admit(secret, "read", ADDRESS)
    later = FixedClock(clock.now() + timedelta(hours=1))
    elsewhere = AccessService(SqlKeyRepository(database), later)
    revoked = await elsewhere.revoke(key.id)
    assert revoked.revoked_at == later.now()
    with pytest.raises(Unauthenticated):
        await service.admit(secret, "read", ADDRESS)
    again = await service.revoke(key.id)
    assert again.revoked_at == later.now(), "the first moment stays"
    await service.finish()


@pytest.mark.parametrize("wanted", ["abcd1234", "", " "])
async def test_an_unknown_key_cannot_be_revoked(service, wanted):
    await service.create("nightly")
    with pytest.raises(NotFound, match=f"There is no key {wanted.strip()}"):
        await service.revoke(wanted)


@pytest.mark.parametrize("wanted", ["{id}", " {id} ", "{beginning}", "Nightly run", "nightly run", "night"])
async def test_a_key_is_revoked_by_its_id_its_name_or_what_only_one_of_them_begins_with(service, wanted):
    key, _ = await service.create("Nightly run")
    typed = wanted.format(id=key.id, beginning=key.id[:4])
    await service.create("desk")
    assert (await service.revoke(typed)).id == key.id
    assert [known.id for known in await service.list() if known.revoked_at] == [key.id]


async def test_of_several_keys_those_that_still_count_are_meant_and_else_a_choice_is_given(service):
    first, second = [(await service.create("nightly"))[0] for _ in range(2)]
    with pytest.raises(InvalidInput, match="More than one key is meant by night") as e:
        await service.revoke("night")
    assert f"{first.id} (nightly)" in str(e.value)
    assert f"{second.id} (nightly)" in str(e.value)
    assert [known.revoked_at for known in await service.list()] == [None, None]
    await service.revoke(first.id)
    assert (await service.revoke("nightly")).id == second.id


async def test_a_key_nobody_has_brings_the_nearest_names(service):
    await service.create("nightly")
    with pytest.raises(NotFound, match=r"There is no key nighty\..* Did you mean nightly\?"):
        await service.revoke("nighty")


async def test_the_use_of_a_key_is_noted_once_a_minute(service, keys, stopwatch, clock):
    _, secret = await service.create("nightly")
    for _ in range(60):
        await service.admit(secret, "read", ADDRESS)
        stopwatch.now += 1.0
    await service.finish()
    assert keys.noted == [clock.now()]
    await service.admit(secret, "read", ADDRESS)
    await service.finish()
    assert keys.noted == [clock.now()] * 2
    assert [key.last_used_at for key in await service.list()] == [clock.now()]


async def test_no_request_waits_for_its_note_nor_fails_with_it(service, keys):
    _, secret = await service.create("nightly")
    keys.failing = True
    keys.held.clear()
    async with asyncio.timeout(PATIENCE):
        await service.admit(secret, "read", ADDRESS)
    keys.held.set()
    with capture_logs() as logs:
        await service.finish()
    assert [(log["event"], log["error"]) for log in logs] == [("use of a key not noted", "the disk is full")]


async def test_six_hundred_requests_a_minute_and_key_are_enough(service, stopwatch):
    (_, busy), (_, other) = await service.create("busy"), await service.create("other")
    for _ in range(600):
        await service.admit(busy, "read", ADDRESS)
    with pytest.raises(TooManyRequests, match=r"more than 600 requests in a minute\. Try again in 1 s") as e:
        await service.admit(busy, "read", ADDRESS)
    assert e.value.details == {"retry_after": 1}
    await service.admit(other, "read", ADDRESS)
    stopwatch.now += 0.5
    for _ in range(5):
        await service.admit(busy, "read", ADDRESS)
    with pytest.raises(TooManyRequests):
        await service.admit(busy, "read", ADDRESS)
    await service.finish()


async def guess(service: AccessService, times: int = 1, address: str = ADDRESS) -> None:
    for _ in range(times):
        with pytest.raises(Unauthenticated, match="unknown, or it was revoked"):
            await service.admit(mint(), "read", address)


async def test_after_sixty_wrong_keys_an_address_may_try_one_a_second(service, stopwatch):
    await guess(service, 60)
    assert stopwatch.now == 1000.0
    await guess(service, 10)
    assert stopwatch.now == pytest.approx(1010.0)
    await guess(service, 60, "198.51.100.7")
    assert stopwatch.now == pytest.approx(1010.0), "another address has its own tries"


async def test_a_right_key_gets_in_from_an_address_that_guesses(service, stopwatch):
    (_, known), (_, new) = await service.create("known"), await service.create("new")
    await service.admit(known, "read", ADDRESS)
    await guess(service, 60)
    await service.admit(known, "read", ADDRESS)
    assert stopwatch.now == 1000.0, "one that was right before does not wait"
    await service.admit(new, "read", ADDRESS)
    assert stopwatch.now == pytest.approx(1001.0), "one never seen takes its turn"
    await service.finish()


async def test_right_keys_use_up_no_tries(service, stopwatch):
    for number in range(70):
        await service.admit((await service.create(f"key {number}")).secret, "read", ADDRESS)
    assert stopwatch.now == 1000.0
    await service.finish()


async def test_guesses_in_parallel_are_sent_away_and_not_looked_up(keys, clock, stopwatch):
    forever = asyncio.Event()

    async def wait(_: float) -> None:
        await forever.wait()

    service = AccessService(keys, clock, seconds=stopwatch, pause=wait)
    await guess(service, 60)
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(guess(service)) for _ in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(
            TooManyRequests, match=rf"More than 60 .* from {ADDRESS} without a valid key"
        ) as e:
            await service.admit(mint(), "read", ADDRESS)
        assert (e.value.details, keys.looked_up) == ({"retry_after": 6}, 60)
        forever.set()
    assert (len(waiting), keys.looked_up) == (5, 65)


async def test_a_key_that_was_revoked_is_a_guess_like_any_other(service, stopwatch):
    key, secret = await service.create("nightly")
    await service.admit(secret, "read", ADDRESS)
    await service.revoke(key.id)
    stopwatch.now += 1.0
    for _ in range(61):
        with pytest.raises(Unauthenticated):
            await service.admit(secret, "read", ADDRESS)
    assert stopwatch.now == 1001.0
    await guess(service)
    assert stopwatch.now == pytest.approx(1002.0)
    await service.finish()


async def test_no_key_at_all_is_refused_sixty_times_a_minute_and_then_sent_away(service, stopwatch):
    for _ in range(60):
        with pytest.raises(Unauthenticated, match="This needs a key"):
            await service.admit(None, "read", ADDRESS)
    with pytest.raises(TooManyRequests) as e:
        await service.admit(None, "read", ADDRESS)
    assert e.value.details == {"retry_after": 1}
    stopwatch.now += 1.0
    with pytest.raises(Unauthenticated):
        await service.admit(None, "read", ADDRESS)


def test_the_addresses_of_one_network_count_as_one_and_only_so_many_are_remembered():
    attempts = Buckets(ATTEMPTS_A_MINUTE)
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1")
    assert network_of("2001:db8:0:1::1") != network_of("2001:db8::1")
    kept = attempts.of("203.0.113.9", 0.0)
    first, second, *_ = [attempts.of(f"host {number}", 0.0) for number in range(REMEMBERED - 1)]
    assert attempts.of("203.0.113.9", 0.0) is kept
    attempts.of("one more", 0.0)
    assert attempts.of("203.0.113.9", 0.0) is kept, "heard of lately"
    assert attempts.of("host 1", 0.0) is second, "no more than one had to make room"
    assert attempts.of("host 0", 0.0) is not first


async def test_keys_count_until_all_are_revoked(service):
    assert not await service.has_keys()
    key, _ = await service.create("nightly")
    assert await service.has_keys()
    await service.revoke(key.id)
    assert not await service.has_keys()


async def test_a_desk_that_stores_nothing_has_no_keys(clock):
    service = AccessService(None, clock)
    assert not await service.has_keys()
    with pytest.raises(Unauthenticated):
        await service.admit(mint(), "read", ADDRESS)
    with pytest.raises(Unavailable, match="MOOT_PERSISTENCE=off"):
        await service.create("nightly")


async def test_a_key_is_never_written_down_once_it_was_made_or_used(database, clock):
    made = (await AccessService(SqlKeyRepository(database), clock).create("nightly")).secret
    assert made not in REDACT.text(f"they sent {made} in the body")
    known_here_by_its_digest = mint()
    key = ApiKey(
        id=known_here_by_its_digest[5:13],
        key_hash=digest_of(known_here_by_its_digest),
        name="n",
        scopes=("read",),
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    repository = SqlKeyRepository(database)
    await repository.add(key)
    service = AccessService(repository, clock)
    await service.admit(known_here_by_its_digest, "read", ADDRESS)
    assert known_here_by_its_digest not in REDACT.text(f"they sent {known_here_by_its_digest}")
    await service.finish()
