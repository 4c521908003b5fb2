"""What a batch is asked for, now or on schedule: shares as they are typed, or as the lines of a file have them."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from moot.cli.options import option, read_file
from moot.cli.texts import SAY, environment_locale
from moot.shared.domain.errors import InvalidInput
from moot.shared.domain.validation import number_or_text
from moot.shared.infrastructure.settings import split_names

SYMBOL_COLUMNS = ("symbol", "ts_code", "code", "代码", "股票代码", "证券代码")
"""What the column of a CSV is called that has the shares, whichever comes first."""
Top = Annotated[str | None, option("batch.help.top", metavar="N")]
SkipUnknown = Annotated[bool, option("batch.help.skip_unknown", "--skip-unknown")]
TOLD = 20
"""Lines of a file that mean no share."""


class Given(NamedTuple):
    """A share as it was typed, or as a line of a file has it."""

    text: str
    line: int = 0
    file: str = ""


def read_universe(typed: Sequence[str]) -> list[Given]:
    return [share for text in typed for share in _read(text)]


def _read(typed: str) -> list[Given]:
    """A file has one share a line, or is a CSV with a column for them; what begins with # is left out."""
    path = Path(typed)
    if not path.is_file():
        if path.suffix.lower() in (".csv", ".txt"):
            read_file(path)  # says that there is none
        return [Given(text.strip()) for text in typed.split(",") if text.strip()]
    lines = read_file(path).removeprefix("\ufeff").splitlines()
    rows = [(number, row) for number, row in enumerate(csv.reader(lines), 1) if row]
    head = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    column = next((head.index(name) for name in SYMBOL_COLUMNS if name in head), None)
    body = rows if column is None else rows[1:]
    found = [
        Given(row[column or 0].strip(), number, path.name) for number, row in body if len(row) > (column or 0)
    ]
    return [one for one in found if one.text and not one.text.startswith("#")]


def word_request(
    shares: Sequence[Given], experts: str, locale: str | None, numbers: Mapping[str, str | None], **more: Any
) -> dict[str, Any]:
    """The desk, not the command line, decides whether it makes sense."""
    return {
        "universe": [share.text for share in shares],
        "experts": split_names(experts),
        "locale": locale or environment_locale(),
        **{key: number_or_text(value) for key, value in numbers.items() if value},
        **more,
    }


@contextmanager
def naming_lines(shares: Sequence[Given]) -> Iterator[None]:
    """A complaint about what means no share names the lines of the file in which that stands."""
    try:
        yield
    except InvalidInput as e:
        lines = {share.text: share for share in reversed(shares) if share.line}
        unknown = [one for one in e.details.get("unknown", []) if one["given"] in lines]
        if not unknown:
            raise
        told = [
            SAY("batch.unknown_line", file=share.file, line=share.line, given=share.text, why=one["why"])
            for one in unknown[:TOLD]
            for share in [lines[one["given"]]]
        ]
        said = SAY("batch.unknown_lines", count=len(e.details["unknown"]), lines=told)
        raise InvalidInput(said, code=e.code, **e.details) from None
