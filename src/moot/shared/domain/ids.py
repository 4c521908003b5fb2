"""What somebody looks for in a list: the page of it, or one by the id, or the beginning of it, that was typed."""

import re
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from moot.shared.domain.errors import InvalidInput, NotFound
from moot.shared.domain.messages import nearest
from moot.shared.domain.texts import SAY
from moot.shared.domain.validation import refuse_field

MOST_PER_PAGE = 200
LAST_PAGE = 1_000_000
COUNTED_TO = 5_000
"""Whether there are 40,000 or 41,000 takes longer to count than to list, and nobody needs to know."""
Ids = Callable[[UUID, UUID], Awaitable[Sequence[UUID]]]
"""Ids from one to another, both included, the newest first; of very many some."""
ALL_IDS = (UUID(int=0), UUID(int=2**128 - 1))
NEARLY_THE_SAME_ID = 0.85


async def find_id(field: str, text: str, among: Ids) -> UUID:
    """The id that somebody typed: in full, by its beginning if only one begins so, or `last` for the newest."""
    digits = text.strip().lower().replace("-", "")
    if digits != "last" and not re.fullmatch("[0-9a-f]{1,32}", digits):
        raise refuse_field("uuid_parsing", field, text)
    by_range = (UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))) if digits != "last" else ALL_IDS
    found, told = await among(*by_range), {"what": SAY(f"ids.{field}"), "text": text}
    if len(found) > 1 and digits != "last":
        raise InvalidInput(SAY("ids.ambiguous", **told, choices=list(map(str, found[:5]))), field=field)
    if not found:
        near = nearest(text, map(str, await among(*ALL_IDS)), NEARLY_THE_SAME_ID)
        if len(digits) == len(ALL_IDS[0].hex) and not near:
            return UUID(digits)  # whole: whoever keeps them says that there is none
        code = f"{field.removesuffix('_id').upper()}_NOT_FOUND"
        raise NotFound(SAY("ids.near" if near else "ids.unknown", **told, near=near), code=code, field=field)
    return found[0]
