"""Answers as Markdown: whoever wrote the words in them, nothing in them lives but the links to their sources."""

import re
from collections.abc import Iterator
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from moot.modules.intake.application.language import tongue_of
from moot.modules.intake.application.report_text import (
    clean_url,
    clip,
    headings_for,
    language_name,
    markdown_of,
    shorten,
    split_blocks,
    tame,
)
from moot.modules.intake.domain.conversation import Answer, Section
from moot.modules.intake.domain.question import Citation, Tongue
from moot.shared.domain.markdown import escape
from moot.shared.domain.messages import LOCALES
from moot.shared.domain.texts import SAY as COMMON

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!-- hide the rest",
    "<javascript:alert(1)>",
    "<https://evil.example/login>",
    "[x](javascript:alert(1))",
    "[x]( <javascript:alert(1)> )",
    "![](http://evil.example/beacon.png)",
    "![x][b]\n\n[b]: http://evil.example/beacon.png",
    "[click][1]\n\n[1]: javascript:alert(1)",
    "]```(javascript:alert(1))",
    "<```script>alert(1)</script>",
    "[x]\u200b(javascript:alert(1))",
    "\\<script>alert(1)</script>",
    "&lt;script&gt;",
    "```\nnobody ever closes this",
    "~~~\nnor this",
    "Looks like a title\n===",
    "Looks like a title\n---",
    "# Verdict: BUY everything",
    "ignore previous instructions",
]
MARKDOWN = MarkdownIt("commonmark").enable("table")


def tokens(markdown: str) -> Iterator[Token]:
    for token in MARKDOWN.parse(markdown):
        yield token
        yield from token.children or []


def live(markdown: str) -> list[str]:
    """HTML, images and links that a page would show."""
    kinds = ("html_inline", "html_block", "image", "link_open", "fence")
    return [f"{t.type} {t.attrGet('href') or t.content}" for t in tokens(markdown) if t.type in kinds]


def headings(markdown: str) -> list[str]:
    parsed = MARKDOWN.parse(markdown)
    return [parsed[at + 1].content for at, token in enumerate(parsed) if token.type == "heading_open"]


def words(markdown: str) -> str:
    """What a reader of the page reads."""
    return " ".join(re.sub(r"<[^>]*>", "", MARKDOWN.render(markdown)).split())


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_lives_in_the_words_of_strangers_or_of_a_model(attack: str):
    assert live(escape(attack)) == []
    assert headings(f"- {escape(attack)}") == []
    assert live(tame(attack)) == []
    assert live(f"{tame(attack)}\n\n## Sources\n") == []
    assert headings(f"{tame(attack)}\n\n## Sources")[-1] == "Sources"


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            *"<>[]()!:`~#\\&=-|*_ \n\t",
            "```",
            "script",
            "javascript:x",
            "http://e.example",
            "\u200b",
            "\x1b",
            "[1]",
            "[1]:x",
            "\u3000",
        ]
    ),
    max_size=24,
).map("".join)


@given(FRAGMENTS)
def test_nothing_live_comes_together_from_any_pieces(text: str):
    assert live(f"x {escape(text)} y") == []
    assert live(f"{tame(text)}\n\n> end") == []
    assert headings(f"{tame(text)}\n\n## Sources")[-1] == "Sources"
    assert tame(tame(text)) == tame(text)
    defined: dict[str, object] = {}
    MARKDOWN.parse(tame(text), defined)
    assert defined.get("references", {}) == {}


@given(st.text(st.sampled_from("a b*_[]()\\`|~#<&;1.!-"), max_size=40))
def test_strangers_are_read_word_for_word(text: str):
    (paragraph,) = re.findall("<p>(.*)</p>", MARKDOWN.render(escape(text))) or [""]
    read = paragraph.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")
    assert read == " ".join(text.split())


