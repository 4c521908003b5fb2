"""`/docs`: the API's documentation, served whole from here. A closed network gets it too, and nobody else is told.

`swagger_ui/` holds the files of swagger-ui-dist 5.34.1 (Apache-2.0, its licence and notice beside them), unchanged
but for the references to source maps.
"""

from pathlib import Path

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

ASSETS = "/docs/assets"


def serve_docs(app: FastAPI) -> None:
    app.mount(ASSETS, StaticFiles(directory=Path(__file__).parent / "swagger_ui"))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url=app.openapi_url or "/openapi.json",
            title=app.title,
            swagger_js_url=f"{ASSETS}/swagger-ui-bundle.js",
            swagger_css_url=f"{ASSETS}/swagger-ui.css",
            swagger_favicon_url=f"{ASSETS}/favicon-32x32.png",
        )
