"""A report: one page first, every claim once, nobody's text more than text; and the same as a page."""

import importlib
import json
import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt

from moot.modules.coordinator.application.report import render_page, render_report, tell_ages
from moot.modules.coordinator.application.report_page import Pen, SvgPen, to_html
from moot.modules.coordinator.application.report_words import Told, Wording
from moot.modules.coordinator.application.results import past_result
from moot.modules.coordinator.domain.dtos.research_dtos import ResearchResult
from moot.modules.coordinator.domain.texts import MEASURES
from moot.modules.research.domain.evidence import Snapshot
from moot.shared.domain.experts import ExpertType
from moot.shared.domain.messages import LOCALES, Locale
from tests.coordinator.test_session_repository import a_node, a_session
from tests.fakes.coordinator import OUTCOME, VERDICT

AT = "2026-06-29T23:30:00Z"
CHEAP = "A PE of 9.00x is far below its median of 12.00x."
FALLS = "Recurring profit fell 8.0% on the year."
TITLE = "Mirage Hill: to buy back up to 0.8% of its shares"
BUYS = f"2026-06-30, “{TITLE}”: the buyback takes shares off the market."
WHY = "A multiple of earnings that shrink is no bargain."


def a_claim(id_: str, says: str, side: str, *, reported: bool = False, **more: Any) -> dict[str, Any]:
    expert = "technical_analyst"
    told = {"en-US": says, "zh-CN": f"中文：{says}"}
    return {"id": id_, "kind": id_, "expert": expert, "dimension": "trend", "side": side, "strength": 0.5} | {
        "says": told, "evidence": ["technical.rsi_value"], "as_of": AT, "reported": reported, **more
    }  # fmt: skip


def argued(words: str = "", **of_verdict: Any) -> dict[str, dict[str, Any]]:
    """The parts of a result in which three claims were weighed; `words` is what strangers say wherever they can."""
    claims = [
        a_claim("technical.pe", words or CHEAP, "for"),
        a_claim("technical.profit", words or FALLS, "against", dimension="momentum"),
        a_claim("technical.event.1", words or BUYS, "for", reported=True, evidence=["technical.event.1"]),
    ]
    attack = {"source": "technical.profit", "target": "technical.pe", "kind": "attack", "scheme": "trap"}
    evidence = [
        {"id": "technical.rsi_value", "value": 54.321, "unit": "index", "source": "demo", "as_of": AT},
        {"id": "technical.fcff_series.2026Q1", "value": 2.5e9, "unit": "CNY", "source": "demo", "as_of": AT},
        {
            "id": "technical.event.1",
            "value": words or TITLE,
            "unit": "",
            "source": words or "demo://n/1",
            "as_of": AT,
        },
    ]
    moved = [
        {"claim": "technical.pe", "says": words or CHEAP, "before": None, "after": 0.25},
        {
            "claim": "technical.gone",
            "says": words or "The price was above its average.",
            "before": 0.5,
            "after": None,
        },
    ]
    since = {
        "session_id": str(a_session().id),
        "as_of": AT,
        "action": "HOLD",
        "confidence": 0.52,
        "moved": moved,
    }
    return {
        "technical_analyst": {
            **{"signal": "BULLISH", "confidence": 0.8, "summary_reasoning": "", "risk_warning": ""},
            **{"narrative_report": "By rule, in many words.", "engine": "rubric"},
            "warnings": [words] if words else [],
            "technical_indicators": {"stock_name": words or "Mirage Hill"},
            "price_series": [["2026-06-26", 10.0], ["2026-06-29", 12.5], ["2026-06-30", 11.0]],
            "evidence": evidence,
            "claims": claims,
        },
        "debate": {
            **OUTCOME,
            "risk_matrix": [
                {"risk": words or FALLS, "probability": "HIGH", "impact": "LOW", "mitigation": words or "Wait."}
            ],
            "argument": {
                "claims": claims,
                "relations": [{**attack, "why": {"en-US": words or WHY, "zh-CN": words or "盈利在缩。"}}],
                "heard": ["technical_analyst"],
                "strengths": {"technical.pe": 0.25, "technical.profit": 0.5, "technical.event.1": 0.5},
                "dimensions": {"technical.trend": 0.6, "technical.momentum": -0.5},
                **{"motion": 0.6, "conviction": 0.2, "direction": "BULLISH", "confidence": 0.6},
                "decisive": ["technical.event.1"],
            },
        },
        "judge": {
            **VERDICT,
            "engine": "rubric",
            "levels": {"entry": 11.0, "stop": 9.5, "target": 13.0},
            "price": {"value": 11.0, "day": "2026-06-30"},
            "headline": words or "Only one expert was heard, so this is a narrow view.",
            "grave": [words] if words else [],
            "would_change": [words or "A close below CNY 9.50."],
            "next_dates": [{"day": "2026-08-28", "what": words or "Half-year report."}],
            "since": since,
            "advice": words or "Keep what you hold.",
            "reasoning": words or "The argument is for buying.\nBy dimension, most for it: Trend.",
            **of_verdict,
        },
    }  # fmt: skip