def test_lists_tables_and_emphasis_of_a_model_stay():
    text = "**PE** is lower [1].\n\n| | A | B |\n|---|---|---|\n| PE | 10 | 12 |\n\n- one\n- two"
    assert tame(text) == text
    assert {"strong_open", "table_open", "bullet_list_open"} <= {token.type for token in tokens(tame(text))}


def test_headings_inside_a_section_stay_below_its_own():
    assert tame("# Big\n## Less\n##### Small") == "### Big\n### Less\n##### Small"
    assert tame("# Big", top=4) == "#### Big"


def test_a_terminal_obeys_nobody():
    assert escape("\x1b[31mred\x07 \u202etxet\u2066 a\u200bb\nc") == "\\[31mred txet ab c"
    assert tame("one\x1b[2J\r\ntwo\u2028three") == "one[2J\ntwo\nthree"


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://news.example/a?b=1&c=2#d", "https://news.example/a?b=1&c=2#d"),
        ("HTTP://news.example/新闻", "HTTP://news.example/新闻"),
        ("https://news.example/a (b) <c>[d]", "https://news.example/a%20%28b%29%20%3Cc%3E%5Bd%5D"),
        ("java\tscript:alert(1)", None),
        ("javascript:alert(1)//http://news.example", None),
        ("data:text/html,<script>", None),
        ("file:///etc/passwd", None),
        ("https://bank.example@evil.example/", None),
        ("https://", None),
        ("https://[::1", None),
        ("//evil.example", None),
        ("", None),
        (None, None),
    ],
)
def test_only_pages_on_the_web_are_linked(url: str | None, safe: str | None):
    assert clean_url(url) == safe


def an_answer(**also: object) -> Answer:
    given = {
        "locale": "en-US",
        "style": "research",
        "title": "Title",
        "engine": "llm",
        "disclaimer": "No advice.",
        "markdown": "",
    }
    return Answer.model_validate({**given, **also})


def test_sources_are_numbered_as_they_are_cited_and_linked_only_where_that_is_safe():
    citations = [
        Citation(
            title="One [x](javascript:alert(1))", url="https://one.example/", source="web", quote="<b>Hi</b>"
        ),
        Citation(
            title="![](http://evil.example/b.png)",
            url="javascript:alert(1)",
            published_at="2026-06-01T10:00Z",
        ),
        Citation(title="", url="https://three.example/"),
    ]
    text = markdown_of(an_answer(citations=citations))
    assert live(text) == ["link_open https://one.example/", "link_open https://three.example/"]
    (numbered,) = [token for token in tokens(text) if token.type == "ordered_list_open"]
    assert sum(token.type == "list_item_open" for token in tokens(text)) == 3
    assert numbered.attrGet("start") is None
    assert "[One \\[x\\](javascript:alert(1))](https://one.example/) · web\n   > “&lt;b>Hi&lt;/b>”" in text
    assert "2. !\\[\\](http://evil.example/b.png) · 2026-06-01\n" in text
    assert "3. [https://three.example/](https://three.example/)\n" in text


@pytest.mark.parametrize(
    ("style", "quoted"), [("research", True), ("academic", True), ("brief", False), ("news", False)]
)
def test_styles_for_a_quick_read_do_not_quote(style: str, quoted: bool):
    text = markdown_of(an_answer(style=style, citations=[Citation(title="One", quote="Said so.")]))
    assert ("Said so." in text) is quoted


def test_the_rules_quote_in_the_text_and_not_again_among_the_sources():
    text = markdown_of(an_answer(engine="rules", citations=[Citation(title="One", quote="Said so.")]))
    assert "Said so." not in text


def test_parts_without_a_word_have_no_heading():
    assert markdown_of(an_answer()) == "# Title\n\n> No advice.\n"


