"""What governance says to people."""

from collections.abc import Iterable
from pathlib import Path

from moot.shared.domain import messages
from moot.shared.domain.messages import Catalogue, Message

SAY = Catalogue(Path(__file__).parent)


def join(several: Iterable[Message], by: str = "rules.and_also") -> Message:
    """Several as one; `by` is the text that puts two together."""
    return messages.join(list(several), lambda said, more: SAY(by, said=said, more=more))
