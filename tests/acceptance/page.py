"""The list of ids, and the page that shows which tests prove each."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.marks import Claim

INTRO = """\
# Acceptance

Each id below is something the desk is required to do, and beside it stand the tests that prove it:
**{proven} of {total} proven**. An id without a test (—) is not done.

A test claims what it proves with `@pytest.mark.accepts("A1S-22")`; the ids are listed in
[`tests/acceptance/ids.toml`](../tests/acceptance/ids.toml). This page is written from those marks by
`make acceptance`; do not edit it.
"""


@dataclass(frozen=True)
class Group:
    """Ids that belong together; each begins with the group's name."""

    name: str
    title: str
    phrases: dict[str, str]


def read_groups(file: Path) -> list[Group]:
    listed = tomllib.loads(file.read_text(encoding="utf-8"))
    return [Group(name, group["title"], group["ids"]) for name, group in listed.items()]


def unknown(groups: Sequence[Group], claims: Sequence[Claim]) -> list[str]:
    """A line for every claim of an id that is not in the list."""
    known = {accepted for group in groups for accepted in group.phrases}
    return [f"{c.test} claims {c.accepted}, which is not listed" for c in claims if c.accepted not in known]


def render(groups: Sequence[Group], claims: Sequence[Claim]) -> str:
    proofs: dict[str, list[str]] = {accepted: [] for group in groups for accepted in group.phrases}
    for claim in sorted(claims):
        proofs[claim.accepted].append(claim.test)
    intro = INTRO.format(proven=sum(map(bool, proofs.values())), total=len(proofs))
    return "\n".join([intro, *(_table(group, proofs) for group in groups)])


def _table(group: Group, proofs: dict[str, list[str]]) -> str:
    rows = [f"| {i} | {phrase} | {_links(proofs[i])} |" for i, phrase in sorted(group.phrases.items())]
    return "\n".join(
        [f"## {group.name} · {group.title}\n", "| id | what | tests |", "|---|---|---|", *rows, ""]
    )


def _links(tests: list[str]) -> str:
    return "<br>".join(f"[`{test}`](../{test.partition('::')[0]})" for test in tests) or "—"
