"""Texts: whatever a rule or an event can say is in an expert's catalogue, and in none twice."""

from collections.abc import Iterator
from math import inf
from typing import Any, get_args

import pytest

from moot.modules.coordinator.application.report_words import Wording
from moot.modules.research.application import financial_auditor as financial
from moot.modules.research.application import macro_intelligence as macro
from moot.modules.research.application import technical_analyst as technical
from moot.modules.research.application import valuation_modeler as valuation
from moot.modules.research.application.catalyst_detective import CatalystDetectiveService, CatalystDimension
from moot.modules.research.application.expert_service import ExpertService
from moot.modules.research.application.financial_auditor import FinancialDimension, FinancialSignal
from moot.modules.research.application.macro_intelligence import MacroDimension
from moot.modules.research.application.technical_analyst import Pattern
from moot.modules.research.application.valuation_modeler.snapshot import ValuationSnapshot
from moot.modules.research.domain.events import SETTLED, UNREAD, event_table
from moot.modules.research.domain.evidence import Snapshot
from moot.modules.research.domain.facts import SAY
from moot.modules.research.domain.rubric import Rule
from moot.shared.domain.messages import LOCALES, Catalogue, Locale

Service = type[ExpertService[Any, Any]]
RULES: dict[Service, tuple[Rule, ...]] = {
    service: service.rules()
    for service in (technical.SERVICE, financial.SERVICE, valuation.SERVICE, macro.SERVICE)
}
SNAPSHOTS: dict[Service, type[Snapshot]] = {
    technical.SERVICE: technical.TechnicalSnapshot,
    financial.SERVICE: financial.FinancialSnapshot,
    valuation.SERVICE: ValuationSnapshot,
    macro.SERVICE: macro.MacroSnapshot,
}
DIMENSIONS: dict[Service, Any] = {
    financial.SERVICE: FinancialDimension,
    macro.SERVICE: MacroDimension,
    CatalystDetectiveService: CatalystDimension,
}
SERVICES: list[Service] = [*RULES, CatalystDetectiveService]


def texts(service: Service, locale: Locale = "en-US") -> dict[str, str]:
    return service.texts.texts(locale)


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("service", RULES)
def test_every_band_of_every_rule_has_its_sentence(service: Service, locale: Locale) -> None:
    needed = {
        f"{rule.name}.{says}"
        for rule in RULES[service]
        for says in ["name", *(band.says for band in rule.bands)]
    }
    assert needed <= texts(service, locale).keys()


@pytest.mark.parametrize("service", RULES)
def test_a_sentence_that_no_band_uses_is_gone(service: Service) -> None:
    for rule in RULES[service]:
        prefix = f"{rule.name}."
        written = {key.removeprefix(prefix) for key in texts(service, "zh-CN") if key.startswith(prefix)}
        assert written == {"name", *(band.says for band in rule.bands)}


@pytest.mark.parametrize("service", SERVICES)
def test_an_expert_adds_to_what_all_say_and_changes_none_of_it(service: Service) -> None:
    own = Catalogue(service.folder).texts("en-US")
    assert own.keys().isdisjoint(SAY.texts("en-US"))
    assert texts(service).items() >= (SAY.texts("en-US") | own).items()


def test_every_kind_of_event_has_an_impact_and_no_other_has() -> None:
    table = event_table()
    kinds = {category.id for category in (*table.news, *table.policy, UNREAD)} | {SETTLED}
    said = texts(CatalystDetectiveService)
    assert {key.rpartition(".")[2] for key in said if key.startswith("impact.")} == kinds


def test_dimensions_patterns_and_signals_have_names() -> None:
    for service, dimensions in DIMENSIONS.items():
        assert {f"dimension.{dimension.name.lower()}" for dimension in dimensions} <= texts(service).keys()
    assert {f"pattern.{pattern}" for pattern in get_args(Pattern)} <= texts(technical.SERVICE).keys()
    signals = {f"{part}.{s}" for part in ("conclusion", "risk") for s in get_args(FinancialSignal)}
    assert signals <= texts(financial.SERVICE).keys()


@pytest.mark.parametrize("service", RULES)
def test_every_rule_measures_what_the_snapshot_has_and_its_last_band_has_no_limit(service: Service) -> None:
    for rule in RULES[service]:
        known = {*SNAPSHOTS[service].model_fields, *dir(SNAPSHOTS[service])}
        assert {rule.measure, rule.of, rule.less} - {""} <= known, rule.name
        assert rule.bands[-1].below == inf, rule.name


@pytest.mark.parametrize("service", RULES)
def test_the_bands_of_a_rule_ascend(service: Service) -> None:
    for rule in RULES[service]:
        limits = [band.below for band in rule.bands]
        assert limits == sorted(set(limits)), rule.name


@pytest.mark.parametrize("locale", LOCALES)
def test_every_number_of_an_expert_has_a_name_in_the_report(locale: Locale) -> None:
    names = {name for snapshot in _kinds_of(Snapshot) for name in snapshot.units()}
    unnamed = sorted(name for name in names if Wording(locale).measure(name) == name)
    assert unnamed == []


def _kinds_of(kind: type[Snapshot]) -> Iterator[type[Snapshot]]:
    for one in kind.__subclasses__():
        if one.__module__.startswith("moot."):
            yield one
        yield from _kinds_of(one)
