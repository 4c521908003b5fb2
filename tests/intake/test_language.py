"""The language of a question is told by its script and small words, never by names, codes or borrowed terms."""

import time
import tomllib
from pathlib import Path

import pytest

from moot.modules.intake.application.language import detect, locale_of, normalise

FOLDER = Path(__file__).parent / "questions"
QUESTIONS = tomllib.loads((FOLDER / "language.toml").read_text(encoding="utf-8"))


@pytest.mark.accepts("A4-24")
def test_at_least_98_of_100_short_questions_are_recognised() -> None:
    asked = [
        (text, None if tongue == "none" else tongue) for tongue, texts in QUESTIONS.items() for text in texts
    ]
    wrong = [(text, tongue, detect(text)) for text, tongue in asked if detect(text) != tongue]
    assert len(asked) >= 400
    assert len(wrong) <= 0.02 * len(asked), wrong


@pytest.mark.parametrize(
    ("text", "tongue"),
    [
        ("CATL 的估值怎么样", "zh-CN"),
        ("茅台 valuation vs 五粮液", "en-US"),  # between the names it is English
        ("台積電還可以買嗎", "zh-CN"),
        ("任天堂 決算", "ja-JP"),  # without a kana
        ("少額投資非課税制度", "ja-JP"),
        ("企業財務分析", "zh-CN"),  # either: no word is Japan's alone
        ("前期投入多大", "zh-CN"),
        ("創新藥出海熱潮 license-out", "zh-CN"),  # a term does not make it English
        ("Compare 美的集团 with 格力电器 please", "en-US"),  # nor does 的 in a name make it Chinese
        ("中国市場動向", "ja-JP"),  # no Chinese script writes 国 beside 場
        ("宁德时代今後株価予想", "ja-JP"),  # the name is China's, 価 is not
        ("宁德时代最近股价走势", "zh-CN"),
        ("近期股市動向", "zh-CN"),
        ("ありがとう是什么意思", "zh-CN"),
        ("What does ありがとう mean?", "en-US"),
        ("你好はどういう意味？", "ja-JP"),
        ("What is 삼성전자 trading at?", "en-US"),
        ("贵州茅台와 五粮液 비교", "ko-KR"),
        ("“Apple Inc.” 是做什么的", "zh-CN"),
        ("Ｗｈａｔ　ｉｓ　ＡＩ？", "en-US"),
        ("IF合约基差", "zh-CN"),
        ("600519 PE?", None),
        ("CATL vs BYD", None),
        ("https://example.com/x", None),
        ("Quelle est la valeur de cette action ?", None),
        ("", None),
    ],
)
def test_what_stands_between_the_names_decides(text: str, tongue: str | None) -> None:
    assert detect(text) == tongue


@pytest.mark.parametrize(
    ("handed", "locale"),
    [
        ("zh", "zh-CN"),
        ("zh-Hant-TW", "zh-CN"),
        ("en_us", "en-US"),
        ("EN-GB", "en-GB"),
        ("ja", "ja-JP"),
        ("ko-KR", "ko-KR"),
        ("fr", "fr"),
        ("pt-br", "pt-BR"),
        ("Japanese", "ja-JP"),
        ("the user's language", None),
        ("und", None),
        ("", None),
        (None, None),
    ],
)
def test_a_locale_handed_over_is_written_one_way_or_not_taken(handed: str | None, locale: str | None) -> None:
    assert normalise(handed) == locale


@pytest.mark.accepts("A4-08")
def test_a_locale_is_handed_over_else_detected_else_the_default() -> None:
    assert locale_of("ja", "What now?", "en-US") == "ja-JP"
    assert locale_of("", "トヨタの株価は？", "en-US") == "ja-JP"
    assert locale_of("no idea", "600519", "ko-KR") == "ko-KR"


@pytest.mark.parametrize("text", ["@" * 50_000, '"' * 50_000, "a@" * 50_000, "A-" * 50_000, "の" * 50_000])
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    detect(text)
    assert time.process_time() - began < 1