def a_result(parts: dict[str, dict[str, Any]], locale: Locale = "en-US") -> ResearchResult:
    session = a_session(status="completed", verdict_status="judged", locale=locale)
    nodes = [
        a_node(session.id, node_type=n, result_data=part, evidence=part.get("evidence", []))
        for n, part in parts.items()
    ]
    return past_result(session, nodes, [], "")


def sentences(report: str) -> Counter[str]:
    """Of what somebody says; cells of tables end one too, and names and addresses are none."""
    cells = re.split(r"\||<br>|`[^`]*`|\w+://\S+|\n", report)
    said = (part.strip(" -*>.。") for cell in cells for part in re.split(r"(?<=[。！？])|(?<=[.!?]) ", cell))
    return Counter(part for part in said if len(part) >= 20)


class TestTheFirstPage:
    def test_is_how_the_whole_report_begins(self) -> None:
        result = a_result(argued())
        brief, full = render_report(result, "brief"), render_report(result)
        assert full.startswith(brief)
        assert "## " not in brief

    def test_says_what_how_sure_why_and_what_would_change_it_in_this_order(self) -> None:
        page = render_report(a_result(argued()), "brief")
        told = [
            "# Research report: Mirage Hill (900001.DEMO)",
            "**BUY** · new position 20%\n\nOnly one expert was heard",
            "this is a narrow view.\n\nThe argument is for buying.\n\n",
            "▁█▄<br>Close from 2026-06-26 to 2026-06-30, between CNY 10.00 and CNY 12.50.",
            f"**Why**\n\n1. for ███░░ 0.60 · Trend: {BUYS} (reported) `technical.event.1`",
            "**What decides it**\n\n- reason 1 above `technical.event.1`",
            "**What would change it**\n\n- A close below CNY 9.50.",
            "**Levels**\n\n- Entry: 10.0",
            "**Next dates**\n\n- 2026-08-28: Half-year report.",
            "**Since last time**\n\n- On 2026-06-29 it was HOLD, weight of the argument 0.52.",
            f"- — → +0.25 · {CHEAP} `technical.pe`",
            "- +0.50 → — · The price was above its average. `technical.gone`",
            "**For the holder**\n\n- Keep what you hold.",
            "As of 2026-06-30",
            "> This is research, not investment advice.",
        ]
        places = [page.find(part) for part in told]
        assert -1 not in places, told[places.index(-1)]
        assert places == sorted(places)

    def test_says_what_has_moved_asserts_and_the_rest_refers_to_it(self) -> None:
        parts = argued()
        moved = {"claim": "technical.profit", "says": FALLS, "before": -0.2, "after": -0.5}
        parts["judge"]["since"] = {**parts["judge"]["since"], "moved": [moved]}
        brief, full = render_report(a_result(parts), "brief"), render_report(a_result(parts))
        assert f"- -0.20 → -0.50 · {FALLS} `technical.profit`" in brief
        assert full.count(FALLS) == 1
        assert "| `technical.profit` see page one |" in full

    def test_calls_a_number_a_probability_only_where_past_outcomes_stand_behind_it(self) -> None:
        forecast = {
            "horizon": 20,
            "benchmark": "CSI 300",
            "probability": 0.55,
            "n": 812,
            "method": "isotonic",
        }
        page = render_report(a_result(argued(forecast=forecast, headline="")), "brief")
        ruling = page.splitlines()[2]
        assert "probability of beating CSI 300 over 20 sessions 55% (812 past cases)" in ruling
        assert "weight" not in ruling

    def test_of_both_sides_where_none_won(self) -> None:
        parts = argued(action="HOLD", position_percent=0.0)
        parts["debate"] |= {"direction": "NEUTRAL"}
        assert f"against ██▌░░ 0.50 · Momentum: {FALLS}" in render_report(a_result(parts), "brief")

    def test_of_both_sides_where_none_won_and_one_has_all_the_strongest(self) -> None:
        parts = argued(action="HOLD", position_percent=0.0)
        more = [a_claim(f"technical.{n}", f"It speaks for it, {n} by number.", "for") for n in range(4)]
        argument = parts["debate"]["argument"]
        argument["claims"] += more
        argument["strengths"] |= {claim["id"]: 0.9 for claim in more} | {"technical.profit": 0.1}
        argument["dimensions"] = {"technical.trend": 0.9, "technical.momentum": -0.1}
        parts["debate"] |= {"direction": "NEUTRAL"}
        assert f"2. against ▌░░░░ 0.10 · Momentum: {FALLS}" in render_report(a_result(parts), "brief")


