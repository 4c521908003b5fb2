"""How alike goal and action are by the vectors of their words, offline: WordLlama, whose weights come with it."""

import importlib
import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from moot.modules.governance.application.goal_alignment_checker import HAZARD_FACTOR, bounded, compared
from moot.modules.governance.application.lexicon import HAN
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput

Embed = Callable[[list[str]], Sequence[Sequence[float]]]
"""Each text's vector."""

LONGEST = 4000
"""Characters of a goal or an action that are looked at."""
EVEN, EVEN_IN_CHINESE = 0.15, 0.45
"""The cosine that counts as a half: of texts that have nothing to do with each other, one in fifteen has a larger.

Any two Chinese texts are somewhat alike to this model: it knows characters, and few words.
"""


class EmbeddingOpinion:
    """`AlignmentOpinion`. Vectors see what is said in other words, but not across languages; the words see that.

    So the larger of the two counts, and acts that the goal does not ask for lower both.
    """

    def __init__(self, embed: Embed) -> None:
        self._embed = embed

    async def score(self, goal: str, action: str) -> float:
        by_words = compared(goal, action)
        texts = [goal[:LONGEST], action[:LONGEST]]
        alike = _scaled(
            _cosine(*self._embed(texts)), EVEN_IN_CHINESE if any(map(HAN.search, texts)) else EVEN
        )
        return max(by_words.score, alike * HAZARD_FACTOR ** len(by_words.hazards))


def word_llama() -> Embed:
    """Raises `InvalidInput` when the extra is not installed. Never downloads anything."""
    library = _library()
    model = library.WordLlama.load(cache_dir=Path(str(library.__file__)).parent, disable_download=True)

    def embed(texts: list[str]) -> Sequence[Sequence[float]]:
        vectors: Sequence[Sequence[float]] = model.embed(texts).tolist()
        return vectors

    return embed


def _library() -> ModuleType:
    """It sets up logging when it is imported, unless somebody has: that is not its to do."""
    somebody = logging.NullHandler()
    logging.getLogger().addHandler(somebody)
    try:
        return importlib.import_module("wordllama")
    except ImportError as e:
        raise InvalidInput(SAY("alignment_opinion.not_installed"), code="SETTINGS_INVALID") from e
    finally:
        logging.getLogger().removeHandler(somebody)


def _scaled(cosine: float, even: float) -> float:
    """From 0 to 1, with a half where the cosine is `even`."""
    above = 0.5 + 0.5 * (cosine - even) / (1 - even)
    return bounded(above if cosine >= even else 0.5 * cosine / even)


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """A text without a word it knows has no direction, and is like nothing."""
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0
