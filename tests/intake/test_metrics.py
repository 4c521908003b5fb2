"""What intake counts about itself, and who may see it."""

import json
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI

from moot.desk import Moot
from moot.main import create_app
from moot.modules.intake.application.metrics import LONGEST_SAMPLE, IntakeMetrics, LocaleSample
from moot.shared.infrastructure.settings import Settings
from tests.access.desk import calling, new_key
from tests.fakes.llm_server import LLMServer
from tests.intake.whole_desk import Parts, hands_over, plans, researching


@pytest.fixture
def metrics() -> IntakeMetrics:
    return IntakeMetrics()


def test_before_the_first_question_there_are_no_rates(metrics: IntakeMetrics):
    assert metrics.snapshot().model_dump() == {
        "runs": {},
        "hand_off_success": {"count": 0, "out_of": 0, "rate": None},
        "prompt_load_failure": {"count": 0, "out_of": 0, "rate": None},
        "locale_disagreement": {"count": 0, "out_of": 0, "rate": None},
        "coordinator_latency": {"count": 0, "p50_ms": None, "p95_ms": None},
    }
    assert metrics.locale_samples_as_jsonl() == ""


@pytest.mark.accepts("A4-23")
def test_the_success_of_hand_offs_is_those_followed_of_those_called(metrics: IntakeMetrics):
    for followed in (True, True, True, False):
        metrics.hand_off_called(followed=followed)
    success = metrics.snapshot().hand_off_success
    assert (success.count, success.out_of, success.rate) == (3, 4, 0.75)


@pytest.mark.accepts("A4-26")
def test_the_failure_of_prompts_is_those_failed_of_those_fetched(metrics: IntakeMetrics):
    for failed in (False, False, True, False, False):
        metrics.prompt_fetched(failed=failed)
    assert metrics.snapshot().prompt_load_failure.rate == 0.2


@pytest.mark.accepts("A4-25")
def test_latency_is_told_by_percentiles_of_the_latest_runs():
    metrics = IntakeMetrics(timed=100)
    metrics.count_coordination("failed", 3600.0)
    for hundredths in range(100, 0, -1):
        metrics.count_coordination("handed_off" if hundredths % 2 else "replied", hundredths / 100)
    seen = metrics.snapshot()
    assert seen.runs == {"failed": 1, "handed_off": 50, "replied": 50}
    assert seen.coordinator_latency.count == 101
    assert seen.coordinator_latency.p50_ms == pytest.approx(500)
    assert seen.coordinator_latency.p95_ms == pytest.approx(950)


@pytest.mark.accepts("A4-25")
def test_a_single_run_is_every_percentile(metrics: IntakeMetrics):
    metrics.count_coordination("replied", 0.25)
    latency = metrics.snapshot().coordinator_latency
    assert (latency.p50_ms, latency.p95_ms) == (250, 250)


