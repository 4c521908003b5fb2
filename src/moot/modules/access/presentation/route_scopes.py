"""What a request needs: the one table of it. Whatever it does not name needs the most."""

import re
from typing import NamedTuple

from moot.modules.access.application.access_service import Scope

OPEN = re.compile(r"/healthz|/readyz|/openapi\.json|/docs(/assets/.*)?")
"""For everybody: they tell nothing about anybody's work."""

READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Need(NamedTuple):
    methods: frozenset[str]
    path: re.Pattern[str]
    scope: Scope


NEEDS = (
    Need(READING, re.compile(r"/api/v1/coordinator/intake/metrics(/.*)?"), "admin"),
    Need(READING, re.compile(r".*", re.DOTALL), "read"),
    Need(frozenset({"POST"}), re.compile(r"/api/v1/coordinator/research(/.+/(retry|cancel))?"), "research"),
    Need(
        frozenset({"POST"}), re.compile(r"/api/v1/coordinator/intake(/[^/]+/(feedback|resume))?"), "research"
    ),
    Need(frozenset({"POST"}), re.compile(r"/api/v1/llm-platform/(chat/generate|web-search)"), "research"),
    Need(frozenset({"POST"}), re.compile(r"/api/v1/market-data/sql"), "research"),
    Need(
        frozenset({"POST"}),
        re.compile(r"/api/v1/coordinator/(decisions|rules/generate|rulesets/(check|[^/]+/simulate))"),
        "research",
    ),
    Need(
        frozenset({"POST"}),
        re.compile(r"/api/v1/coordinator/escalations/[^/]+/(approve|reject|edit)"),
        "approve",
    ),
)


def is_open(path: str) -> bool:
    return OPEN.fullmatch(path) is not None


def needed_scope(method: str, path: str) -> Scope:
    found = (need.scope for need in NEEDS if method in need.methods and need.path.fullmatch(path))
    return next(found, "admin")