class TestTheRest:
    @pytest.mark.parametrize("locale", LOCALES)
    def test_tells_every_claim_once_and_every_long_sentence_once(self, locale: Locale) -> None:
        report = render_report(a_result(argued(), locale))
        for claim in argued()["debate"]["argument"]["claims"]:
            assert report.count(claim["says"][locale]) == 1, claim["id"]
        assert [said for said, times in sentences(report).items() if times > 1] == []

    def test_shows_what_a_claim_rests_on_and_the_answer_it_got(self) -> None:
        report = render_report(a_result(argued()))
        answered = f"| `technical.pe` see page one<br>↳ weakened by `technical.profit`: {WHY} |"
        assert f"{answered} for █░░░░ 0.25 | 54.32 [1] |" in report
        assert f"| `technical.profit` {FALLS} | against ██▌░░ 0.50 | 54.32 [1] |" in report
        assert "| **Technical analyst · Trend** | +0.60 |" in report
        assert "| 1 | RSI (14 days) | 54.32 | 2026-06-30 | `technical.pe` `technical.profit` |" in report
        assert "| 2 | Free cash flow by quarter | 2026Q1 CNY 2.5 billion | 2026-06-30 |  |" in report
        assert "| 3 | Event 1 | demo://n/1 | 2026-06-30 | `technical.event.1` |" in report

    def test_names_a_risk_that_is_a_claim_by_its_id(self) -> None:
        parts = argued(risk_warnings=[FALLS])
        risk = dict(parts["debate"]["risk_matrix"][0], risk=f"It may cease to hold: {CHEAP}")
        parts["debate"]["risk_matrix"].append(risk)
        report = render_report(a_result(parts))
        assert "| Momentum (`technical.profit`) | high | low | Wait. |" in report
        assert "| Trend: It may cease to hold (`technical.pe`) | high | low |" in report
        assert "- `technical.profit`" not in report, "what the table names is not named again"

    def test_has_the_words_of_a_model_and_not_those_of_rules(self) -> None:
        parts = argued()
        assert "in many words" not in render_report(a_result(parts))
        parts["technical_analyst"]["engine"] = "llm"
        assert render_report(a_result(parts)).count("By rule, in many words.") == 1

    def test_is_in_the_readers_language(self) -> None:
        report = render_report(a_result(argued(), "zh-CN"))
        assert report.startswith("# 研究报告：Mirage Hill（900001.DEMO）\n\n**买入** · 新开仓位 20%\n\n")
        assert "| **技术分析师 · 趋势** | +0.60 |" in report
        assert "|  | **技术分析师** | 看多，置信度 80% |" in report
        assert "25 亿元" in report
        assert re.search("BULLISH|BUY|HOLD|technical_analyst", report) is None

    def test_of_a_session_before_claims_were_kept_has_what_there_was(self) -> None:
        parts = argued()
        del parts["debate"]["argument"]
        del parts["technical_analyst"]["claims"], parts["technical_analyst"]["price_series"]
        old = {"headline", "grave", "price", "would_change", "next_dates", "since", "advice"}
        parts["judge"] = {name: value for name, value in parts["judge"].items() if name not in old}
        report = render_report(a_result(parts))
        assert "**Why**\n\n1. The argument is for buying." in report
        assert "### Technical analyst\n\nBy rule, in many words." in report
        assert "### Debate\n\nthe debate in words" in report
        assert "The argument" in report
        assert "| 1 | RSI (14 days) | 54.32 |" in report

    def test_has_a_name_in_every_language_for_all_that_experts_measure(self) -> None:
        for expert in ExpertType:
            module = importlib.import_module(f"moot.modules.research.application.{expert}")
            shapes = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Snapshot)]
            names = {f"measure.{name}" for shape in shapes for name in shape.units()}
            assert names, expert
            for locale in LOCALES:
                assert names <= MEASURES.texts(locale).keys()

    def test_says_one_day_and_several_days(self) -> None:
        result = a_result(argued())
        parts = {"data_until": {"bars": "2026-06-29", "news": "2026-06-28", "macro": "2026-06-30"}}
        told = a_result({**argued(), "technical_analyst": argued()["technical_analyst"] | parts})
        assert list(tell_ages(result, Wording("en-US"))) == []
        (line,) = tell_ages(told, Wording("en-US"))
        assert "2026-06-29 (1 day old)" in line
        assert "2026-06-28 (2 days old)" in line
        assert "2026-06-30 (same day)" in line


