"""What can go wrong with models and the web, said so that the reader knows what to do."""

from typing import Any

from moot.shared.domain.errors import AppError, Conflict, ErrorKind, NotFound, Unavailable, UpstreamFailed
from moot.shared.domain.messages import Message


class ModelTrouble(AppError, code="LLM_SERVICE_ERROR"):
    """One request to a model failed.

    `passing` trouble may be gone in a moment; `retry_after` is what the vendor asked for, in seconds. `billed` says
    that the vendor may charge for it all the same. `outage`: the service itself failed, whatever it was asked, by
    whom and how often. `unsupported` names what the model cannot do (`json_schema`, `tools`), so that it can be
    asked without.
    """

    def __init__(
        self,
        message: str | Message,
        *,
        passing: bool = False,
        retry_after: float | None = None,
        billed: bool = False,
        outage: bool = False,
        unsupported: str | None = None,
    ) -> None:
        super().__init__(message)
        self.passing, self.retry_after, self.billed = passing, retry_after, billed
        self.outage, self.unsupported = outage, unsupported


class LLMConnectionError(Unavailable, code="LLM_SERVICE_ERROR", passing=False):
    """The one model asked for did not answer."""


class NoAvailableModel(Unavailable, code="NO_AVAILABLE_MODEL", passing=False):
    """No model fits what was asked for, or none of those that do answered."""


class BudgetExceeded(Unavailable, code="BUDGET_EXCEEDED", kind=ErrorKind.BUDGET, passing=False):
    """The call was not made, because it could have cost more than is left."""


class ConfigNotFound(NotFound, code="LLM_CONFIG_NOT_FOUND"): ...


class DuplicateConfig(Conflict, code="LLM_CONFIG_DUPLICATE"): ...


class LLMOutputParseError(AppError, code="LLM_JSON_PARSE_ERROR", kind=ErrorKind.ANSWER):
    """The model answered, but not what it was asked for. `details` say what was wrong with the answer."""


class ReplayMismatch(AppError, code="REPLAY_MISMATCH"):
    """The record holds no answer to what is asked now; `details` say which agent's prompt changed, and where."""


class WebSearchError(UpstreamFailed, code="WEB_SEARCH_FAILED"):
    """The search service answered with an error; `status_code` is its own.

    `outage`: the service itself failed, whatever it was asked, by whom and how often.
    """

    def __init__(self, message: str | Message, *, status_code: int | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.status_code, self.outage = status_code, (status_code or 0) >= 500


class WebSearchConnectionError(Unavailable, code="WEB_SEARCH_UNREACHABLE"):
    outage = True


class WebSearchConfigError(Unavailable, code="WEB_SEARCH_NOT_CONFIGURED", passing=False): ...
