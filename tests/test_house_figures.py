"""How heavy the house may be: what one reads, and what one command runs through."""

import pytest
from bench.files import Figure, figures


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: figure.name)
def test_the_house_is_no_heavier_than_this(figure: Figure) -> None:
    assert figure.value <= figure.most
