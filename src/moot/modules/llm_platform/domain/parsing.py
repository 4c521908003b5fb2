"""From the text a model answered with to the object it was asked for."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from moot.modules.llm_platform.domain.exceptions import LLMOutputParseError
from moot.modules.llm_platform.domain.texts import SAY
from moot.shared.domain.validation import invalid_input

logger = structlog.get_logger(__name__)

A = TypeVar("A", bound=BaseModel)
Normaliser = Callable[[dict[str, Any]], dict[str, Any]]

LOGGED = 2000
"""Characters of an unusable answer that go into the log."""

FINDINGS = 5
"""As many problems of one answer are told; a model that got more wrong needs no longer list."""

NOTHING_FOUND: Mapping[str, Any] = {"json_error": None, "position": None, "validation_errors": []}


def parse_llm_json_output(
    raw: str, dto_type: type[A], *, normalizers: Sequence[Normaliser] = (), context_label: str = ""
) -> A:
    """What `raw` says as a `dto_type`, or an `LLMOutputParseError` that says why not and nothing else.

    Thoughts, a code fence and words around the object are passed over. `normalizers` run in order before validation.
    """
    try:
        return _shape(_object(_bare(raw)), normalizers, dto_type)
    except LLMOutputParseError as e:
        error = e
    except RecursionError as e:
        error = _make_parse_error(e)
    error.details = {"raw_length": len(raw), **NOTHING_FOUND, **error.details}
    shown = raw[:LOGGED].encode(errors="replace").decode()
    logger.warning("answer not usable", label=context_label, error=str(error), raw=shown, **error.details)
    raise error


def _bare(raw: str) -> str:
    """Without the thoughts before it and the fence around it.

    Some models leave out the opening tag of their thoughts; a tag inside the answer is part of it.
    """
    text = raw.lstrip("\ufeff").strip()
    last = text.rpartition("</think>")[2].lstrip()
    if text.startswith("<think>"):
        text = text.partition("</think>")[2].strip()
    elif not text.startswith(("{", "`")) and last.startswith(("{", "`")):
        text = last
    if text.startswith("```"):
        text = re.sub(r"^```[A-Za-z]*", "", text).removesuffix("```").strip()
    return text


def _object(text: str) -> dict[str, Any]:
    if not text:
        raise LLMOutputParseError(SAY("answer.empty"))
    try:
        found = _read(text)
    except ValueError as e:
        found = _first_object(text, e)
    if not isinstance(found, dict):
        raise LLMOutputParseError(SAY("answer.no_json"))
    return found


def _first_object(text: str, error: ValueError) -> Any:
    """The first object among other words, for a text that as a whole is no JSON because of `error`."""
    for candidate in _find_braced(text):
        try:
            return _read(candidate)
        except ValueError as e:
            error = e
    whole = "malformed" if any(_find_braced(text)) else "cut_off"
    raise _make_parse_error(error, whole if "{" in text else "no_json")


def _find_braced(text: str) -> Iterator[str]:
    """Every outermost `{…}`. Braces inside strings do not count; quotes outside of braces are prose."""
    depth = start = 0
    quoted = False
    for mark in re.finditer(r'\\.|["{}]', text, re.DOTALL):
        sign = mark.group()
        if sign == '"' and depth:
            quoted = not quoted
        elif sign == "{" and not quoted:
            start = start if depth else mark.start()
            depth += 1
        elif sign == "}" and depth and not quoted:
            depth -= 1
            if not depth:
                yield text[start : mark.end()]


def _read(text: str) -> Any:
    """`text` as JSON. Raw line breaks in strings are let pass; what cannot be stored or means two things is not."""
    found = STRICT_JSON.decode(text)
    json.dumps(found, ensure_ascii=False).encode()  # half a surrogate pair is not text
    if "\\u0000" in text or "\x00" in text:
        raise ValueError("NUL character")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"duplicate key {name[:80]!r}")
        found[name] = value
    return found


def _finite(literal: str) -> float:
    if not math.isfinite(number := float(literal)):
        raise ValueError(f"{literal} is not a JSON number")
    return number


STRICT_JSON = json.JSONDecoder(
    strict=False, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite
)


def _shape(found: dict[str, Any], normalizers: Sequence[Normaliser], dto_type: type[A]) -> A:
    try:
        for normalise in normalizers:
            found = normalise(found)
        return dto_type.model_validate(found)
    except ValidationError as e:
        findings = invalid_input(e.errors(include_url=False)[:FINDINGS])
        problems = findings.details["errors"]
        raise LLMOutputParseError(
            SAY("answer.invalid", problems=findings.message), validation_errors=problems
        ) from None
    except (LookupError, TypeError, ValueError, AttributeError) as e:  # our code met a shape nobody expected
        raise LLMOutputParseError(SAY("answer.odd_shape"), json_error=f"{type(e).__name__}: {e}") from e


def _make_parse_error(error: Exception, problem: str = "malformed") -> LLMOutputParseError:
    message = SAY(f"answer.{problem}", error=str(error))
    return LLMOutputParseError(message, json_error=str(error), position=getattr(error, "pos", None))
