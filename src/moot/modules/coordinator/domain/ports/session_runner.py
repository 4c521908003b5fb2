"""Where sessions run that nobody waits for, as those see it who hand them over."""

from abc import ABC, abstractmethod
from uuid import UUID


class ISessionRunner(ABC):
    @abstractmethod
    def submit(self, session_id: UUID) -> None:
        """Have a stored session run to its end, here or elsewhere. One that runs already is left alone."""
