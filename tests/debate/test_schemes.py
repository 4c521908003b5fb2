"""The table of argument schemes: it knows the claims that experts make, and says why in both languages."""

import tomllib
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest

from moot.modules.debate.domain.schemes import load_schemes, relate
from moot.modules.research.application import expert_service
from moot.modules.research.domain import events
from moot.shared.domain.experts import ExpertType
from tests.fakes.debate import claim

EXPERTS = Path(expert_service.__file__).parent
SIDES = {1: "for", 0: "neither", -1: "against"}


def sign(points: float) -> int:
    return (points > 0) - (points < 0)


@cache
def kinds() -> dict[str, str]:
    """Every kind of claim that a rubric can make, and the side it takes."""
    known = {}
    for expert in ExpertType:
        file = EXPERTS / expert / "rules.toml"
        tables = tomllib.loads(file.read_text("utf-8")) if file.exists() else {}
        tables.pop("horizon", None)
        for name, rule in (item for rules in tables.values() for item in rules.items()):
            known |= {f"{expert.prefix}.{name}.{says}": SIDES[sign(p)] for _, p, says in rule["bands"]}
    told = tomllib.loads(Path(events.__file__).with_name("events.toml").read_text("utf-8"))
    of_events = [*told["news"], *told["policy"]]
    return known | {f"catalyst.{event['id']}": SIDES[sign(event["polarity"])] for event in of_events}


def named_so(name: str) -> set[str]:
    """The sides of all kinds that a table calls so."""
    start, _, side = name.partition(":")
    fits = {
        k: s for k, s in kinds().items() if k == start or (side and k.startswith(f"{start}.") and s == side)
    }
    return set(fits.values())


@pytest.mark.parametrize("scheme", load_schemes(), ids=lambda scheme: scheme.name)
def test_every_scheme_names_claims_that_experts_make_and_of_sides_that_fit(scheme):
    by, on = ([named_so(name) for name in names] for names in (scheme.by, scheme.on))
    sources, targets = set().union(*by), set().union(*on)
    assert all(by) and all(on), "a kind that nobody claims"
    assert len(sources) == len(targets) == 1 and "neither" not in sources | targets
    assert (sources == targets) == (scheme.kind == "support")
    assert not set(scheme.by) & set(scheme.on)


def test_a_cheap_multiple_is_undercut_by_falling_earnings_and_both_languages_say_why():
    (relation,) = relate([claim("valuation.pe.cheap", 0.5), claim("financial.profit_growth.slump", -0.5)])
    assert (relation.source, relation.target) == ("financial.profit_growth", "valuation.pe")
    assert (relation.kind, relation.scheme) == ("attack", "cheap_on_falling_earnings")
    assert relation.why == {
        "zh-CN": "盈利正在下滑，按过去的盈利看估值偏低，按下一期的盈利看未必。",
        "en-US": "A multiple looks low on earnings that are falling; on the next ones it may not be.",
    }


def test_a_buyback_is_supported_by_free_cash():
    (relation,) = relate([claim("catalyst.buyback", 0.3), claim("financial.free_cash.earning", 0.5)])
    assert (relation.source, relation.target, relation.kind) == (
        "financial.free_cash",
        "catalyst.buyback",
        "support",
    )


def test_of_several_that_come_to_the_same_the_strongest_speaks_whatever_their_order():
    claims = [
        claim("valuation.pe.cheap", 0.5),
        claim("financial.profit_growth.down", -0.25),
        claim("valuation.growth.shrinking", -0.5),
    ]
    for order in permutations(claims):
        (relation,) = relate(order)
        assert relation.source == "valuation.growth"


def test_claims_that_take_no_side_or_carry_nothing_bear_on_nothing():
    assert relate([claim("technical.room.tight", 0), claim("technical.patterns.bullish", 0.25)]) == []
    assert relate([claim("valuation.pe.middle", 0), claim("financial.profit_growth.slump", -0.5)]) == []