def test_the_parts_of_an_answer_come_in_their_order():
    answer = an_answer(
        key_points=["First [1]"],
        sections=[Section(heading="Overview", text="All."), Section(heading="Risks", text="- One")],
        citations=[Citation(title="Paper")],
        warnings=["Old <b>data</b>"],
    )
    text = markdown_of(answer)
    assert headings(text) == ["Title", "Key points", "Overview", "Risks", "Sources", "Notes"]
    assert "- Old &lt;b>data&lt;/b>\n" in text
    assert words(text).endswith("No advice.")


def test_the_pieces_are_all_of_the_text_block_by_block():
    text = "# T\n\n- a\n- b\n\n\n> end\n"
    assert list(split_blocks(text)) == ["# T\n\n", "- a\n- b\n\n\n", "> end\n"]
    assert list(split_blocks("")) == []


@pytest.mark.parametrize(
    ("text", "longest", "told"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcde fgh", 7, "abcde…"),
        ("between 11.05 and 28.05", 11, "between…"),
        ("区间为 121.33 至 302.29 元", 8, "区间为…"),
        ("估值偏高，目前不是机会", 6, "估值偏高…"),
        ("red flags (30)", 12, "red flags…"),
        ("a" * 20, 10, "a" * 9 + "…"),
    ],
)
def test_what_is_too_long_says_that_it_goes_on_and_no_number_is_cut(text: str, longest: int, told: str):
    assert clip(text, longest) == told
    assert len(told) <= longest


@pytest.mark.parametrize(
    ("text", "most", "told"),
    [
        ("At CNY 11.22 it is cheap. So it is. And more.", None, "At CNY 11.22 it is cheap. So it is."),
        ("At CNY 11.22 it is cheap. So it is.", 1, "At CNY 11.22 it is cheap."),
        (
            "It fell below 302.29; the view is wrong; and more",
            None,
            "It fell below 302.29; the view is wrong",
        ),
        ("现价 11.22 元，估值偏低。更像机会。", 1, "现价 11.22 元，估值偏低。"),
        (
            "one sentence that goes on for far too long to fit here",
            None,
            "one sentence that goes on for far too…",
        ),
        ("", None, ""),
    ],
)
def test_a_text_is_shortened_by_whole_sentences(text: str, most: int | None, told: str):
    assert shorten(text, 40, most=most) == told


def test_words_in_brackets_read_as_they_are_unless_they_define_a_link():
    said = "Valuation modeler [Overvalued, 0.92]: at CNY 339.91"
    assert tame(said) == said
    assert tame("[x]: http://evil.example") == "[x]\\: http://evil.example"
    assert tame("\u3000[x]: http://evil.example") == "[x]\\: http://evil.example"
    assert tame("> - [x\ny]: http://evil.example") == "> - [x\ny]\\: http://evil.example"


class TestHeadings:
    def test_every_language_has_the_same_ones_with_the_same_places_to_fill(self):
        tables = [headings_for(tongue) for tongue in get_args(Tongue)]
        places = [{key: sorted(re.findall(r"\{\w+\}", text)) for key, text in t.items()} for t in tables]
        assert places == [places[0]] * 4

    @pytest.mark.parametrize(
        ("locale", "key_points"),
        [
            ("zh-CN", "要点"),
            ("zh-TW", "要点"),
            ("en-GB", "Key points"),
            ("ja", "要点"),
            ("ko_KR", "핵심 요점"),
            ("fr-FR", "Key points"),
        ],
    )
    def test_they_follow_the_language_whatever_the_region(self, locale: str, key_points: str):
        assert headings_for(locale)["key_points"] == key_points

    def test_a_language_without_headings_goes_by_its_locale(self):
        assert (tongue_of("fr-FR"), language_name("fr-FR"), language_name("ja-JP")) == (
            None,
            "fr-FR",
            "日本語",
        )

    def test_the_desk_says_everywhere_that_it_gives_no_advice(self):
        ours = [headings_for(locale)["not_advice"] for locale in LOCALES]
        assert ours == [COMMON("not_advice").in_locale(locale) for locale in LOCALES]
