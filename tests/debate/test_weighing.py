"""How an argument is weighed: as the papers say, whatever the order, and a stronger attack never helps its target."""

from itertools import combinations, permutations, product

import pytest
from argumentation.gradual.dfquad import dfquad_strengths
from argumentation.gradual.gradual import WeightedBipolarGraph
from hypothesis import given
from hypothesis import strategies as st

from moot.modules.debate.domain.argument import Trial, close, extend, find_decisive
from moot.modules.debate.domain.weighing import (
    HORIZONS,
    Weighing,
    accrue,
    count_over,
    influence,
)
from moot.shared.domain.claims import Claim, Relation
from moot.shared.domain.experts import VIEW, ExpertType
from tests.fakes.debate import claim, relation

EVERYBODY = frozenset(ExpertType)
PLACES = [(expert, name) for expert in ExpertType for name in (*expert.dimensions, VIEW)]
STRENGTHS = st.integers(0, 20).map(lambda n: n / 20)


@st.composite
def arguments(draw: st.DrawFn, most: int = 9, *, circles: bool = True) -> Weighing:
    """Up to so many claims on few dimensions, so that they meet; each pair at most once related."""
    places = draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=4))
    claims = [
        claim(
            f"{place[0].prefix}.c{n}",
            draw(STRENGTHS) * draw(st.sampled_from([1, -1])),
            place[1],
        )
        for n in range(draw(st.integers(1, most)))
        for place in [places[n % len(places)]]
    ]
    pairs = [(a, b) for a in range(len(claims)) for b in range(len(claims)) if a < b or (circles and b < a)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8)) if pairs else []
    relations = [
        relation(claims[a].id, claims[b].id, draw(st.sampled_from(["attack", "support"]))) for a, b in chosen
    ]
    return Weighing(claims, relations, EVERYBODY)


def strengths(claims: list[Claim]) -> dict[str, float]:
    return {one.id: one.strength for one in claims}


def of_the_library(bases: dict[str, float], relations: list[Relation]) -> dict[str, float]:
    edges = {
        kind: {(r.source, r.target) for r in relations if r.kind == kind} for kind in ("attack", "support")
    }
    graph = WeightedBipolarGraph(
        frozenset(bases), bases, frozenset(edges["attack"]), frozenset(edges["support"])
    )
    return dfquad_strengths(graph, tolerance=1e-13).strengths


@given(arguments(circles=False))
def test_strengths_are_those_of_a_library_of_formal_argumentation(weighing):
    expected = of_the_library(strengths(weighing.claims), weighing.relations)
    assert weighing.strengths == pytest.approx(expected, abs=1e-9)


@given(arguments())
def test_the_motion_is_that_of_a_library_with_dimensions_and_weights_as_arguments(weighing):
    """A dimension is what is left of two arguments; a weight is one more step on the way to the motion."""
    nodes, relations = {"motion": 0.5}, []
    for place, pull in weighing.dimensions.items():
        name = ".".join(place)
        nodes[name] = abs(pull) * weighing.counting.places[place]
        relations.append(relation(name, "motion", "support" if pull > 0 else "attack"))
    assert weighing.motion == pytest.approx(of_the_library(nodes, relations)["motion"], abs=1e-9)


@given(arguments())
def test_every_strength_is_one_and_circles_come_to_rest(weighing):
    """As near to rest as the two decimals that are told; nearly certain claims that attack each other crawl."""
    found = weighing.strengths
    assert all(0 <= strength <= 1 for strength in found.values())
    for one in weighing.claims:
        bearing = {
            kind: accrue(
                [found[r.source] for r in weighing.relations if (r.target, r.kind) == (one.id, kind)]
            )
            for kind in ("attack", "support")
        }
        rested = influence(one.strength, bearing["support"], bearing["attack"])
        assert found[one.id] == pytest.approx(rested, abs=0.005)
    assert 0 <= weighing.motion <= 1


@given(arguments(), st.randoms(use_true_random=False))
def test_the_order_of_what_is_said_changes_not_a_bit(weighing, chance):
    claims, relations = list(weighing.claims), list(weighing.relations)
    chance.shuffle(claims)
    chance.shuffle(relations)
    one, other = close(weighing), close(Weighing(claims, relations, EVERYBODY))
    assert one.strengths == other.strengths
    assert one.dimensions == other.dimensions
    assert (one.motion, one.conviction, one.decisive) == (other.motion, other.conviction, other.decisive)