def test_of_several_failures_what_is_to_be_done_is_told_once_and_none_is_left_without_a_word() -> None:
    told, hint = Told({}), "Set a token, or import files of your own."
    assert told.again(f"The daily bars could not be fetched. {hint}").endswith(hint)
    assert told.again(f"The reports could not be fetched. {hint}") == "The reports could not be fetched."
    assert told.again(f"The reports could not be fetched. {hint}").endswith(hint), "all of it was told before"


@pytest.mark.parametrize(
    ("value", "unit", "english", "chinese"),
    [
        (16.37e6, "CNY", "CNY 16.37 million", "1,637 万元"),
        (-2.6079e8, "CNY", "CNY -260.79 million", "-2.61 亿元"),
        (6.36e9, "CNY", "CNY 6.36 billion", "63.6 亿元"),
        (18.48, "100m CNY", "CNY 1.85 billion", "18.48 亿元"),
        (10.0, "CNY", "CNY 10.00", "10.00 元"),
        (1_256_281_985.18, "shares", "1,256.28 million", "12.56 亿股"),
        (603, "sessions", "603 sessions", "603 个交易日"),
        (2.5, "years", "2.5 years", "2.5 年"),
    ],
)
def test_a_value_is_read_in_the_unit_of_its_size(value: float, unit: str, english: str, chinese: str) -> None:
    assert Wording("en-US").value(value, unit) == english
    assert Wording("zh-CN").value(value, unit) == chinese


def test_a_member_of_a_table_by_rate_and_years_is_named_for_both() -> None:
    assert Wording("en-US").measure("732bp_10y") == "7.32% / 10 years"
    assert Wording("zh-CN").measure("732bp_10y") == "7.32% / 10 年"


