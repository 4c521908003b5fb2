"""Server-sent events out of a stream of bytes: frames of `id`, `event` and `data`, each ended by a blank line."""

import re
from collections.abc import Iterator
from typing import NamedTuple

LINE_END = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)
"""What follows a carriage return decides whether the line ends there or one byte later."""


class Frame(NamedTuple):
    """`id` is that of this frame or, where it has none, of the last one that had."""

    id: str
    event: str
    data: str


class EventStream:
    """Takes chunks that are cut anywhere, inside a character too. A frame that is not whole at the end never was."""

    def __init__(self) -> None:
        self._rest = b""
        self._id = self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        *lines, self._rest = LINE_END.split(self._rest + chunk)
        for line in lines:
            if line:
                self._take(line.decode("utf-8", "replace"))
            elif self._data:
                yield Frame(self._id, self._event or "message", "\n".join(self._data))
            if not line:
                self._event, self._data = "", []

    def _take(self, line: str) -> None:
        """A line that starts with a colon is a comment: a field without a name, like others nobody knows."""
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id":
            self._id = value
