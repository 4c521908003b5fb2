"""A fact somebody was given to reason from. The one shape that travels from the experts to the judge."""

from pydantic import AwareDatetime, BaseModel


class Evidence(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """`id` is dotted (`technical.current_price`); `as_of` is the moment the fact could be known."""

    id: str
    value: int | float | str
    unit: str
    source: str
    as_of: AwareDatetime
