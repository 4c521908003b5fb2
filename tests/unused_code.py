"""Code in `src` that nothing in `src` uses: `python -m tests.unused_code` names it, and fails if there is any.

What frameworks call, and what the documents promise, is listed in `pyproject.toml` (`[tool.vulture]`). Fields of a
class are left out: rows, requests and answers are shapes, read by whoever is given them. What an expert's rules
measure is used by their table, as are the functions of commands that stand in no group; what a page shows, by its
template.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from vulture import Vulture
from vulture.config import make_config
from vulture.core import Item

from moot.cli import COMMANDS


def is_field(item: Item) -> bool:
    line = Path(item.filename).read_text(encoding="utf-8").splitlines()[item.first_lineno - 1]
    return item.typ == "variable" and line.startswith(" ")


def measured() -> Iterator[str]:
    for rules in Path("src").rglob("rules.toml"):
        tables = tomllib.loads(rules.read_text(encoding="utf-8"))
        tables.pop("horizon", None)
        rules_of = (rule for table in tables.values() for rule in table.values())
        yield from (rule[name] for rule in rules_of for name in ("measure", "of", "less") if name in rule)


def shown() -> Iterator[str]:
    """What templates read of what they are given."""
    for template in Path("src").rglob("templates/*.html"):
        yield from re.findall(r"\.(\w+)", template.read_text(encoding="utf-8"))


def main() -> int:
    config = make_config(["src"])
    ignored = [*config["ignore_names"], *measured(), *shown(), *COMMANDS]
    vulture = Vulture(ignore_names=ignored, ignore_decorators=config["ignore_decorators"])
    vulture.scavenge(config["paths"])
    found = vulture.get_unused_code(min_confidence=config["min_confidence"])
    unused = [item.get_report() for item in found if not is_field(item)]
    sys.stdout.writelines(f"{line}\n" for line in unused)
    return 1 if unused else 0


if __name__ == "__main__":
    sys.exit(main())
