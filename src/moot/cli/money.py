"""How an amount of money reads."""

SMALLEST = 0.0001


def amount(cost: float) -> str:
    """Single calls cost fractions of a cent; less than that is said to be less."""
    return f"< {SMALLEST:.4f}" if 0 < cost < SMALLEST else f"{cost:,.4f}"
