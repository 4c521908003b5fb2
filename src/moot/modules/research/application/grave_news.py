"""The door for those who must know what is grave in the news of a company, whether or not an expert was asked."""

from moot.modules.research.domain.events import WINDOW_DAYS, find_grave

__all__ = ["WINDOW_DAYS", "find_grave"]
