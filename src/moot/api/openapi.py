"""The OpenAPI document, with what the guard asks for: which key, with which scope, and what it says otherwise.

`/docs` shows it, served whole from here: a closed network gets it too, and nobody else is told. `swagger_ui/` holds
the files of swagger-ui-dist 5.34.1 (Apache-2.0, its licence and notice beside them), unchanged but for the references
to source maps.
"""

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

from moot.modules.access.presentation import find_scope, is_open
from moot.shared.presentation.errors import ErrorBody

Document = dict[str, Any]

SCHEMES: Document = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "A key made with `moot keys create`. On loopback none is needed while there is none.",
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
    plain = app.openapi

    def describe() -> Document:
        document = plain()
        document["components"]["securitySchemes"] = SCHEMES
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                _tell_errors_in_json(operation)
                if not is_open(path):
                    _guard(operation, find_scope(method.upper(), path))
        return document

    app.openapi = describe  # type: ignore[method-assign]


def _tell_errors_in_json(operation: Document) -> None:
    """FastAPI takes the errors of a stream of events to be events too."""
    for status, answer in operation["responses"].items():
        if not status.startswith("2") and "text/event-stream" in answer.get("content", {}):
            answer["content"] = ERROR


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


ASSETS = "/docs/assets"
SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def serve_docs(app: FastAPI) -> None:
    app.mount(ASSETS, StaticFiles(directory=Path(__file__).parent / "swagger_ui"))

    page = get_swagger_ui_html(
        openapi_url=app.openapi_url or "/openapi.json",
        title=app.title,
        swagger_js_url=f"{ASSETS}/swagger-ui-bundle.js",
        swagger_css_url=f"{ASSETS}/swagger-ui.css",
        swagger_favicon_url=f"{ASSETS}/favicon-32x32.png",
    )
    headers = {"Content-Security-Policy": _policy(bytes(page.body)), "X-Content-Type-Options": "nosniff"}

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(page.body, headers=headers)


def _policy(page: bytes) -> str:
    """The page runs its own scripts and no others, calls this desk alone, and is shown in nobody's frame."""
    digests = (b64encode(sha256(script).digest()).decode() for script in SCRIPT.findall(page))
    scripts = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
