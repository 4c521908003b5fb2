"""Indicators: the conventions of Chinese platforms, None where there are too few bars, levels around the price."""

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace

import pytest

from moot.modules.research.infrastructure.indicators import compute_indicators
from moot.shared.domain.facts import DailyBar
from tests.fakes.research import bars_of
from tests.research.cases import waves


def seen_in(bars: Sequence[DailyBar]) -> SimpleNamespace:
    return SimpleNamespace(**compute_indicators(bars))


def indicators(closes: list[float], **options: float) -> SimpleNamespace:
    return seen_in(bars_of(closes, **options))


class TestAverages:
    def test_sixty_bars_have_a_60_day_average_and_no_200_day_one(self) -> None:
        seen = indicators([10 + n for n in range(60)])
        assert seen.ma60 == 10 + 59 / 2
        assert (seen.ma120, seen.ma200) == (None, None)

    def test_change_is_against_the_previous_close(self) -> None:
        assert indicators([10.0] * 30 + [10.5]).change_percent == 5.0


class TestMacd:
    def test_averages_start_from_the_first_close_and_the_bar_is_doubled(self) -> None:
        closes = waves(40, 0.002)
        fast = slow = closes[0]
        dea = 0.0
        for close in closes[1:]:
            fast += (close - fast) * 2 / 13
            slow += (close - slow) * 2 / 27
            dea += (fast - slow - dea) * 2 / 10
        seen = indicators(closes)
        assert seen.macd_dif == pytest.approx(fast - slow, abs=1e-4)
        assert seen.macd_dea == pytest.approx(dea, abs=1e-4)
        assert seen.macd_histogram == pytest.approx(2 * (fast - slow - dea), abs=1e-4)


class TestKdj:
    def test_k_and_d_are_smoothed_by_a_third_from_fifty(self) -> None:
        bars = bars_of(waves(40, 0.002))
        k = d = 50.0
        for n in range(8, len(bars)):
            window = bars[n - 8 : n + 1]
            low, high = min(b.low for b in window), max(b.high for b in window)
            k += (100 * (bars[n].close - low) / (high - low) - k) / 3
            d += (k - d) / 3
        seen = seen_in(bars)
        assert (seen.kdj_k, seen.kdj_d) == (pytest.approx(k, abs=1e-4), pytest.approx(d, abs=1e-4))
        assert seen.kdj_j == pytest.approx(3 * k - 2 * d, abs=1e-3)


class TestRsi:
    def test_is_wilders(self) -> None:
        closes = waves(40, 0.002)
        moves = [b - a for a, b in pairwise(closes)]
        gain = sum(max(m, 0) for m in moves[:14]) / 14
        loss = sum(max(-m, 0) for m in moves[:14]) / 14
        for move in moves[14:]:
            gain = (gain * 13 + max(move, 0)) / 14
            loss = (loss * 13 + max(-move, 0)) / 14
        assert indicators(closes).rsi_value == pytest.approx(100 * gain / (gain + loss), abs=1e-4)

    def test_a_price_that_never_moved_has_none(self) -> None:
        assert indicators([10.0] * 40).rsi_value is None


class TestDirection:
    def test_is_wilders(self) -> None:
        """The moves up and down of 14 days, smoothed by a fourteenth, as a share of the true range."""
        bars = bars_of(waves(60, 0.002), spread=0.02)
        plus = minus = true = 0.0
        for n, (a, b) in enumerate(pairwise(bars), start=1):
            rise, fall = b.high - a.high, a.low - b.low
            moved = (rise if rise > max(fall, 0) else 0.0, fall if fall > max(rise, 0) else 0.0)
            reach = max(b.high, a.close) - min(b.low, a.close)
            keep = 1.0 if n < 14 else 13 / 14
            plus, minus, true = plus * keep + moved[0], minus * keep + moved[1], true * keep + reach
        seen = seen_in(bars)
        assert (seen.plus_di, seen.minus_di) == pytest.approx(
            (100 * plus / true, 100 * minus / true), abs=1e-3
        )


