"""What a text states is looked up in the evidence: rounded, cut, in another unit; not invented."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from moot.shared.domain.claims import Claim
from moot.shared.domain.evidence import Evidence
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.grounding import ground, mark_reported

NOON = datetime(2026, 6, 30, 4, 0, tzinfo=UTC)
NEWS = "https://news.example.com/a/2026,0630.html"


def item(name: str, value: float | str, unit: str = "", source: str = "daily bars") -> Evidence:
    return Evidence(id=name, value=value, unit=unit, source=source, as_of=NOON)


EVIDENCE = [
    item("technical.current_price", 17.346, "CNY"),
    item("technical.ma20", 16.9, "CNY"),
    item("technical.high_20d", 18.25, "CNY"),
    item("technical.change_percent", -3.218, "%"),
    item("valuation.total_mv", 1234.56, "100m CNY"),
    item("valuation.pe_ttm", 23.96, "x"),
    item("financial.fcff", 5_678_900_000.0, "CNY"),
    item("financial.roe", 0.1234),
    item("financial.revenue_growth.2025Q3", 41.07, "%"),
    item("macro.lpr_1y_change", -0.25, "pp"),
    item("catalyst.event.1", "Order worth 4,200 million yuan, margin up 6.5%", source=NEWS),
    item("catalyst.event.2", "公司回购３５００万元，涨幅 7.7%", source="https://b.example.cn/x_(y)"),
]

GROUNDED = [
    # rounded and cut
    "The price is 17.346.",
    "The price is 17.35 CNY.",
    "The price is 17.34.",
    "The price is about 17.3, nearly 17.",
    "股价 17.35 元，接近18.25元的高点。",
    "市盈率24倍",
    "市盈率 23.9 倍",
    "P/E of 24.0x",
    # the sign dropped, or kept
    "It fell by 3.2%.",
    "Change: -3.22%",
    "涨跌幅为-3.2%",
    "下跌 3.218%",
    # fraction and percentage
    "ROE is 12.3%",
    "ROE为12.34％",
    "ROE 0.1234",
    "ROE of 12 percent",
    "LPR 下调 25 个基点",
    "The LPR was cut by 25bp, that is 0.25 percentage points.",
    # multiples
    "总市值 1,234.56 亿元",
    "总市值约1235亿",
    "总市值0.12万亿元",
    "A market value of 123.5 billion yuan",
    "A market value of CNY 123.456bn",
    "自由现金流 56.79 亿元",
    "自由现金流567,890万元",
    "Free cash flow of 5,678.9 million",
    "Free cash flow of ¥5,678,900,000",
    # full-width
    "股价１７．３５元",
    # what evidence is called
    "above its 20-day average of 16.9",
    "20 日均线; MA5/10/20",
    "2025Q3 growth of 41.1%",
    # glued to a word, yet stated
    "RSI17.35",
]


@pytest.mark.parametrize("text", GROUNDED)
def test_a_number_of_the_evidence_holds_however_it_is_written(text):
    found = ground([text], EVIDENCE)
    assert (found.score, found.offenders) == (1.0, [])


@pytest.mark.parametrize("text", [text for text in GROUNDED if "20" not in text])
def test_the_same_number_is_an_offence_where_nothing_was_given(text):
    assert ground([text], []).score == 0.0


REPORTED = [
    ("an order of 4.2 billion yuan", ["4.2 billion"]),
    ("订单42亿元，毛利率升6.5%", ["42亿", "6.5%"]),
    ("回购 3500 万元", ["3500 万"]),
    ("repurchase of 35 million", ["35 million"]),
    ("see https://in.a.title/x", ["https://in.a.title/x"]),
]


@pytest.mark.parametrize(("text", "reported"), REPORTED)
def test_what_only_others_wrote_is_reported_and_counts_neither_way(text, reported):
    known = [*EVIDENCE, item("catalyst.web.1", "more at https://in.a.title/x", source=NEWS)]
    found = ground([f"{text}, 17.35 and 99.9"], known, given=text)
    assert (found.reported, found.offenders, found.checked, found.score) == (reported, ["99.9"], 2, 0.5)


def test_what_was_measured_is_grounded_whoever_else_wrote_it():
    told = item("catalyst.event.1", "ROE of 12.3%, see " + NEWS, source=NEWS)
    found = ground([f"ROE 12.3%, {NEWS}"], [*EVIDENCE, told])
    assert (found.reported, found.offenders, found.checked) == ([], [], 2)


def test_quoted_lines_of_what_was_shown_come_from_outside():
    shown = "Stop at 15.8\n> orders of 88.8 million, www.tip.example\n> stop at 15.9"
    found = ground(["15.8, 15.9, 88.8 million, www.tip.example"], [], given=shown)
    assert found.reported == ["www.tip.example", "15.9", "88.8 million"]
    assert (found.checked, found.offenders) == (1, [])


def test_a_figure_in_a_field_of_its_own_must_be_measured():
    told = [item("catalyst.event.1", "target 21.5, says a broker")]
    found = ground(["the broker's target of 21.5"], told, figures=["21.5", "17.35"])
    assert (found.reported, found.offenders) == ([], ["21.5", "17.35"])
    assert ground([], EVIDENCE, figures=["17.35"]).score == 1


@pytest.mark.parametrize(
    ("locale", "text", "marked"),
    [
        ("zh-CN", "订单42亿元，MA42 升6.5%。", "订单42亿元〔据报道〕，MA42 升6.5%〔据报道〕。"),
        ("en-US", "up 6.5%, 6.5% and 6.55%", "up 6.5% [reported], 6.5% [reported] and 6.55%"),
        ("en-US", "see https://a.b/c.", "see https://a.b/c [reported]."),
        ("en-US", "nothing", "nothing"),
    ],
)
def test_what_is_reported_is_marked_where_it_stands(locale, text, marked):
    assert mark_reported(text, ["42亿", "42", "6.5%", "https://a.b/c"], locale) == marked


WRONG_KIND = [
    ("The price is 17.35%", ["17.35%"]),
    ("市盈率 23.96%", ["23.96%"]),
    ("涨跌幅 3.218 倍", ["3.218 倍"]),
    ("change of CNY 3.218", ["CNY 3.218"]),
    ("总市值 1234.56 元", ["1234.56 元"]),
    ("LPR 下调 0.25 个基点", ["0.25 个基点"]),
    ("LPR 下调 25 个百分点", ["25 个百分点"]),
]


@pytest.mark.parametrize(("text", "offenders"), WRONG_KIND)
def test_the_right_number_of_the_wrong_kind_does_not_hold(text, offenders):
    assert ground([text], EVIDENCE).offenders == offenders


def test_an_index_may_be_written_as_a_percentage():
    assert ground(["PMI 49.8%", "PMI 49.8"], [item("macro.pmi", 49.8, "index")]).offenders == []


READINGS = [
    item("technical.ma20", 8.4381, "CNY"),
    item("technical.ma60", 8.6926, "CNY"),
    item("technical.rsi_value", 43.5965, "index"),
    item("technical.adx_value", 17.6439, "index"),
    item("financial.gross_margin", 45.2, "%"),
    item("financial.gross_margin_series.2025Q3", 43.1, "%"),
    item("valuation.pe_ttm", 5.3867, "x"),
    item("valuation.pb", 0.5637, "x"),
    item("valuation.pe_percentile", 17, "%"),
    item("catalyst.event.1", "RSI of 17.6 and ROE of 88.8%, says a blog"),
]


def claim(name: str, evidence: list[str], zh: str, en: str) -> Claim:
    return Claim(
        id=f"technical.{name}",
        kind=f"technical.{name}.x",
        expert=ExpertType.TECHNICAL_ANALYST,
        dimension="trend",
        side="for",
        strength=0.5,
        says={"zh-CN": zh, "en-US": en},
        evidence=evidence,
        as_of=NOON,
    )


CLAIMS = [
    claim(
        "ma20_ma60",
        ["technical.ma20", "technical.ma60"],
        "20 日均线 8.44 元低于 60 日均线 8.69 元，空头排列。",
        "The 20-day average of CNY 8.44 is below the 60-day average of CNY 8.69.",
    ),
    claim(
        "margin",
        ["financial.gross_margin"],
        "毛利率为 45.2%，较高。",
        "Gross margin is 45.2%, which is high.",
    ),
]


@pytest.mark.parametrize(
    ("text", "offenders"),
    [
        ("RSI 为 17.6，偏弱", ["17.6"]),
        ("RSI is 17.6", ["17.6"]),
        ("PE(TTM) 0.56 倍", ["0.56 倍"]),
        ("PB of 5.39x", ["5.39x"]),
        ("PE 分位 45.2%", ["45.2%"]),
        ("目前 20 日均线 8.69 元低于 60 日均线 8.44 元", ["8.69 元", "8.44 元"]),
        ("Today the 20-day average of CNY 8.69 is flat", ["CNY 8.69"]),
        ("毛利率为 17%", ["17%"]),
        ("RSI 为 43.6。毛利率为 17%，处于 17% 分位", ["17%"]),
    ],
)
def test_a_right_number_stated_for_another_measure_does_not_hold(text, offenders):
    readings = [reading for reading in READINGS if not isinstance(reading.value, str)]
    assert ground([text], readings, claims=CLAIMS).offenders == offenders
    assert ground([text], readings, claims=CLAIMS, given="17.6, 0.56, 8.44").offenders == offenders


@pytest.mark.parametrize(
    "text",
    [
        "RSI 为 43.6，ADX 只有 17.6；PE 与 PB 分别为 5.39 倍和 0.56 倍",
        "PE(TTM) 5.39 倍，处于 17% 分位，PB 0.56 倍",
        "RSI 43.6 高于 ADX 的 17.6",
        "ROE 一栏缺失，毛利率 45.2%",
        "毛利率为 45.2%，2025Q3 毛利率为 43.1%",
        "20 日均线 8.44 元，60 日均线 8.69 元",
        "The 20-day average of CNY 8.44 is below the 60-day average of CNY 8.69; RSI at 43.6, PE 5.4x, PB 0.56x.",
        "RSI(14) of 43.6; the PE ranks at 17%",
    ],
)
def test_a_measure_may_be_named_in_other_words(text):
    assert ground([text], READINGS, claims=CLAIMS).offenders == []


def test_what_others_say_of_a_measure_is_reported_and_not_its_value():
    found = ground(["RSI 为 17.6，ROE 88.8%"], READINGS, claims=CLAIMS)
    assert (found.reported, found.offenders) == (["17.6", "88.8%"], [])


def test_a_number_that_is_wrong_in_one_place_is_wrong():
    assert ground(["ADX 17.6, RSI 17.6, ADX 17.6"], READINGS[:4]).offenders == ["17.6"]


INVENTED = [
    ("The price is 18.35.", ["18.35"]),
    ("The price is 17.36.", ["17.36"]),
    ("The price is 17.33.", ["17.33"]),
    ("目标价 21.5 元", ["21.5 元"]),
    ("市盈率25倍", ["25倍"]),
    ("跌了4%", ["4%"]),
    ("毛利率１８．９％", ["１８．９％"]),
    ("ROE of 13.4%", ["13.4%"]),
    ("总市值 1234.56 万元", ["1234.56 万"]),
    ("A market value of 1.235 billion", ["1.235 billion"]),
    ("Revenue of $88,000", ["$88,000"]),
    ("Growth of 99 percent", ["99 percent"]),
    ("RSI62.4 and PE31倍", ["62.4", "31倍"]),
    ("It rose: +3.2%", ["+3.2%"]),
    ("PE(23.96), ROE 变动 -12.3%", ["-12.3%"]),
    ("连续33天下跌", ["33"]),
    ("上证指数3300点", ["3300"]),
    ("a stop at 1.9k", ["1.9k"]),
    ("20% of it", ["20%"]),
    ("MA 12,3456", ["12", "3456"]),
    # one or two digits are rounded, never cut
    ("市盈率 23 倍", ["23 倍"]),
    ("price of 17, then CNY 18", []),
    ("ROE 0.1, 变动 -0.2 个百分点", []),
    ("高点 19 元", ["19 元"]),
]


@pytest.mark.parametrize(("text", "offenders"), INVENTED)
def test_a_number_nobody_gave_is_named_as_it_was_stated(text, offenders):
    assert ground([text], EVIDENCE).offenders == offenders


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no figures here, 没有数字",
        "1. first\n2) second\n（3）第三\n4、第四\n12. twelfth\n  13) thirteenth",
        "three risks, 5 experts, 10 reasons, 分 3 项",
        "In 2024 and 2025–2026, FY2023, 2024E, 2026年, 2024财年",
        "2026-06-30, 2026/6/30, 2026.06.30, 2026年6月30日, 20260630, 2026-06, 6月30日, 12月",
        "On March 31, 2026, 31 March, Dec. 25th; 15:00, 9:30:15",
        "Q3, 2025Q3, 2025 Q3, H1, 第3季度, 第12条, 3季度",
        "MA60, KDJ9, CSI300, COVID-19, 600519.SH, 900001.DEMO, 0700.HK, 5G, v1.2.3, 20th",
        "technical.ma60 and technical.calculated_support_levels.11",
        "MACD(12,26,9), RSI(14), 布林带BOLL（20,2）",
        "持有 6-12 个月，3至6个月，近 3 年；6 to 12 months, a 52-week high, 18 months",
        "60日均线、200日均线、14 天、250个交易日; the 200-day average, 20 trading days",
    ],
)
def test_dates_counts_windows_and_names_are_not_checked(text):
    found = ground([text], [])
    assert (found.score, found.checked, found.offenders) == (1.0, 0, [])


def test_a_sign_that_is_written_must_be_the_right_one():
    rose, fell = [item("a", 3.2, "%")], [item("a", -3.2, "%")]
    assert ground(["change -3.2%", "变动为 +3.2%"], rose).offenders == ["-3.2%"]
    assert ground(["change -3.2%", "变动为 +3.2%"], fell).offenders == ["+3.2%"]
    assert ground(["support at 10-3.2, 区间1元-3.2元"], [item("a", 3.2, "CNY")]).offenders == ["1元"]


def test_what_the_writer_was_shown_and_what_it_judges_itself_hold():
    shown = "Stop at 15.8 for 600519.SH, worth 3亿"
    texts = ["stop 15.80, code 600519", "3亿元, 300 million", "confidence 0.72, that is 72%"]
    assert ground(texts, [], given=shown, own=[0.72]).offenders == []
    assert ground(texts, []).checked == 6


def test_dates_in_what_was_shown_support_no_number():
    assert ground(["up 30%"], [], given="as of 2026-06-30").offenders == ["30%"]


def test_urls_must_be_sources():
    texts = [
        f"See {NEWS}. Also ({NEWS}), [link]({NEWS}/) and {NEWS}公告",
        "http://b.example.cn/x_(y)，https://c.example.com/made-up/18.9?",
        "www.nowhere.example",
    ]
    found = ground(texts, EVIDENCE, given="https://shown.example/1,https://shown.example/2")
    assert found.offenders == ["https://c.example.com/made-up/18.9", "www.nowhere.example"]
    assert (
        ground(["https://shown.example/2"], [], given="https://shown.example/1,https://shown.example/2").score
        == 1
    )


def test_what_is_stated_twice_counts_once():
    found = ground(["17.35 and 17.35", "17.35; 99.9"], EVIDENCE)
    assert (found.checked, found.score, found.offenders) == (2, 0.5, ["99.9"])


Values = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False)


@examples(value=Values, decimals=st.integers(0, 20))
def test_any_evidence_printed_with_any_number_of_decimals_is_grounded(value, decimals):
    texts = [f"It is {value:.{decimals}f}", f"共{abs(value):,.{decimals}f}元"]
    assert ground(texts, [item("a", value)]).offenders == []


@examples(value=Values, unit=st.sampled_from([("万", 1e4), ("亿", 1e8), (" million", 1e6), ("bn", 1e9)]))
def test_any_evidence_in_a_larger_unit_is_grounded(value, unit):
    name, scale = unit
    assert ground([f"{value / scale:.3f}{name}"], [item("a", value, "CNY")]).offenders == []


@examples(
    digits=st.text("123456789", min_size=3, max_size=9),
    point=st.integers(1, 8),
    other=st.sampled_from("123456789"),
)
def test_a_number_changed_in_its_leading_digit_is_not_grounded(digits, point, other):
    point = min(point, len(digits) - 1)
    evidence = [item("a", float(f"{digits[:point]}.{digits[point:]}"))]
    stated = f"{other}{digits[1:point]}.{digits[point:]}"
    assert ground([f"共{stated}元"], evidence).score == (1.0 if other == digits[0] else 0.0)


@examples(st.text(max_size=300), st.text(max_size=300))
def test_no_text_breaks_the_check(text, shown):
    found = ground([text], EVIDENCE, given=shown)
    assert 0 <= found.score <= 1
    assert len(found.offenders) <= found.checked


@pytest.mark.parametrize(
    "text",
    [
        "9" * 10_000,
        "1," * 5_000,
        "1,111" * 2_000,
        "1.1" * 3_334,
        "1 to " * 2_000,
        "(1,1" * 2_500,
        " " * 10_000,
        "\n" * 10_000,
        "https://" * 1_250,
        "www." * 2_500,
        "-1" * 5_000,
        "价格17.35元，" * 1_000,
        "a.1" * 3_333,
    ],
)
def test_long_texts_take_no_time(text):
    started = time.process_time()
    ground([text], EVIDENCE, given=text)
    assert time.process_time() - started < 2