def test_what_was_told_is_left_out_and_a_claim_is_its_id() -> None:
    told = Told({CHEAP: "`x.pe`"})
    assert told.once(f"First *something* of its own. {CHEAP}") == "First \\*something\\* of its own. `x.pe`."
    assert told.once("First *something* of its own. Short.") == "", "a scrap of what was told"
    assert told.once(CHEAP) == ""
    assert told.once("Short.") == "Short."
    assert told.once(
        "第一句话在这里说过了，足够长，超过二十个字。第二句话在这里也说过了，足够长，超过二十字。"
    )
    assert told.once(
        "第一句话在这里说过了，足够长，超过二十个字。另外还有一句新的话，也足够长，超过二十个字。"
    ) == ("另外还有一句新的话，也足够长，超过二十个字。")


@pytest.mark.parametrize(
    ("closes", "line"),
    [([1.0], "▅"), ([2.0, 2.0], "▅▅"), ([1.0, 2.0, 3.0], "▁▅█"), ([float(n) for n in range(96)], None)],
)
def test_a_line_of_prices_fits_whatever_there_is(closes: list[float], line: str | None) -> None:
    drawn = Pen().chart([("2026-06-30", close) for close in closes], {})
    assert line is None or drawn == line
    assert len(drawn) <= 48
    assert drawn[-1] == ("█" if len(set(closes)) > 1 else "▅")


@pytest.mark.parametrize(
    "levels",
    [
        {"Stop": 9.2, "Target": 11.8},
        {"Stop": 10.0, "Target": 10.01},  # closer than a line of text
        {"止损": 8.01, "目标": 8.0},  # at the bottom
        {"Stop": 12.99, "Target": 13.0},  # at the top
        {"Stop loss": 9.0, "Take profit": 9.0},
    ],
)
def test_what_a_level_is_stands_beside_the_prices_within_the_frame_and_never_over_another(levels):
    pen = SvgPen()
    pen.chart([("2026-06-29", 9.0), ("2026-06-30", 12.0), ("2026-07-01", 10.0)], levels)
    (drawn,) = pen.drawn
    width, bottom = map(float, re.findall(r'viewBox="0 0 (\d+) (\d+)"', drawn)[0])
    ends = max(
        float(x) for x in re.findall(r"([\d.]+),[\d.]+", re.findall(r'"line" points="([^"]+)"', drawn)[0])
    )
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)">(\D+ [\d.]+)</text>', drawn)
    labels = sorted((float(y), float(x), text) for x, y, text in found)
    assert {text for _, _, text in labels} == {f"{name} {level:.2f}" for name, level in levels.items()}
    for y, x, text in labels:
        wide = sum(sign > "\u2e80" for sign in text)
        assert x > ends, "it stands on the prices"
        assert x + 11 * wide + 6.5 * (len(text) - wide) <= width
        assert 11 <= y < bottom - 14, "it stands on the days or leaves the frame"
    assert labels[1][0] - labels[0][0] >= 11, "they stand on each other"


