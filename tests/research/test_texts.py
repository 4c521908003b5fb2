"""Texts: both catalogues say the same things, and whatever a rule or an event can say is in them."""

from string import Formatter
from typing import get_args

import pytest

from moot.modules.research.domain.catalyst import CatalystDimension
from moot.modules.research.domain.events import UNREAD, event_table
from moot.modules.research.domain.financial import FinancialDimension, FinancialSignal
from moot.modules.research.domain.macro import MacroDimension
from moot.modules.research.domain.scorecard import Rule
from moot.modules.research.domain.technical import Pattern
from moot.modules.research.domain.texts import SAY
from moot.modules.research.infrastructure.rubrics import financial, macro, technical, valuation
from moot.shared.domain.messages import LOCALES, Locale

RULES: dict[str, tuple[Rule[object], ...]] = {
    "technical": technical.RULES,
    "financial": financial.RULES,
    "valuation": valuation.RULES,
    "macro": macro.RULES,
}
DIMENSIONS = {"financial": FinancialDimension, "macro": MacroDimension, "catalyst": CatalystDimension}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_both_catalogues_have_the_same_keys_and_placeholders() -> None:
    chinese, english = (SAY.texts[locale] for locale in LOCALES)
    assert chinese.keys() == english.keys()
    assert {k: placeholders(v) for k, v in chinese.items()} == {
        k: placeholders(v) for k, v in english.items()
    }


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("expert", RULES)
def test_every_band_of_every_rule_has_its_sentence(expert: str, locale: Locale) -> None:
    said = SAY.texts[locale]
    needed = {
        f"{expert}.{rule.name}.{says}"
        for rule in RULES[expert]
        for says in ["name", *(band.says for band in rule.bands)]
    }
    assert needed <= said.keys()


@pytest.mark.parametrize("expert", RULES)
def test_a_sentence_that_no_band_uses_is_gone(expert: str) -> None:
    for rule in RULES[expert]:
        prefix = f"{expert}.{rule.name}."
        written = {key.removeprefix(prefix) for key in SAY.texts["zh-CN"] if key.startswith(prefix)}
        assert written == {"name", *(band.says for band in rule.bands)}


def test_every_kind_of_event_has_an_impact_and_no_other_has() -> None:
    table = event_table()
    kinds = {category.id for category in (*table.news, *table.policy, UNREAD)}
    assert {k.rpartition(".")[2] for k in SAY.texts["en-US"] if k.startswith("catalyst.impact.")} == kinds


def test_dimensions_patterns_and_signals_have_names() -> None:
    needed = {f"{e}.dimension.{d.name.lower()}" for e, kind in DIMENSIONS.items() for d in kind}
    needed |= {f"technical.pattern.{pattern}" for pattern in get_args(Pattern)}
    needed |= {f"financial.{part}.{s}" for part in ("conclusion", "risk") for s in get_args(FinancialSignal)}
    assert needed <= SAY.texts["en-US"].keys()


@pytest.mark.parametrize("expert", RULES)
def test_the_bands_of_a_rule_ascend(expert: str) -> None:
    for rule in RULES[expert]:
        limits = [band.below for band in rule.bands]
        assert limits == sorted(set(limits)), rule.name
