"""One wrong number in a text that is right: as good as every one is caught, and what is right is left alone.

By default on a few texts; `MOOT_TEST_PLANTED=12` takes as many companies of the demo market, on ten days each. The
figures by kind of error are printed (`pytest -s`).
"""

import os
import sys
from collections import Counter
from random import Random

from tests.measured.planted import plant, tell

COMPANIES = int(os.environ.get("MOOT_TEST_PLANTED", "0"))
LEAST = {"swap": 0.8}
"""Two figures that change places are told only where the words before them are those of a claim."""


async def test_a_wrong_number_is_caught_and_a_right_one_is_not() -> None:
    told = await tell(COMPANIES or 2, range(0, 300, 30) if COMPANIES else (0,))
    flagged = [text for text in told if text.flagged]
    random, planted, caught = Random(1), Counter[str](), Counter[str]()
    for text in told:
        for wrong in plant(text, told, random):
            planted[wrong.kind] += 1
            caught[wrong.kind] += wrong.caught
    shares = {kind: caught[kind] / planted[kind] for kind in planted}
    figures = [
        f"{kind:8} {caught[kind]:5} of {planted[kind]:5} {share:7.1%}\n" for kind, share in shares.items()
    ]
    figures.append(
        f"all      {caught.total():5} of {planted.total():5} {caught.total() / planted.total():7.1%}\n"
    )
    sys.stdout.writelines([*figures, f"right, yet flagged: {len(flagged)} of {len(told)}\n"])
    assert planted.total() >= 200
    assert caught.total() / planted.total() >= 0.95
    assert [kind for kind, share in shares.items() if share < LEAST.get(kind, 0.9)] == []
    assert len(flagged) / len(told) <= 0.02
