"""The one door to pages of the web: whoever reads one reads it here, and it is on the record."""

import hashlib
import time

from moot.modules.llm_platform.domain.search import Page, PageSource, SearchAudit

__all__ = ["Page", "WebPageService"]

SERVICE, OPERATION = "web", "read-page"


class WebPageService:
    def __init__(self, source: PageSource, audit: SearchAudit) -> None:
        self._source, self._audit = source, audit

    async def read(self, url: str) -> Page:
        """The page's own words, written by strangers. Raises `PageRefused` or `PageFailed`, which say why."""
        digest = hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()
        call_id = await self._audit.begin(
            SERVICE, OPERATION, {"url": url}, origin="live", request_digest=digest
        )
        started, page, error = time.monotonic(), None, "CancelledError"
        try:
            page = await self._source.text(url)
        except Exception as e:
            error = str(e)
            raise
        finally:
            await self._audit.end(
                call_id,
                status="success" if page else "failed",
                latency_ms=round((time.monotonic() - started) * 1000),
                status_code=None,
                response_data=page.text if page else None,
                error_message=None if page else error,
            )
        return page
