"""Arithmetic that a model may ask for. It is read and worked out here, node by node: nothing of it is executed."""

import ast
import math
import operator
import statistics
from collections.abc import Callable, Mapping, Sequence

from moot.modules.intake.domain.texts import SAY
from moot.shared.domain.errors import InvalidInput

LONGEST, MOST_PARTS = 500, 120
MOST_DIGITS = 12

Number = float | bool
Value = Number | list[float]

OPERATIONS: Mapping[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.Mod: operator.mod,
}
COMPARISONS: Mapping[type[ast.AST], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
SIGNS: Mapping[type[ast.AST], Callable[[float], float]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}


class ExpressionRefused(InvalidInput):
    """It is no arithmetic, or has no result."""

    code = "EXPRESSION_REFUSED"


def evaluate(expression: str, variables: Mapping[str, float]) -> Number:
    """What `expression` comes to, with numbers for its names. Raises `ExpressionRefused`, which says why not."""
    tree = _read(expression)
    try:
        result = _value(tree, variables)
    except (ArithmeticError, ValueError, TypeError) as e:
        raise _refused("no_result", what=expression[:LONGEST], why=str(e)) from None
    if isinstance(result, bool):
        return result
    return _finite(result, expression)


def _read(expression: str) -> ast.expr:
    if not expression.strip() or len(expression) > LONGEST:
        raise _refused("length", most=LONGEST)
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _refused("unreadable", what=expression[:LONGEST]) from None
    if sum(1 for _ in ast.walk(tree)) > MOST_PARTS:
        raise _refused("length", most=LONGEST)
    return tree


def _value(node: ast.expr, variables: Mapping[str, float]) -> Value:
    def inner(part: ast.expr) -> Value:
        return _value(part, variables)

    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_number(inner(part), part) for part in parts]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](_flat([inner(arg) for arg in args]))
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in SIGNS:
            return SIGNS[type(sign)](_number(inner(operand), operand))
        case ast.BinOp(left=left, op=what, right=right) if type(what) in OPERATIONS:
            return OPERATIONS[type(what)](_number(inner(left), left), _number(inner(right), right))
        case ast.Compare(left=left, ops=[what], comparators=[right]) if type(what) in COMPARISONS:
            return COMPARISONS[type(what)](_number(inner(left), left), _number(inner(right), right))
    return _leaf(node, variables)


def _leaf(node: ast.expr, variables: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as constant) if not isinstance(constant, bool):
            return float(constant)
        case ast.Name(id=name) if name in variables:
            return float(variables[name])
        case ast.Name(id=name):
            raise _refused("unknown_name", name=name, known=sorted(variables))
    raise _refused("not_allowed", what=ast.unparse(node)[:80])


def _number(value: Value, part: ast.expr) -> float:
    return _finite(value, ast.unparse(part))


def _flat(values: Sequence[Value]) -> list[float]:
    """`mean(a, b)` and `mean([a, b])` are the same."""
    flat: list[float] = []
    for value in values:
        flat += value if isinstance(value, list) else [_finite(value, str(value))]
    if not flat:
        raise ValueError("nothing to work with")
    return flat


def _finite(value: Value | complex, what: str) -> float:
    """A root of a negative number is none, and neither is a power beyond all bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _refused("no_number", what=what[:80])
    return float(value)


def _rounded(values: list[float]) -> float:
    value, digits = (*values, 0.0)[:2]
    if len(values) > 2 or abs(digits) > MOST_DIGITS or digits != int(digits):
        raise ValueError("round(value, digits)")
    return round(value, int(digits))


def _single(values: list[float]) -> float:
    (value,) = values
    return abs(value)


def _change(values: list[float]) -> float:
    """From the first to the second, in percent of the first."""
    before, after = values
    return (after - before) / abs(before) * 100


FUNCTIONS: Mapping[str, Callable[[list[float]], float]] = {
    "min": min,
    "max": max,
    "sum": math.fsum,
    "mean": statistics.fmean,
    "median": statistics.median,
    "abs": _single,
    "round": _rounded,
    "pct_change": _change,
}


def _refused(kind: str, /, **values: object) -> ExpressionRefused:
    return ExpressionRefused(SAY(f"steps.expression.{kind}", **values))
