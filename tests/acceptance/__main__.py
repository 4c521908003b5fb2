"""Writes docs/acceptance.md from the tests' marks."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.acceptance.marks import claims_below
from tests.acceptance.page import read_groups, render, unknown

ROOT = Path(__file__).parents[2]


def main(root: Path = ROOT, arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is stale")
    check = parser.parse_args(arguments).check

    page = root / "docs/acceptance.md"
    groups = read_groups(root / "tests/acceptance/ids.toml")
    claims = claims_below(root)
    if strangers := unknown(groups, claims):
        sys.exit("\n".join(strangers))
    text = render(groups, claims)
    if not check:
        page.write_text(text, encoding="utf-8")
    elif not page.exists() or page.read_text(encoding="utf-8") != text:
        sys.exit("docs/acceptance.md is stale: run make acceptance")


if __name__ == "__main__":
    main()