class TestLocales:
    @pytest.mark.accepts("A4-24")
    @pytest.mark.parametrize(
        ("handed", "detected", "disagreed"),
        [
            ("zh-CN", "zh-CN", 0),
            ("en-GB", "en-US", 0),
            ("zh_CN", "zh-CN", 0),
            ("EN", "en-US", 0),
            ("ja-JP", "zh-CN", 1),
            ("Chinese", "zh-CN", 0),
            ("as they speak", "zh-CN", 1),
        ],
    )
    def test_languages_are_compared_and_regions_are_not(
        self, metrics: IntakeMetrics, handed: str, detected: str, disagreed: int
    ):
        metrics.locale_handed("…", handed, detected)
        disagreement = metrics.snapshot().locale_disagreement
        assert (disagreement.count, disagreement.out_of) == (disagreed, 1)

    @pytest.mark.accepts("A4-24")
    def test_the_latest_are_kept_for_labelling_a_line_each(self):
        metrics = IntakeMetrics(sampled=2)
        for text in ("first", "茅台现在\n能买吗？", "third"):
            metrics.locale_handed(text, "ja-JP", "zh-CN")
        assert metrics.locale_samples() == (
            LocaleSample("茅台现在\n能买吗？", "ja-JP", "zh-CN"),
            LocaleSample("third", "ja-JP", "zh-CN"),
        )
        assert metrics.snapshot().locale_disagreement.out_of == 3
        lines = metrics.locale_samples_as_jsonl().splitlines()
        assert [json.loads(line) for line in lines] == [
            {"text": "茅台现在\n能买吗？", "handed": "ja-JP", "detected": "zh-CN", "label": None},
            {"text": "third", "handed": "ja-JP", "detected": "zh-CN", "label": None},
        ]

    def test_a_busy_workspace_neither_shows_nor_crowds_out_the_questions_of_another(self):
        metrics = IntakeMetrics(sampled=2)
        metrics.locale_handed("ours", "en-US", "en-US", workspace="ours")
        for text in ("first", "second", "third"):
            metrics.locale_handed(text, "en-US", "en-US", workspace="theirs")
        assert [sample.text for sample in metrics.locale_samples("ours")] == ["ours"]
        assert [sample.text for sample in metrics.locale_samples("theirs")] == ["second", "third"]
        assert metrics.locale_samples("nobody's") == ()
        assert metrics.snapshot().locale_disagreement.out_of == 4

    @pytest.mark.accepts("A4-24")
    def test_a_sample_holds_no_secret_and_no_novel(self, metrics: IntakeMetrics):
        secret = "sk-" + "canary" * 4
        metrics.locale_handed(f"why does {secret} not work? " + "x" * 1000, f"en-US {secret}", "en-US")
        (sample,) = metrics.locale_samples()
        assert sample.text.startswith("why does *** not work?")
        assert len(sample.text) == LONGEST_SAMPLE
        assert sample.handed == "en-US ***"


class TestOverHttp:
    INTAKE = "/api/v1/coordinator/intake"
    METRICS, SAMPLE = f"{INTAKE}/metrics", f"{INTAKE}/metrics/locale-sample"
    ASKED = "What are the latest AI trends?"

    @pytest.fixture
    async def app(self, home, llm_server: LLMServer) -> AsyncIterator[FastAPI]:
        """A desk whose model has been asked once."""
        parts = Parts(llm_server)
        parts.play("coordinator", hands_over("AI", "zh-CN"))
        parts.play("planner", plans(researching("a", "Latest AI trends"), title="AI trends", locale="zh-CN"))
        model = {"llm_base_url": llm_server.url, "llm_model": "fake-1"}
        app = create_app(Moot(Settings(home=home, log_level="error", **model)))
        async with app.router.lifespan_context(app):
            async with calling(app, await new_key(app, "research")) as client:
                asked = await client.post(self.INTAKE, json={"question": self.ASKED})
                assert asked.status_code == 200, asked.text
            yield app

    @pytest.mark.accepts("A4-23", "A4-24", "A4-25", "A4-26")
    async def test_what_is_counted_is_told_as_json(self, app: FastAPI):
        async with calling(app, await new_key(app, "admin", workspace="theirs")) as client:
            told = (await client.get(self.METRICS)).json()
        assert told == app.state.desk.intake.metrics.snapshot().model_dump(mode="json")
        assert told["runs"] == {"handed_off": 1}
        assert told["hand_off_success"] == {"count": 1, "out_of": 1, "rate": 1.0}
        assert told["locale_disagreement"]["rate"] == 1.0
        assert told["coordinator_latency"]["p50_ms"] > 0

    @pytest.mark.accepts("A4-24")
    async def test_a_sample_is_a_line_each_and_of_the_own_workspace_alone(self, app: FastAPI):
        async with calling(app, await new_key(app, "admin")) as client:
            ours = await client.get(self.SAMPLE)
        async with calling(app, await new_key(app, "admin", workspace="theirs")) as client:
            theirs = await client.get(self.SAMPLE)
        assert ours.headers["content-type"].startswith("application/x-ndjson")
        assert [json.loads(line) for line in ours.text.splitlines()] == [
            {"text": self.ASKED, "handed": "zh-CN", "detected": "en-US", "label": None}
        ]
        assert (theirs.status_code, theirs.text) == (200, "")

    async def test_only_an_administrator_sees_them(self, app: FastAPI):
        async with calling(app, await new_key(app, "read", "research")) as client:
            assert [(await client.get(path)).status_code for path in (self.METRICS, self.SAMPLE)] == [
                403,
                403,
            ]
