"""What Schemathesis does not try."""

from typing import Any

import schemathesis


@schemathesis.hook
def filter_case(_context: Any, case: Any) -> bool:
    """A null that a schema does not allow: it says no more than leaving out."""
    has_null = isinstance(case.body, dict) and None in case.body.values()
    return not (has_null and case.meta.generation.mode.is_negative)