class TestVolatility:
    def test_is_the_deviation_of_daily_moves_by_the_year(self) -> None:
        closes = waves(150, 0.002)
        moves = [math.log(b / a) for a, b in pairwise(closes)]
        seen = indicators(closes)
        for name, n in (("volatility_20d", 20), ("volatility_60d", 60), ("volatility_1y", 149)):
            expected = 100 * statistics.stdev(moves[-n:]) * math.sqrt(250)
            assert getattr(seen, name) == pytest.approx(expected, abs=1e-3)

    def test_half_a_year_of_sessions_is_no_year(self) -> None:
        assert indicators(waves(120, 0.0)).volatility_1y is None
        assert indicators(waves(60, 0.0)).volatility_60d is None
        assert indicators(waves(61, 0.0)).volatility_60d


class TestReturns:
    def test_are_of_closes_so_many_sessions_apart(self) -> None:
        closes = waves(100, 0.002)
        seen = indicators(closes)
        assert seen.return_20d == round(100 * (closes[-1] / closes[-21] - 1), 1)
        assert seen.return_60d == round(100 * (closes[-1] / closes[-61] - 1), 1)
        assert seen.return_since == bars_of(closes)[-61].trade_date


class TestLiquidity:
    def test_ten_million_are_sold_at_a_tenth_of_the_turnover_of_twenty_sessions(self) -> None:
        seen = indicators([10.0] * 150, volume=2_000_000)
        assert (seen.turnover_20d, seen.turnover_1y, seen.days_to_sell) == (2e7, 2e7, 5.0)

    def test_what_is_not_traded_cannot_be_sold_in_any_number_of_days(self) -> None:
        assert indicators([10.0] * 40, volume=0).days_to_sell is None


class TestBollinger:
    def test_uses_the_population_deviation(self) -> None:
        closes = waves(40, 0.002)
        last = closes[-20:]
        mean = sum(last) / 20
        deviation = math.sqrt(sum((c - mean) ** 2 for c in last) / 20)
        seen = indicators(closes)
        assert seen.bb_middle == pytest.approx(mean, abs=1e-4)
        assert seen.bb_upper == pytest.approx(mean + 2 * deviation, abs=1e-4)
        assert seen.bb_bandwidth == pytest.approx(400 * deviation / mean, abs=1e-3)


class TestVolume:
    def test_ratio_is_the_day_over_the_five_days_before(self) -> None:
        bars = bars_of([10.0] * 40)
        busy = bars[-1].model_copy(update={"volume": 2500})
        assert seen_in([*bars[:-1], busy]).volume_ratio == 2.5

    @pytest.mark.parametrize(
        ("last_days", "trend"),
        [
            ([11, 12, 13, 14, 15], "Rising"),
            ([9, 8, 7, 6, 5], "Falling"),
            ([11, 10, 11, 10, 10], "Flat"),
        ],
    )
    def test_on_balance_volume_over_five_days(self, last_days: list[float], trend: str) -> None:
        assert indicators([10.0] * 30 + last_days).obv_trend == trend

    def test_vwap_weighs_the_typical_price_of_twenty_days(self) -> None:
        bars = bars_of([10.0] * 40, spread=0.03)
        doubled = [b.model_copy(update={"volume": 3000}) if n == 39 else b for n, b in enumerate(bars)]
        lifted = [*doubled[:-1], doubled[-1].model_copy(update={"high": 16.0, "close": 13.0})]
        typical = (16.0 + 9.7 + 13.0) / 3
        seen = seen_in(lifted)
        assert seen.vwap_value == pytest.approx((19 * 10.0 + 3 * typical) / 22, abs=1e-4)
        assert seen.price_vs_vwap_status == "Above"

    def test_days_without_any_volume_have_no_ratio_and_no_trend(self) -> None:
        seen = indicators([10.0 + n / 10 for n in range(40)], volume=0)
        assert (seen.volume_ratio, seen.obv_trend, seen.vwap_value, seen.price_vs_vwap_status) == (None,) * 4