@given(arguments(circles=False), STRENGTHS, STRENGTHS, st.data())
def test_a_stronger_attack_never_helps_its_target_nor_a_stronger_support_harms_it(weighing, one, other, data):
    target = data.draw(st.sampled_from([each.id for each in weighing.claims]))
    for kind, sign in (("attack", -1), ("support", 1)):
        weak, strong = (
            extend(weighing, [claim("macro.x", strength)], [relation("macro.x", target, kind)]).strengths[
                target
            ]
            for strength in sorted([one, other])
        )
        assert sign * (strong - weak) >= -1e-12


@given(arguments())
def test_a_claim_for_it_never_lowers_the_motion_where_nothing_else_is_said_of_it(weighing):
    more = claim("technical.more", 0.5, "trend")
    assert extend(weighing, [more], []).motion >= weighing.motion - 1e-12


@given(arguments(most=8))
def test_the_decisive_claims_are_the_fewest_whose_removal_changes_the_direction(weighing):
    ids = [one.id for one in weighing.claims]
    smallest = next(
        (
            size
            for size in range(1, len(ids) + 1)
            if any(weighing.without(gone).direction != weighing.direction for gone in combinations(ids, size))
        ),
        None,
    )
    found = find_decisive(weighing)
    if found:
        assert weighing.without(found).direction != weighing.direction
        assert all(weighing.without(set(found) - {one}).direction == weighing.direction for one in found), (
            "one of them can stay"
        )
    if smallest in (1, 2):
        assert len(found) == smallest
    elif smallest is None:
        assert found == []


@given(arguments(circles=False), st.data())
def test_what_is_weighed_again_is_to_the_bit_what_it_would_be_had_the_others_never_been_claimed(
    weighing, data
):
    trial, gone = Trial(weighing), frozenset[str]()
    for id_ in data.draw(st.permutations([one.id for one in weighing.claims])):
        gone |= {id_}
        assert trial.lean(gone) == weighing.without(gone).lean


@given(arguments(), st.data())
def test_it_is_so_in_a_circle_too_as_far_as_a_circle_comes_to_rest(weighing, data):
    trial = Trial(weighing)
    gone = data.draw(st.frozensets(st.sampled_from([one.id for one in weighing.claims]), max_size=4))
    assert trial.lean(gone) == pytest.approx(weighing.without(gone).lean, abs=1e-6)


def test_out_of_the_middle_the_shorter_way_is_taken():
    bulls = [claim(f"{expert}.view", 0.35, "view") for expert in ("technical", "financial", "macro")]
    weighing = Weighing([*bulls, claim("valuation.view", -1.0, "view")], [], EVERYBODY)
    assert weighing.direction == "NEUTRAL"
    assert find_decisive(weighing) == ["valuation.view"]


def test_what_nobody_can_turn_has_no_decisive_claims():
    alone = Weighing([claim("technical.a", 1.0)], [], frozenset([ExpertType.TECHNICAL_ANALYST]))
    assert (alone.direction, find_decisive(alone)) == ("NEUTRAL", [])


def test_a_circle_of_attacks_comes_to_rest_between_all_and_nothing():
    claims = [claim("technical.a", 1.0), claim("technical.b", 1.0), claim("technical.c", 1.0)]
    around = [relation(f"technical.{a}", f"technical.{b}") for a, b in ("ab", "bc", "ca")]
    for order in permutations(around):
        found = Weighing(claims, order, EVERYBODY).strengths
        assert found == {id_: pytest.approx(0.5, abs=1e-9) for id_ in found}


def test_a_silent_expert_is_doubted_for_at_least_what_it_could_have_moved():
    for horizon, expert in product(HORIZONS, ExpertType):
        places = count_over(horizon).places
        own = [weight for (who, name), weight in places.items() if who is expert and name != VIEW]
        without = Weighing([], [], EVERYBODY - {expert}, horizon)
        assert max(accrue(own), places[expert, VIEW]) <= without.doubt + 1e-12


@given(arguments(), st.sampled_from(HORIZONS))
def test_fewer_voices_are_never_bolder_where_experts_do_not_answer_each_other(weighing, horizon):
    """An expert speaks by its dimensions or, where it makes no claims, by its view: never by both."""
    whole = Weighing([one for one in weighing.claims if one.dimension != VIEW], [], EVERYBODY, horizon)
    for size in range(len(EVERYBODY)):
        for heard in combinations(ExpertType, size):
            said = [one for one in whole.claims if one.expert in heard]
            assert Weighing(said, [], frozenset(heard), horizon).conviction <= whole.conviction + 1e-12
