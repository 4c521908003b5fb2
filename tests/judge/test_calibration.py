"""A forecast: from outcomes of the past only, from enough of them, and never without a table."""

from datetime import date, timedelta

import pytest

from moot.modules.judge.application.judge_service import JudgeService
from moot.modules.judge.container import JudgeContainer
from moot.modules.judge.domain.calibration import FEWEST_OUTCOMES, Calibration, Outcome, fit
from moot.shared.domain.errors import InvalidInput
from moot.shared.infrastructure.settings import Settings
from tests.fakes.debate import BY_RULE
from tests.fakes.judge import a_debate, evidence

UNTIL = date(2026, 1, 1)
NOW = "2026-01-09T10:00:00Z"


def outcomes(n: int, beat: int, conviction: float = 0.6, ended: date = date(2025, 12, 1)) -> list[Outcome]:
    return [Outcome(conviction, ended, place < beat) for place in range(n)]


def table(*groups: list[Outcome], until: date = UNTIL) -> Calibration:
    return fit([o for group in groups for o in group], until, horizon=20, benchmark="CSI 300")


def test_a_bin_is_the_share_that_beat_the_benchmark_drawn_to_the_share_of_all():
    fitted = table(outcomes(400, 240), outcomes(600, 240, conviction=-0.6))
    forecast = fitted.forecast(0.6, UNTIL + timedelta(days=1))
    assert (forecast.n, forecast.horizon, forecast.benchmark) == (400, 20, "CSI 300")
    assert forecast.probability == pytest.approx((240 + 20 * 0.48) / 420, abs=1e-3)
    against = fitted.forecast(-0.6, UNTIL + timedelta(days=1))
    assert 0.4 < against.probability < 0.41


def test_the_fewer_outcomes_the_closer_to_the_share_of_all():
    few, many = (table(outcomes(n, n), outcomes(1000, 400, -0.6)) for n in (30, 300))
    day = UNTIL + timedelta(days=1)
    assert few.forecast(0.6, day).probability < many.forecast(0.6, day).probability < 1


def test_what_came_out_later_is_not_in_the_table():
    later = outcomes(100, 0, ended=UNTIL + timedelta(days=1))
    assert table(outcomes(50, 30), later) == table(outcomes(50, 30))


def test_a_table_says_nothing_about_days_it_may_know_and_nothing_on_few_outcomes():
    enough = table(outcomes(FEWEST_OUTCOMES, 20))
    assert enough.forecast(0.6, UNTIL) is None
    assert enough.forecast(0.6, UNTIL - timedelta(days=9)) is None
    assert enough.forecast(0.6, UNTIL + timedelta(days=1)) is not None
    assert enough.forecast(0.05, UNTIL + timedelta(days=1)) is None
    assert table(outcomes(FEWEST_OUTCOMES - 1, 20)).forecast(0.6, UNTIL + timedelta(days=1)) is None


@pytest.mark.parametrize("conviction", [-1.0, -0.2, 0.0, 0.1, 0.2, 0.35, 1.0])
def test_an_outcome_is_counted_in_the_bin_that_is_asked_for_it(conviction):
    fitted = table(outcomes(40, 20, conviction))
    assert fitted.forecast(conviction, UNTIL + timedelta(days=1)).n == 40


@pytest.mark.parametrize(
    ("locale", "said"),
    [("en-US", "probability 59% of beating CSI 300 over 20 sessions"), ("zh-CN", "跑赢CSI 300的概率为 59%")],
)
async def test_with_a_table_the_first_line_has_a_probability_and_else_a_weight_only(tmp_path, locale, said):
    file = tmp_path / "table.json"
    file.write_text(table(outcomes(400, 240), outcomes(600, 240, -0.6)).model_dump_json())
    debate = a_debate(as_of=NOW, locale=locale, evidence=evidence(current_price=10.0))
    judged = await JudgeContainer(2, *BY_RULE, file).judge_service().run(debate)
    assert said in judged.headline
    plain = await JudgeContainer(2, *BY_RULE).judge_service().run(debate)
    assert plain.forecast is None
    assert said not in plain.headline
    assert judged.model_dump(exclude={"forecast", "headline"}) == plain.model_dump(
        exclude={"forecast", "headline"}
    )


@pytest.mark.parametrize("content", [None, "no table", '{"bins": []}'])
def test_a_table_that_cannot_be_read_is_said_to_be_so(tmp_path, content):
    file = tmp_path / "table.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InvalidInput, match="calibration table"):
        JudgeContainer(2, *BY_RULE, file).judge_service()


def test_no_table_is_shipped(tmp_path):
    assert Settings(home=tmp_path).calibration is None
    assert isinstance(JudgeContainer(2, *BY_RULE, None).judge_service(), JudgeService)