class Tags(HTMLParser):
    """What a browser would see of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: dict[str, str | None] = {}
        self.said = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= dict(attrs)

    def handle_data(self, data: str) -> None:
        self.said += data


HOSTILE = """<script>alert(1)</script>
# <img src=x onerror=alert(2)>
- <svg onload=alert(3)>
> <iframe src="javascript:alert(4)">
| <b onclick=alert(5)> | `</td><script>` |
[click](javascript:alert(6)) **<a href='x'>** &lt;script&gt; " onload="alert(7)"""


class TestAPage:
    @pytest.fixture
    def result(self) -> ResearchResult:
        """Strangers speak wherever they can, and an expert fails with their words."""
        result = a_result(argued(HOSTILE, risk_warnings=[HOSTILE], narrative_report=HOSTILE))
        session = a_session(status="completed", selected_experts=["macro_intelligence"])
        failed = a_node(session.id, node_type="macro_intelligence", status="failed", error_message=HOSTILE)
        more = past_result(session, [failed], [], "").expert_results
        return result.model_copy(update={"expert_results": result.expert_results | more})

    def test_keeps_hostile_text_as_text(self, result: ResearchResult) -> None:
        page = Tags(render_page(result))
        assert page.seen.isdisjoint({"script", "img", "iframe", "b", "a"})
        ours = {"lang", "charset", "name", "content"}
        drawn = {"class", "viewbox", "role", "aria-label", "width", "height", "rx", "points"}
        assert page.attributes.keys() <= ours | drawn | {"x", "y", "x1", "x2", "y1", "y2"}
        assert "<script>alert(1)</script>" in page.said
        assert "<img src=x onerror=alert(2)>" in page.said
        assert "&lt;script&gt;" in page.said

    def test_is_made_of_markdown_in_which_nothing_of_theirs_is_markup(self, result: ResearchResult) -> None:
        """As any reader of Markdown would see it, one that knows HTML, links and tables."""
        written = render_report(result)
        said = json.dumps(HOSTILE)[1:-1]
        tame = render_report(
            ResearchResult.model_validate_json(
                result.model_dump_json().replace(said, "plain words of some length")
            )
        )
        reader = MarkdownIt("commonmark", {"html": True}).enable("table")

        def kinds(markdown: str) -> Counter[str]:
            tokens = [token for block in reader.parse(markdown) for token in (block, *(block.children or []))]
            return Counter(token.type for token in tokens)

        seen = kinds(written)
        assert seen["html_block"] == seen["link_open"] == seen["image"] == 0
        for kind in ("heading_open", "td_open", "tr_open", "table_open", "blockquote_open", "code_inline"):
            assert seen[kind] == kinds(tame)[kind], kind
        assert seen["html_inline"] == written.count("<br>")
        assert written.count("<") == written.count("<br>")

    def test_draws_prices_and_strengths_without_a_script(self) -> None:
        page = render_page(a_result(argued()))
        seen = Tags(page)
        assert seen.seen >= {"svg", "polyline", "rect"}
        assert page.count('<svg class="chart"') == 1
        assert page.count('<svg class="bar"') == 4, "a reason, and each of three claims"
        assert 'width="15.0"' in page
        assert "Target 13.00</text>" in page
        assert "script" not in page
        assert "\U000f0001" not in page
        brief = render_page(a_result(argued()), "brief")
        assert "<svg" in brief
        assert "<h2>" not in brief

    def test_is_whole_and_says_its_language(self) -> None:
        page = render_page(a_result(argued()))
        assert page.startswith('<!doctype html>\n<html lang="en-US">')
        assert "<title>Research report: Mirage Hill (900001.DEMO)</title>" in page
        assert "<strong>BUY</strong>" in page
        plain = render_page(a_result(argued(headline="")))
        ruling = (
            "<strong>BUY</strong> · new position 20% · weight of the argument 0.66 · CNY 11.00 on 2026-06-30"
        )
        assert ruling in plain
        assert "not investment advice" in page
        assert "http" not in page

    @pytest.mark.parametrize(
        ("markdown", "html"),
        [
            ("# A\n## B", "<h1>A</h1>\n<h2>B</h2>"),
            ("> one\n> two", "<blockquote>\n<p>one<br>\ntwo</p>\n</blockquote>"),
            ("- a\n- **b**", "<ul>\n<li>a</li>\n<li><strong>b</strong></li>\n</ul>"),
            ("one\ntwo\n\nthree", "<p>one<br>\ntwo</p>\n<p>three</p>"),
            ("*so* `x*y*z` 2 * 3 * 4", "<p><em>so</em> <code>x*y*z</code> 2 * 3 * 4</p>"),
            (
                "|  | Bull |\n| --- | --- |\n| a \\| b | c<br>d |",
                "<table>\n<thead>\n<tr>\n<th></th>\n<th>Bull</th>\n</tr>\n</thead>\n"
                "<tbody>\n<tr>\n<td>a | b</td>\n<td>c<br>d</td>\n</tr>\n</tbody>\n</table>",
            ),
            ("[a](http://b) <http://b> ![c](d)", "<p>[a](http://b) &lt;http://b&gt; ![c](d)</p>"),
            ("<img src=x>", "<p>&lt;img src=x&gt;</p>"),
            ("#hash -dash", "<p>#hash -dash</p>"),
        ],
    )
    def test_knows_the_markdown_of_reports(self, markdown: str, html: str) -> None:
        assert to_html(markdown) == f"{html}\n"
