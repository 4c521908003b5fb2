"""Generated rules about data: which fields are hidden, from which period, how many rows, in which format."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moot.modules.governance.application.generator_words import (
    FORMATS,
    SENSITIVE,
    FormatName,
    kinds_of,
    values_of,
)
from moot.modules.governance.application.periods import Period
from moot.modules.governance.application.rule_drafts import (
    Draft,
    breaks,
    either,
    listed,
    literal,
    matches,
    passes,
)
from moot.modules.governance.domain.correctors import Clamp, Drop, Mask, RewriteSql, SetValue
from moot.modules.governance.domain.rules import EnhancedRule, RuleAction, RuleCategory
from moot.modules.governance.domain.texts import SAY
from moot.shared.domain.messages import Message

DATA, SUGGEST, REJECT = RuleCategory.DATA, RuleAction.SUGGEST, RuleAction.REJECT

SQL_ARGUMENTS = ("sql", "query")
FIELD_ARGUMENTS = ("fields", "columns")
ROW_ARGUMENTS = ("rows", "records", "data")
FILE_ARGUMENTS = ("path", "file_path", "filename", "output_path", "output_file")
PRODUCING_TOOL = "(?i)export|report|write|save|render|generat|output|creat|chart|plot|draw|publish"
MASK = "***"
STATEMENT = "SELECT amount FROM orders"

WORD = r"\w\p{Han}"
QUOTE = r'\s"`\['
"""What may stand between two words of a statement."""


def rewriting(
    columns: Sequence[str], period: Period | None, time_column: str, most_rows: int | None
) -> RewriteSql:
    """All that is to become of a statement. Every rule about statements asks for all of it, so that none of their
    corrections undoes another's.
    """
    return RewriteSql(
        kind="sql",
        path="payload.args.sql",
        mask=tuple(columns),
        limit=most_rows,
        time_column=time_column if period else None,
        since=str(period.since) if period else None,
        until=str(period.until) if period else None,
    )


def _aimed_at(name: str, rewriting: RewriteSql) -> RewriteSql:
    return rewriting.model_copy(update={"path": f"payload.args.{name}"})


def privacy_rules(draft: Draft, columns: Sequence[str], rewriting: RewriteSql) -> Iterator[EnhancedRule]:
    """No statement shows these columns, no list asks for them, no record brings their values along."""
    said = {"fields": [_called(kind) for kind in kinds_of(columns)]}
    for name in SQL_ARGUMENTS:
        yield draft.rule(
            "privacy",
            _statement(name, matches(f"payload.args.{name}", exposing(columns))),
            SUGGEST,
            DATA,
            examples=[
                breaks({name: f"SELECT {columns[0]} FROM customers"}),  # noqa: S608 - an example, never run
                breaks({name: "SELECT * FROM customers"}),
                passes({name: f"SELECT '{MASK}' AS {columns[0]}"}),
            ],
            said={**said, "argument": name},
            corrector=_aimed_at(name, rewriting),
        )
    yield from (_field_list(draft, name, columns, {**said, "argument": name}) for name in FIELD_ARGUMENTS)
    yield from (_records(draft, name, columns, {**said, "argument": name}) for name in ROW_ARGUMENTS)


def _called(kind: str) -> Message | str:
    return SAY(f"generated.field.{kind}") if kind in SENSITIVE else kind


def exposing(columns: Sequence[str]) -> str:
    """Finds a column anywhere but behind AS, where it is only a name for what is masked already; and any `*`.

    Comments and statements that leave SELECT out are not read: they could be anything.
    """
    before = rf"(?:^|[^{WORD}{QUOTE}][{QUOTE}]*|[^s{QUOTE}][{QUOTE}]+|(?:[^a]|[{WORD}]a)s[{QUOTE}]+)"
    after = rf"(?:$|[^{WORD}])"
    star = r"(?:\bselect\b|\bdistinct\b|\ball\b|[,.])\s*\*|\bcolumns\s*\("
    return rf"(?is){before}{_spelt(columns)}{after}|{star}|--|/\*|^\s*(?:from|table)\b"


def _spelt(columns: Sequence[str]) -> str:
    """customer_name, CustomerName and customername are one column."""
    return either(columns).replace("_", "_?")


def _statement(name: str, condition: str) -> str:
    """`query` is as often what somebody searches for."""
    field = f"payload.args.{name}"
    is_sql = (
        "" if name == "sql" else " && " + matches(field, r"(?is)^[\s(]*(?:select|with|from|table|values)\b")
    )
    return f"has({field}){is_sql} && {condition}"


def _field_list(draft: Draft, name: str, columns: Sequence[str], said: Mapping[str, Any]) -> EnhancedRule:
    field = f"payload.args.{name}"
    listing = rf"(?i)(?:^|[^{WORD}]){_spelt(columns)}(?:$|[^{WORD}])"
    in_list = f"type({field}) == list && dyn({field}).exists(f, type(f) == string && {matches('f', listing)})"
    return draft.rule(
        "privacy",
        f"has({field}) && (type({field}) == string ? {matches(f'dyn({field})', listing)} : {in_list})",
        SUGGEST,
        DATA,
        examples=[breaks({name: [columns[0], "amount"]}), passes({name: []})],
        said=said,
        corrector=Drop(kind="drop", path=field, fields=tuple(columns)),
    )


def _records(draft: Draft, name: str, columns: Sequence[str], said: Mapping[str, Any]) -> EnhancedRule:
    field = f"payload.args.{name}"
    shown = f"{matches('k', f'(?i)^{_spelt(columns)}$')} && r[k] != {literal(MASK)}"
    return draft.rule(
        "privacy",
        f"has({field}) && type({field}) == list && dyn({field}).exists(r, type(r) == map && r.exists(k, {shown}))",
        SUGGEST,
        DATA,
        examples=[
            breaks({name: [{columns[0]: "as it is"}]}),
            passes({name: [{columns[0]: MASK}]}),
        ],
        said=said,
        corrector=Mask(kind="mask", path=field, fields=tuple(columns)),
    )


def period_rules(
    draft: Draft, period: Period, time_column: str, rewriting: RewriteSql
) -> Iterator[EnhancedRule]:
    """Arguments that are dates lie in the period, and statements read nothing outside it."""
    said = {"since": str(period.since), "last": str(period.last_day), "until": str(period.until)}
    for name, edge in DATE_ARGUMENTS.items():
        field, any_type = f"payload.args.{name}", f"dyn(payload.args.{name})"
        if_date = "" if name.endswith("date") else f"type({field}) == string && {matches(any_type, YEAR)} && "
        value = {"since": said["since"], "last": said["last"]}.get(edge)
        yield draft.rule(
            "time_range",
            f"has({field}) && {if_date}!({_within(any_type, period)})",
            SUGGEST,
            DATA,
            examples=[breaks({name: said["until"]}), passes({name: said["last"]})],
            said={**said, "argument": name},
            corrector=SetValue(kind="set", path=field, value=value) if value else None,
        )
    yield from (_filtered(draft, name, time_column, said, rewriting) for name in SQL_ARGUMENTS)


DATE_ARGUMENTS = {"start_date": "since", "end_date": "last", "start": "since", "end": "last", "date": ""}
"""And the edge of the period each is moved to; a single date cannot be guessed."""


YEAR = "^[0-9]{4}"
"""With which a `start` that is a date begins; it may as well be a place or a page."""


def _within(field: str, period: Period) -> str:
    """Both ways to write a day, with or without a time behind it: 2026-03-01 and 20260301."""
    ways = {"-": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.+Z-]*)?$", "": "^[0-9]{8}$"}
    edges = {mark: [literal(str(day).replace("-", mark)) for day in period] for mark in ways}
    return " || ".join(
        f"{matches(field, shape)} && {field} >= {edges[mark][0]} && {field} < {edges[mark][1]}"
        for mark, shape in ways.items()
    )


def _filtered(
    draft: Draft, name: str, column: str, said: Mapping[str, str], rewriting: RewriteSql
) -> EnhancedRule:
    field = f"payload.args.{name}"
    at = rf'(?i)\b{either([column])}["`]?\s*'
    value = r"\s*(?:cast\(|date\b|timestamp\b)?\s*'"
    filters = [
        matches(field, f"{at}>={value}{said['since']}"),
        matches(field, f"{at}<{value}{said['until']}"),
    ]
    filtered = f"{STATEMENT} WHERE {column} >= '{said['since']}' AND {column} < '{said['until']}'"
    return draft.rule(
        "time_filter",
        _statement(
            name, f"!({' && '.join(filters)} && !{matches(field, CIRCUMVENTS.format(column=column))})"
        ),
        SUGGEST,
        DATA,
        examples=[breaks({name: STATEMENT}), passes({name: filtered})],
        said={**said, "column": column, "argument": name},
        corrector=_aimed_at(name, rewriting),
    )


CIRCUMVENTS = (
    r"(?is)\bor\b|\bnot\s*\(|\bnot\s+[\w.\"]*{column}|\b(?:case|filter|having|union|except|intersect)\b"
    r"|--|/\*|\bselect\b.*\bselect\b"
)
"""With one of these a filter may be there and filter nothing."""


COMMENT = r"--|/\*"


def row_rules(draft: Draft, most: int, rewriting: RewriteSql) -> Iterator[EnhancedRule]:
    said: dict[str, Any] = {"most": most}
    for name in SQL_ARGUMENTS:
        field = f"payload.args.{name}"
        capped = rf"(?is)\blimit\s+(?:{numbers_up_to(most)})(?:\s+offset\s+[0-9]+)?\s*;?\s*$"
        yield draft.rule(
            "max_rows",
            _statement(name, f"!({matches(field, capped)} && !{matches(field, COMMENT)})"),
            SUGGEST,
            DATA,
            examples=[
                breaks({name: STATEMENT}),
                breaks({name: f"{STATEMENT} LIMIT {most + 1}"}),
                passes({name: f"{STATEMENT} LIMIT {most}"}),
            ],
            said={**said, "argument": name},
            corrector=_aimed_at(name, rewriting),
        )
    yield draft.rule(
        "max_rows",
        f"has(payload.args.limit) && !(dyn(payload.args.limit) >= 0.0 && dyn(payload.args.limit) <= {most}.0)",
        SUGGEST,
        DATA,
        examples=[breaks({"limit": most + 1}), passes({"limit": most})],
        said={**said, "argument": "limit"},
        corrector=Clamp(kind="clamp", path="payload.args.limit", at_least=0, at_most=most),
    )


def numbers_up_to(most: int) -> str:
    """A pattern for the whole numbers from 0 to `most`, without leading zeros."""
    digits = str(most)
    shorter = [f"[0-9]{{1,{len(digits) - 1}}}"] if len(digits) > 1 else []
    smaller = [
        f"{digits[:place]}[0-{int(digit) - 1}][0-9]{{{len(digits) - place - 1}}}"
        for place, digit in enumerate(digits)
        if digit != "0"
    ]
    return "|".join([*shorter, *smaller, digits])


def format_rules(draft: Draft, formats: Sequence[FormatName]) -> Iterator[EnhancedRule]:
    """What a tool puts out is in one of these formats: by what it is told, and by the name of the file."""
    values = values_of(formats)
    said = {"formats": list(formats), "values": list(values)}
    usual = next((FORMATS[name].usual for name in formats if FORMATS[name].usual), None)
    produces, wanted = matches("payload.tool", PRODUCING_TOOL), rf"(?i)^\.?{either(values)}$"
    for name, only in {"output_format": "", "format": f"{produces} && "}.items():
        field = f"payload.args.{name}"
        yield draft.rule(
            "output_format",
            f"{only}has({field}) && !{matches(field, wanted)}",
            SUGGEST,
            DATA,
            examples=[
                breaks({name: "bin"}, tool="export_data"),
                passes({name: values[0]}, tool="export_data"),
            ],
            said={**said, "argument": name},
            corrector=SetValue(kind="set", path=field, value=usual) if usual else None,
        )
    yield _file_names(draft, values, produces, {**said, "argument": "path"})


def _file_names(draft: Draft, values: Sequence[str], produces: str, said: Mapping[str, Any]) -> EnhancedRule:
    name = "payload.args[a]"
    any_ending, wanted = r"\.[A-Za-z0-9]{1,8}$", rf"(?i)\.{either(values)}$"
    wrong = f"{matches(name, any_ending)} && !{matches(name, wanted)}"
    return draft.rule(
        "output_format",
        f"{produces} && {listed(FILE_ARGUMENTS)}.exists(a, a in payload.args && {wrong})",
        REJECT,
        DATA,
        examples=[
            breaks({"path": "out/result.bin"}, tool="write_file"),
            passes({"path": f"out/result.{values[0]}"}, tool="write_file"),
            passes({"path": "in/data.bin"}, tool="read_file"),
        ],
        said=said,
    )
