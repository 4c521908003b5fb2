"""How heavy the house may be: what one reads, and what one command runs through."""

import pytest
from bench.files import FIGURES, Figure


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_the_house_is_no_heavier_than_this(figure: Figure) -> None:
    assert figure.measure() <= figure.most
