"""Names that mean no company here: those set beside a known one, and those that are nearly one."""

import pytest

from moot.modules.intake.application.understanding import find_strangers, guess_names
from moot.modules.intake.domain.question import Mention

BESIDE = [
    ("Compare Moutai and Hermes on valuation", ["Hermes"]),
    ("Compare Hermes and Moutai", ["Hermes"]),
    ("How does Moutai compare with Louis Vuitton?", ["Louis Vuitton"]),
    ("Is Moutai better than Hermes?", ["Hermes"]),
    ("Moutai, Hermes and LVMH: who is cheaper?", ["Hermes", "LVMH"]),
    ("茅台和爱马仕哪个好", ["爱马仕"]),
    ("爱马仕和茅台哪个好", ["爱马仕"]),
    ("比较爱马仕和茅台", ["爱马仕"]),
    ("比较茅台、爱马仕和路易威登的估值", ["爱马仕", "路易威登"]),
    ("茅台和Hermes哪个好", ["Hermes"]),
    ("茅台和 600520 哪个好", ["600520"]),
    ("Is Moutai cheap and safe?", []),
    ("Compare Moutai against Chinese peers", []),
    ("Is Moutai worth buying in China and Europe?", []),
    ("What are the risks and Moutai's outlook?", []),
    ("Moutai and PE?", []),
    ("Moutai or cash", []),
    ("茅台的估值和财务", []),
    ("估值和茅台的关系", []),
    ("茅台现在能买吗？", []),
]


@pytest.mark.parametrize(("question", "strangers"), BESIDE)
def test_what_stands_beside_a_known_company_is_a_name_too(question: str, strangers: list[str]) -> None:
    known = [Mention(text=text, symbols=("600519.SH",)) for text in ("Moutai", "茅台") if text in question]
    assert find_strangers(question, known) == strangers


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Is Kweichow Mutai worth buying now?", "Kweichow Mutai worth"),
        ("请问贵州矛台怎么样", "贵州矛台"),
        ("宁得时代的估值", "宁得时代"),
        ("600591 怎么样", "600591"),
    ],
)
def test_a_slip_in_a_name_is_among_the_few_that_are_looked_up(question: str, name: str) -> None:
    guesses = guess_names(question)
    assert name in guesses and len(guesses) <= 8


def test_no_text_takes_long() -> None:
    for text in ("茅台和" * 20_000, "A and " * 20_000, "哈" * 50_000):
        assert len(find_strangers(text[:4000], [Mention(text="茅台", symbols=("600519.SH",))])) <= 5
        assert len(guess_names(text[:4000])) <= 8
