"""What intake counts about itself."""

import json

import pytest

from moot.modules.intake.application.metrics import LONGEST_SAMPLE, IntakeMetrics, LocaleSample


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
    metrics.coordinated("failed", 3600.0)
    for hundredths in range(100, 0, -1):
        metrics.coordinated("handed_off" if hundredths % 2 else "replied", hundredths / 100)
    seen = metrics.snapshot()
    assert seen.runs == {"failed": 1, "handed_off": 50, "replied": 50}
    assert seen.coordinator_latency.count == 101
    assert seen.coordinator_latency.p50_ms == pytest.approx(500)
    assert seen.coordinator_latency.p95_ms == pytest.approx(950)


@pytest.mark.accepts("A4-25")
def test_a_single_run_is_every_percentile(metrics: IntakeMetrics):
    metrics.coordinated("replied", 0.25)
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
        assert metrics.locale_samples == (
            LocaleSample("茅台现在\n能买吗？", "ja-JP", "zh-CN"),
            LocaleSample("third", "ja-JP", "zh-CN"),
        )
        assert metrics.snapshot().locale_disagreement.out_of == 3
        lines = metrics.locale_samples_as_jsonl().splitlines()
        assert [json.loads(line) for line in lines] == [
            {"text": "茅台现在\n能买吗？", "handed": "ja-JP", "detected": "zh-CN", "label": None},
            {"text": "third", "handed": "ja-JP", "detected": "zh-CN", "label": None},
        ]

    @pytest.mark.accepts("A4-24")
    def test_a_sample_holds_no_secret_and_no_novel(self, metrics: IntakeMetrics):
        secret = "sk-" + "canary" * 4
        metrics.locale_handed(f"why does {secret} not work? " + "x" * 1000, f"en-US {secret}", "en-US")
        (sample,) = metrics.locale_samples
        assert sample.text.startswith("why does *** not work?")
        assert len(sample.text) == LONGEST_SAMPLE
        assert sample.handed == "en-US ***"
