"""The OpenAPI document, with what the guard asks for: which key, with which scope, and what it says otherwise."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI

from moot.modules.access.presentation.guard import is_open, needed_scope
from moot.shared.presentation.errors import ErrorBody

Document = dict[str, Any]

SCHEMES: Document = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "A key made with `moot keys create`. On loopback none is needed.",
    },
    "key": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "The same key, for clients that cannot send `Authorization`.",
    },
}
ERROR = {"application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorBody.__name__}"}}}
SECONDS = {"description": "seconds until the next try", "schema": {"type": "integer"}}


def document_keys(app: FastAPI) -> None:
    """From then on `app` says in its document who may do what, on the routes of today and of later."""
    app.openapi = _with_keys(app.openapi)  # type: ignore[method-assign]


def _with_keys(openapi: Callable[[], Document]) -> Callable[[], Document]:
    def documented() -> Document:
        document = openapi()
        document["components"]["securitySchemes"] = SCHEMES
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if not is_open(path):
                    _guard(operation, needed_scope(method.upper(), path))
        return document

    return documented


def _guard(operation: Document, scope: str) -> None:
    operation["security"] = [{scheme: [scope]} for scheme in SCHEMES]
    refusals: Document = {
        "401": {
            "description": "no key, or one that is not valid",
            "headers": {"WWW-Authenticate": {"schema": {"type": "string"}}},
        },
        "403": {"description": f"the key has not the scope `{scope}`; or, without a key, another site asks"},
        "429": {"description": "too many requests in a minute", "headers": {"Retry-After": SECONDS}},
    }
    for status, refusal in refusals.items():
        operation["responses"].setdefault(status, {**refusal, "content": ERROR})