class TestLevels:
    def test_are_swings_around_the_price_the_nearest_first(self) -> None:
        seen = indicators(waves(240, 0.001))
        below, above = seen.calculated_support_levels, seen.calculated_resistance_levels
        assert below == sorted(below, reverse=True)
        assert above == sorted(above)
        assert below[0] < seen.current_price
        assert seen.support == below[0]

    def test_support_is_the_nearest_low_below_not_the_lowest_of_the_year(self) -> None:
        closes = [30.0, 20, 10, 20, 30, 40, 50, 45, 40, 45, 50, 55, 60, 55, 48, 52, 56, 60]
        seen = indicators([30.0] * 20 + closes, spread=0.0)
        assert seen.current_price == 60
        assert seen.calculated_support_levels[:2] == [48, 40]
        days = [bar.trade_date for bar in bars_of([30.0] * 20 + closes)]
        newest = 20 + closes.index(40.0, 7) + 1  # the day after opened there
        assert seen.support_days[:2] == [days[20 + closes.index(48)], days[newest]]

    def test_each_level_is_the_low_or_the_high_of_its_day(self) -> None:
        bars = bars_of(waves(240, 0.001))
        on, seen = {bar.trade_date: bar for bar in bars}, seen_in(bars)
        assert [round(on[day].low, 4) for day in seen.support_days] == seen.calculated_support_levels
        assert [round(on[day].high, 4) for day in seen.resistance_days] == seen.calculated_resistance_levels

    def test_a_swing_within_half_the_average_range_of_the_price_is_noise(self) -> None:
        closes = [50.0] * 20 + [40, 44, 48, 52, 49.9, 50.1, 52, 51, 50.3, 50.2, 50.0]
        seen = indicators(closes, spread=0.02)
        assert seen.atr_value / 2 <= seen.current_price - seen.support

    def test_at_a_new_high_resistance_is_projected_by_two_average_ranges(self) -> None:
        seen = indicators([10 + n / 10 for n in range(60)])
        assert seen.calculated_resistance_levels == []
        assert seen.resistance == pytest.approx(seen.current_price + 2 * seen.atr_value, abs=1e-3)


class TestPatterns:
    def test_a_fall_that_turns_shows_a_golden_cross_and_a_breakout(self) -> None:
        seen = indicators([20 - n / 10 for n in range(40)] + [17.5, 19.0, 20.5])
        assert {"golden_cross", "breakout_20d_high"} <= set(seen.detected_patterns)
        assert seen.detected_patterns == list(seen.pattern_days)

    def test_a_cross_is_of_the_day_on_which_the_averages_changed_places(self) -> None:
        closes = [20 - n / 10 for n in range(40)] + [17.5, 19.0, 20.5, 20.6]
        days = [bar.trade_date for bar in bars_of(closes)]
        above = [sum(closes[n - 4 : n + 1]) / 5 > sum(closes[n - 19 : n + 1]) / 20 for n in range(20, 44)]
        crossed = days[20 + above.index(True)]
        assert indicators(closes).pattern_days["golden_cross"] == [crossed]
        assert crossed < days[-1]

    def test_a_breakout_names_the_high_it_broke_and_engulfing_the_day_it_swallowed(self) -> None:
        bars = bars_of([10.0] * 25 + [12.0] + [10.0] * 14 + [12.5])
        assert seen_in(bars).pattern_days["breakout_20d_high"] == [bars[26].trade_date, bars[-1].trade_date]
        falling = bars_of([10.0 - n / 100 for n in range(40)])
        last = falling[-1].model_copy(update={"open": 9.5, "close": 9.9, "high": 10.0, "low": 9.4})
        days = seen_in([*falling[:-1], last]).pattern_days["bullish_engulfing"]
        assert days == [falling[-2].trade_date, last.trade_date]

    def test_a_rise_that_breaks_shows_a_death_cross_and_a_breakdown(self) -> None:
        seen = indicators([20 + n / 10 for n in range(40)] + [22.0, 20.5, 19.0])
        assert {"death_cross", "breakdown_20d_low"} <= set(seen.detected_patterns)

    def test_a_day_that_swallows_the_one_before_is_engulfing(self) -> None:
        bars = bars_of([10.0 - n / 100 for n in range(40)])
        last = bars[-1].model_copy(update={"open": 9.5, "close": 9.9, "high": 10.0, "low": 9.4})
        assert "bullish_engulfing" in seen_in([*bars[:-1], last]).detected_patterns

    def test_a_quiet_price_shows_none(self) -> None:
        assert indicators([10.0] * 40).detected_patterns == []


@pytest.mark.parametrize("closes", [[10.0] * 40, waves(30, 0.0), waves(240, -0.01)])
def test_no_indicator_is_ever_nan(closes: list[float]) -> None:
    numbers = [v for v in indicators(closes).__dict__.values() if isinstance(v, float)]
    assert not any(math.isnan(number) for number in numbers)
