"""Where two series of bars meet: each has adjustment factors from a base of its own, and they are brought to one.

What tells the step of the factor from a day to the next: a series that has both days; between the last day of one
and the first of another, the raw close before against the reference price, which is the same by every source.
"""

from collections.abc import Callable
from datetime import date

import polars as pl

from moot.modules.market_data.domain.series import STARTS_ANEW, TOLERANCE, SeriesDoNotMeet
from moot.modules.market_data.domain.texts import SAY

DAY = "trade_date"
HALF_A_CENT = 0.006
"""How far a reference price may be off by rounding, and a little more."""
EXACT = 1e-9

CountGap = Callable[[date, date], int]
"""How many sessions between two days nothing is known of."""


def join_bars(kept: pl.DataFrame, told: pl.DataFrame, count_gap: CountGap) -> pl.DataFrame:
    """What is told over what is kept, oldest first, on the base of the first day.

    Raises `SeriesDoNotMeet` where the two tell different closes or steps of the same days, or have a gap between
    them. What replaces all that is kept meets nothing.
    """
    told = told.unique(DAY, keep="last")
    rows = pl.concat([kept, told]).unique(DAY, keep="last").sort(DAY)
    if rows.height == told.height:
        return rows
    pairs = _pair(rows, kept, told)
    _refuse_contradiction(pairs)
    return rows.with_columns(adj_factor=rows["adj_factor"] * _scale(pairs, _one_base(pairs, count_gap)))


def _pair(rows: pl.DataFrame, kept: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
    """Each day with the one before it, and the step between the two by everybody who tells it."""
    pairs = rows.select(DAY, "symbol", "source", "close", "pre_close", factor="adj_factor")
    for name, series in (("kept", kept), ("told", told)):
        own = {f"{name}_{field}": pl.col(field) for field in ("close", "adj_factor", "source")}
        pairs = pairs.join(series.select(DAY, **own), on=DAY, how="left", maintain_order="left")
    return pairs.with_columns(
        before=pl.col(DAY).shift(),
        source_before=pl.col("source").shift(),
        factor_before=pl.col("factor").shift(),
        step=_step("factor"),
        kept_step=_step("kept_adj_factor"),
        told_step=_step("told_adj_factor"),
        price_step=pl.col("close").shift() / pl.col("pre_close"),
    )


def _step(factor: str) -> pl.Expr:
    return pl.col(factor) / pl.col(factor).shift()


def _refuse_contradiction(pairs: pl.DataFrame) -> None:
    """A source may correct itself; two files are two sources."""
    told_by = pl.col("told_source")
    pairs = pairs.filter((told_by != pl.col("kept_source")) | (told_by == STARTS_ANEW))
    for what in ("close", "step"):
        kept, told = f"kept_{what}", f"told_{what}"
        for row in pairs.filter((pl.col(told) / pl.col(kept) - 1).abs() > TOLERANCE).iter_rows(named=True):
            values = {"symbol": row["symbol"], "day": row[DAY].isoformat(), "a": row[kept], "b": row[told]}
            sources = {"one": row["kept_source"], "other": row["told_source"]}
            raise SeriesDoNotMeet(SAY(f"series.{what}", **values, **sources), symbol=row["symbol"])


def _one_base(pairs: pl.DataFrame, count_gap: CountGap) -> list[date]:
    """The days after a gap whose factors go on from before it; any other gap is refused.

    A source counts from the listing on, whatever days it is asked for; so does a file whose factor is the same on
    both sides and not 1, where those without factors of their own begin.
    """
    found = []
    for row in pairs.filter(_is_seam()).iter_rows(named=True):
        if not (missing := count_gap(row["before"], row[DAY])):
            continue
        one, other = row["source_before"], row["source"]
        if not (one == other != STARTS_ANEW or row["factor_before"] == row["factor"] != 1.0):
            values = {"symbol": row["symbol"], "one": one, "other": other, "count": missing}
            days = {"before": row["before"].isoformat(), "day": row[DAY].isoformat()}
            raise SeriesDoNotMeet(SAY("series.gap", **values, **days), symbol=row["symbol"])
        found.append(row[DAY])
    return found


def _is_seam() -> pl.Expr:
    return pl.col("before").is_not_null() & pl.col("kept_step").is_null() & pl.col("told_step").is_null()


def _scale(pairs: pl.DataFrame, one_base: list[date]) -> pl.Series:
    """By what each day's own factor is to be multiplied: one, and at each seam what brings the rest to its base.

    On an ex-right day the reference price is rounded: what differs by no more than that has the same base already.
    """
    by_price = pl.col("price_step") / pl.col("step")
    rounded = (pl.col("price_step") - 1).abs() > EXACT
    same = rounded & ((by_price - 1).abs() <= HALF_A_CENT / pl.col("pre_close"))
    jump = (
        pl.when(pl.col(DAY).is_in(one_base) | (_is_seam() & same))
        .then(1.0)
        .when(_is_seam() & ~rounded)
        .then(1 / pl.col("step"))
        .otherwise(pl.coalesce("told_step", "kept_step", "price_step") / pl.col("step"))
    )
    return pairs.select(scale=jump.fill_null(1.0).cum_prod())["scale"]
