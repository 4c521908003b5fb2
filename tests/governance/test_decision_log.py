"""Decisions are on record before anybody acts on them, can be made again from it, and explain themselves."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, text

from moot.modules.governance.application.decision_log import explain, make_record
from moot.modules.governance.domain.conditions import PastCall
from moot.modules.governance.domain.decisions import (
    Change,
    DecisionFilter,
    DecisionRecord,
    DecisionRequest,
    DecisionStatistics,
    RuleViolation,
    ValidationResult,
    ValidationStatus,
    digest_json,
    plain,
)
from moot.modules.governance.domain.rules import RuleAction
from moot.modules.governance.infrastructure.persistence.decision_log import SqlDecisionLog
from moot.modules.governance.infrastructure.persistence.tables import DecisionRow
from moot.shared.domain.errors import Unavailable
from moot.shared.domain.ids import COUNTED_TO
from moot.shared.infrastructure.audit_trail import AuditTrail
from moot.shared.infrastructure.audit_verification import verify
from moot.shared.infrastructure.database import Database
from moot.shared.infrastructure.execution_context import (
    ExecutionContext,
    ReplayContext,
    current_execution_ctx,
)
from tests.governance.factories import NOON, request

DESK = "desk"
CAP = RuleViolation(
    "risk.position_cap",
    "single position cap",
    RuleAction.SUGGEST,
    "too large",
    because="payload.position_percent > 0.2",
    values={"payload.position_percent": 0.35},
    corrected=True,
)
BUY = request({"symbol": "900001.DEMO", "action": "BUY", "position_percent": 0.35}, "verdict", cost=1.5)


def result(
    of: DecisionRequest, status: str = "approved", *broken: RuleViolation, **more: Any
) -> ValidationResult:
    given = {"modified_payload": None, "suggestions": (), "timestamp": of.timestamp, "ruleset": "f" * 64}
    return ValidationResult(ValidationStatus(status), of, violations=broken, **(given | more))


def capped(of: DecisionRequest = BUY) -> ValidationResult:
    change = Change("replace", "/position_percent", CAP.rule, 0.2, 0.35)
    smaller = {**of.payload, "position_percent": 0.2}
    return result(
        of, "modified", CAP, modified_payload=smaller, changes=(change,), suggestions=("hold less",)
    )


def sentence(of: ValidationResult, locale: Any = "en-US") -> str:
    return explain(make_record(of.original_request, of, session_id=None, workspace=DESK)).in_locale(locale)


@pytest.fixture
def trail(database: Database) -> AuditTrail:
    return AuditTrail(database)


@pytest.fixture
def log(trail: AuditTrail) -> SqlDecisionLog:
    return SqlDecisionLog(trail)


class TestOnRecord:
    async def test_a_decision_comes_back_with_everything_that_is_needed_to_decide_again(self, log):
        session_id = uuid4()
        record = await log.write(make_record(BUY, capped(), session_id=session_id, workspace=DESK))

        (found,) = await log.of_session(session_id, DESK)
        assert found == record
        assert found.request == BUY
        assert (found.status, found.ruleset_digest) == (ValidationStatus.MODIFIED, "f" * 64)
        assert found.result.violations == (CAP,)
        assert found.result.modified_payload == {**BUY.payload, "position_percent": 0.2}
        assert found.result.changes == capped().changes
        assert found.result.suggestions == ("hold less",)
        assert (found.requested_at, found.decided_at) == (NOON, NOON)

    async def test_it_is_a_link_of_the_sessions_chain(self, log, trail):
        session_id = uuid4()
        for _ in range(3):
            await log.write(make_record(BUY, capped(), session_id=session_id, workspace=DESK))
        found = await verify(trail, session_id)
        assert (found.intact, found.links) == (True, 3)

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            ("UPDATE decisions SET status = 'approved'", "changed"),
            ("UPDATE decisions SET ruleset_digest = 'other'", "changed"),
            ("DELETE FROM decisions", "removed"),
        ],
    )
    async def test_whoever_changes_it_afterwards_is_found(self, log, trail, database, change, problem):
        session_id = uuid4()
        record = await log.write(make_record(BUY, capped(), session_id=session_id, workspace=DESK))
        async with database.session() as db, db.begin():
            await db.execute(text(change))
        broken = (await verify(trail, session_id)).first_break
        assert (broken.problem, broken.kind, broken.row_id) == (problem, "decision", record.id)

    async def test_without_a_session_it_is_a_row_without_a_chain(self, log, database):
        record = await log.write(make_record(BUY, result(BUY), session_id=None, workspace=DESK))
        assert (await log.page(DESK, DecisionFilter())).items == [record]
        async with database.session() as db:
            assert await db.scalar(text("SELECT count(*) FROM audit_chain")) == 0

    async def test_a_replay_leaves_no_trace(self, log):
        session_id = uuid4()
        token = current_execution_ctx.set(ReplayContext(session_id=str(session_id)))
        try:
            await log.write(make_record(BUY, result(BUY), session_id=session_id, workspace=DESK))
        finally:
            current_execution_ctx.reset(token)
        assert await log.of_session(session_id, DESK) == []

    async def test_another_workspace_sees_nothing_of_it(self, log):
        session_id = uuid4()
        await log.write(make_record(BUY, result(BUY), session_id=session_id, workspace=DESK))
        assert await log.of_session(session_id, "other") == []
        assert (await log.page("other", DecisionFilter())).total == 0
        assert await log.statistics("other") == DecisionStatistics()


class TestWhatIsWritten:
    async def test_secrets_are_taken_out_of_payload_context_and_result(self, log, database):
        secret = "Bearer abcdefghijklmnop"
        asked = request({"tool": "http", "args": {"auth": secret}}, note=secret)
        broken = replace(CAP, message=secret, values={"payload.args.auth": secret})
        record = await log.write(
            make_record(asked, result(asked, "rejected", broken), session_id=None, workspace=DESK)
        )
        assert "abcdefghijklmnop" not in record.model_dump_json()
        async with database.session() as db:
            rows = await db.execute(text("SELECT payload, context, result FROM decisions"))
            assert "abcdefghijklmnop" not in str(rows.all())

    @pytest.mark.parametrize(
        ("tools", "kept"),
        [
            ([{"name": "mail", "parameters": {}}, {"name": "http"}], [{"name": "mail", "parameters": {}}]),
            (
                [{"type": "function", "function": {"name": "mail"}}],
                [{"type": "function", "function": {"name": "mail"}}],
            ),
            ([{"name": "http"}], []),
        ],
    )
    def test_of_the_agents_tools_the_one_it_calls_and_a_digest_of_all(self, tools, kept):
        asked = request({"tool": "mail", "args": {}}, tools=tools, goal="say hello")
        record = make_record(asked, result(asked), session_id=None, workspace=DESK)
        assert record.context == {"tools": kept, "goal": "say hello"}
        assert (
            record.result.tools_digest
            == sha256(json.dumps(tools, separators=(",", ":")).encode()).hexdigest()
        )

    async def test_what_json_cannot_say_is_said_in_words_and_costs_no_record(self, log):
        odd = {
            "nan": math.nan,
            "huge": 10**5000,
            "when": NOON,
            "id": UUID(int=1),
            "some": {"b", "a"},
            3: (1, 2),
        }
        asked = request(odd, history=[PastCall("http", NOON)])
        session_id = uuid4()
        await log.write(make_record(asked, result(asked), session_id=session_id, workspace=DESK))
        await log._trail.finish()
        (found,) = await log.of_session(session_id, DESK)
        assert found.payload == {
            "nan": "nan",
            "huge": hex(10**5000),
            "when": NOON.isoformat(),
            "id": str(UUID(int=1)),
            "some": ["a", "b"],
            "3": [1, 2],
        }
        assert found.context == {"history": [{"tool": "http", "at": NOON.isoformat()}]}

    async def test_an_overlong_name_does_not_keep_a_decision_off_the_record(self, log):
        asked = replace(BUY, decision_id="d" * 999, decision_type="t" * 999, requester="r" * 999)
        await log.write(make_record(asked, result(asked), session_id=None, workspace=DESK))
        (found,) = (await log.page(DESK, DecisionFilter())).items
        assert (found.decision_id, found.decision_type, found.requester) == ("d" * 200, "t" * 50, "r" * 100)


class TestAFailedWrite:
    @pytest.fixture
    async def broken(self, database: Database) -> Database:
        async with database.session() as db, db.begin():
            await db.execute(text("DROP TABLE escalations"))
            await db.execute(text("DROP TABLE decisions"))
        return database

    async def test_is_counted_on_the_session_and_the_decision_stands(self, broken):
        context = ExecutionContext(session_id=str(uuid4()))
        token = current_execution_ctx.set(context)
        try:
            log = SqlDecisionLog(AuditTrail(broken))
            record = await log.write(
                make_record(BUY, result(BUY), session_id=UUID(context.session_id), workspace=DESK)
            )
            await log._trail.finish()
        finally:
            current_execution_ctx.reset(token)
        assert (record.decision_id, context.tally.audit_gaps) == ("d-1", 1)

    async def test_refuses_the_decision_where_the_audit_is_strict(self, broken):
        log = SqlDecisionLog(AuditTrail(broken), strict=True)
        with pytest.raises(Unavailable) as refused:
            await log.write(make_record(BUY, result(BUY), session_id=None, workspace=DESK))
        assert refused.value.code == "AUDIT_FAILED"


class TestLists:
    @pytest.fixture
    async def records(self, log: SqlDecisionLog) -> list[DecisionRecord]:
        """Twelve, one a minute, of four endings in turn."""
        endings = [status.value for status in ValidationStatus]
        made = []
        for minute in range(12):
            asked = replace(BUY, timestamp=NOON + timedelta(minutes=minute), decision_id=f"d-{minute}")
            ending = result(asked, endings[minute % 4])
            made.append(await log.write(make_record(asked, ending, session_id=None, workspace=DESK)))
        return made

    async def test_come_newest_first_in_pages(self, log, records):
        page = await log.page(DESK, DecisionFilter(page=2, page_size=5))
        assert (page.total, page.total_is_more, page.page, page.page_size) == (12, False, 2, 5)
        assert page.items == records[::-1][5:10]

    @pytest.mark.parametrize(
        ("wanted", "minutes"),
        [
            ({"status": "rejected"}, [11, 7, 3]),
            ({"decision_type": "verdict", "decided_from": NOON + timedelta(minutes=10)}, [11, 10]),
            ({"decided_before": NOON + timedelta(minutes=2)}, [1, 0]),
            ({"requester": "nobody"}, []),
            ({"session_id": UUID(int=7)}, []),
        ],
    )
    async def test_hold_what_every_condition_asks_for(self, log, records, wanted, minutes):
        page = await log.page(DESK, DecisionFilter(**wanted))
        assert [item.decision_id for item in page.items] == [f"d-{minute}" for minute in minutes]
        assert page.total == len(minutes)

    async def test_statistics_sum_up_to_the_total(self, log, records):
        found = await log.statistics(DESK)
        assert found == DecisionStatistics(total=12, approved=3, modified=3, rejected=3, escalated=3)

    async def test_history_is_oldest_first_and_loses_nothing_between_its_pages(
        self, log, records, monkeypatch
    ):
        module = "moot.modules.governance.infrastructure.persistence.decision_log.AT_A_TIME"
        monkeypatch.setattr(module, 3)
        since = NOON + timedelta(minutes=2)
        assert [record async for record in log.history(DESK, since)] == records[2:]

    async def test_history_tells_decisions_of_the_same_moment_apart(self, log, monkeypatch):
        module = "moot.modules.governance.infrastructure.persistence.decision_log.AT_A_TIME"
        monkeypatch.setattr(module, 2)
        made = [
            await log.write(make_record(BUY, result(BUY), session_id=None, workspace=DESK)) for _ in range(7)
        ]
        found = [record.id async for record in log.history(DESK, NOON)]
        assert sorted(found) == sorted(record.id for record in made)


class TestManyRows:
    @pytest.fixture
    async def full(self, database: Database) -> SqlDecisionLog:
        log = SqlDecisionLog(AuditTrail(database))
        row = (await log.write(make_record(BUY, result(BUY), session_id=None, workspace=DESK))).model_dump(
            mode="json"
        )
        endings = [status.value for status in ValidationStatus]
        rows = [
            row
            | {"id": uuid4(), "status": endings[n % 4], "requested_at": NOON}
            | {"decided_at": NOON + timedelta(seconds=n)}
            for n in range(1, 1_000)
        ]
        async with database.session() as db, db.begin():
            await db.execute(insert(DecisionRow), rows)
            await db.execute(text(self._copied(19, database)))
        async with database.session() as db, db.begin():
            await db.execute(text("ANALYZE decisions"))
        return log

    @staticmethod
    def _copied(times: int, database: Database) -> str:
        """The database copies rows far quicker than it can be told thousands of them."""
        others = ", ".join(each.name for each in DecisionRow.__table__.columns if each.name != "id")
        new_id = "lower(hex(randomblob(16)))" if "sqlite" in database.safe_url else "gen_random_uuid()"
        counted = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {times}) SELECT i FROM n"
        return (
            f"INSERT INTO decisions (id, {others}) SELECT {new_id}, {others} FROM decisions, ({counted}) AS c"
        )

    async def test_statistics_tell_of_all_and_a_page_counts_to_the_number_it_shows(self, full):
        found = await full.statistics(DESK)
        page = await full.page(DESK, DecisionFilter(status="rejected", page_size=7))
        halves = found.approved + found.modified, found.rejected + found.escalated
        assert (found.total, *halves) == (4 * COUNTED_TO, 2 * COUNTED_TO, 2 * COUNTED_TO)
        assert (page.total, page.total_is_more, len(page.items)) == (COUNTED_TO, False, 7)
        more = await full.page(DESK, DecisionFilter())
        assert (more.total, more.total_is_more) == (COUNTED_TO, True)

    async def test_statistics_are_counted_in_an_index_alone(self, sqlite_database: Database) -> None:
        plan = "EXPLAIN QUERY PLAN SELECT status, count(*) FROM decisions WHERE workspace_id = 'd' GROUP BY status"
        async with sqlite_database.session() as db:
            steps = [row.detail for row in await db.execute(text(plan))]
        index = "ix_decisions_workspace_id_status_decided_at"
        assert steps == [f"SEARCH decisions USING COVERING INDEX {index} (workspace_id=?)"]


class TestInOneSentence:
    def test_a_capped_position(self):
        assert sentence(capped()) == (
            "position 35% → 20%: single position cap (risk.position_cap@1: payload.position_percent > 0.2)"
        )
        assert sentence(capped(), "zh-CN") == (
            "仓位 35% → 20%：single position cap（risk.position_cap@1：payload.position_percent > 0.2）"
        )

    def test_a_rejection_with_the_values_that_were_seen(self):
        broken = RuleViolation(
            "system.tokens",
            "token budget",
            RuleAction.REJECT,
            "…",
            version=3,
            because="context.token_used > 10000",
            values={"context.token_used": 12000},
        )
        warned = replace(broken, rule_id="note", action=RuleAction.LOG_WARNING)
        shadow = replace(broken, rule_id="trial", mode="shadow")
        assert sentence(result(BUY, "rejected", warned, broken, shadow)) == (
            "rejected: token budget (system.tokens@3: context.token_used > 10000; context.token_used = 12000)"
        )
        ended = result(BUY, "rejected", broken, terminates=True)
        assert sentence(ended).startswith("rejected, and the session ends: token budget (system.tokens@3")
        assert sentence(ended, "zh-CN").startswith("拒绝，会话终止：token budget（system.tokens@3：")

    def test_an_escalation_names_the_rule_that_asks_for_a_person(self):
        asks = replace(CAP, rule_id="risk.large", values={}, corrected=False, escalates=True)
        assert sentence(result(BUY, "escalated", CAP, asks)) == (
            "waits for a person: single position cap (risk.large@1: payload.position_percent > 0.2)"
        )

    def test_an_approval_by_rules_with_a_warning_or_by_a_person(self):
        assert sentence(result(BUY)) == "approved: no rule is broken"
        assert sentence(result(BUY), "zh-CN") == "通过：未违反任何规则"
        warned = replace(CAP, action=RuleAction.LOG_WARNING, values={}, escalates=True, corrected=False)
        assert sentence(result(BUY, "approved", warned)).startswith(
            "approved with a warning: single position cap"
        )
        asks = replace(warned, action=RuleAction.REJECT)
        assert sentence(result(BUY, "approved", asks)).startswith("approved by a person: single position cap")
        assert sentence(result(BUY, "approved", replace(CAP, mode="shadow"))) == "approved: no rule is broken"

    def test_what_a_text_was_is_not_repeated(self):
        changes = (
            Change("replace", "/args/id_card", "privacy.mask@1", "***", "110101199003071234"),
            Change("remove", "/args/phone", "privacy.mask@1", None, "13800000000"),
            Change("add", "/args/limit", "data.limit@2", 100),
        )
        said = sentence(result(BUY, "modified", changes=changes))
        assert (
            said == "args.id_card → ***, without args.phone: privacy.mask@1, args.limit → 100: data.limit@2"
        )

    def test_what_a_person_changed_is_told_field_by_field(self):
        then = {"tool": "mail", "args": {"to": "a@example.org", "copies": 3, "later": True}}
        now = {"tool": "mail", "args": {"to": "b@example.org", "copies": 1, "sign": "yes"}}
        edited = Change("replace", "", "person", now, then)
        said = sentence(result(request(then), "modified", modified_payload=now, changes=(edited,)))
        assert said == (
            "args.to → b@example.org, args.copies 3 → 1, without args.later, args.sign → yes: a person wanted it so"
        )

    def test_a_rule_that_could_not_be_decided_says_so(self):
        broken = replace(CAP, because="", values={}, error="no such field: payload.stop", corrected=False)
        assert sentence(result(BUY, "rejected", broken)) == (
            "rejected: single position cap (risk.position_cap@1: no such field: payload.stop)"
        )


class TestAPayloadsDigest:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"a": 1, "b": [1, 2]}, {"b": (1, 2.0), "a": 1.0}),
            ({"when": NOON}, {"when": NOON.isoformat()}),
        ],
    )
    def test_is_the_same_for_what_says_the_same_in_json(self, one, other):
        assert digest_json(one) == digest_json(other)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"a": 1}, {"a": "1"}),
            ({"a": 1}, {"a": True}),
            ({"a": None}, {}),
            ({"a": [1, 2]}, {"a": [2, 1]}),
            ({"a": 0.1}, {"a": 0.1 + 1e-16}),
            ({"a": 2**53}, {"a": 2**53 + 1}),
        ],
    )
    def test_differs_for_anything_else(self, one, other):
        assert digest_json(one) != digest_json(other)

    def test_what_is_written_down_has_the_digest_of_what_was_proposed(self):
        proposed = {"limit": 1e16, "ids": (1, 2), "at": datetime(2026, 1, 1, tzinfo=UTC)}
        assert digest_json(plain(proposed)) == digest_json(proposed)
