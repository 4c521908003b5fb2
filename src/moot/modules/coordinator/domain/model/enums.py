"""The experts a desk can ask."""

from moot.shared.domain.experts import ExpertType

__all__ = ["ExpertType"]
