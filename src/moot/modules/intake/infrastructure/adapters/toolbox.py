"""The tools of research steps: the web, the desk's data and its directory, each call as the rules allow it.

What the search service itself lists for a question may be read for it. An address that stands in a stranger's text
only is nobody's wish, and needs a person's consent. Companies that a text names are looked up by the desk itself.
"""

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from pydantic import BaseModel, Field

from moot.modules.governance.application.coordinator_agent import Allowed, ToolCalls
from moot.modules.intake.application.intake_state import Task
from moot.modules.intake.application.report_text import as_table
from moot.modules.intake.domain.question import Citation, Mention
from moot.modules.llm_platform.application.llm_service import Tool
from moot.modules.llm_platform.application.web_search import (
    WebPageService,
    WebSearchRequest,
    WebSearchService,
)
from moot.modules.market_data.application.directory import Directory
from moot.modules.market_data.application.sql import DATABASE_TOOL, DatabaseTool, Statement
from moot.shared.domain.clock import Clock
from moot.shared.domain.errors import AppError, DecisionRejected
from moot.shared.domain.symbol import Symbol
from moot.shared.domain.validation import Strict, validate

REQUESTER = "intake"
LONGEST_PAGE, LONGEST_QUOTE, LONGEST_CELL = 12_000, 500, 200
MOST_ROWS, MOST_COMPANIES, MOST_FOUND = 50, 10, 5_000
IN_A_URL = "%/:=&?~#+!$,;@()*[]-._"
SEARCHES = "Searches the web; says what pages are about and where they are."
READS, FINDS = "Reads the text of a page that a search has found.", "Finds listed companies by code or name."
NEWS = re.compile(r"\bnews\b", re.IGNORECASE)
"""Headlines are the one table that strangers write."""


class Words(Strict):
    query: str = Field(min_length=1, max_length=400, description="What to search for, in a few words.")
    count: int = Field(default=5, ge=1, le=20, description="How many results to show.")


class Address(Strict):
    url: str = Field(min_length=8, max_length=2000, description="The URL of a page that a search has found.")


class CompanyName(Strict):
    text: str = Field(min_length=1, max_length=100, description="A code, a name, or a part of one.")


class ToolOutcome(NamedTuple):
    """`tainted`: written by strangers. What only such text says is quoted, and never an order.

    `ends`: a rule was broken after which no further call is of any use.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    tainted: bool = False
    failed: bool = False
    ends: bool = False


class Kind(NamedTuple):
    """A tool: how models are told of it, what it takes, and what it does."""

    spec: Tool
    arguments: type[BaseModel]
    run: Callable[[Any, Task], Awaitable[ToolOutcome]]


class GovernedToolbox:
    """Each call is a decision, on the record before anything runs, in the order of the calls.

    `search` None: no search service is configured, and no such tool is on offer. `database` is opened by the first
    query.
    """

    def __init__(
        self,
        rules: ToolCalls,
        *,
        search: WebSearchService | None,
        pages: WebPageService,
        database: Callable[[], DatabaseTool],
        directory: Directory,
        clock: Clock,
    ) -> None:
        self._rules, self._search, self._pages = rules, search, pages
        self._database, self._directory, self._clock = database, directory, clock
        self._found = deque[tuple[str, str, str]](maxlen=MOST_FOUND)
        self._in_turn = asyncio.Lock()
        kinds = [
            *([Kind(_spec("web_search", SEARCHES, Words), Words, self._run_search)] if search else []),
            Kind(_spec("read_page", READS, Address), Address, self._page),
            Kind(
                Tool(**{name: DATABASE_TOOL[name] for name in Tool.model_fields}), Statement, self._run_query
            ),
            Kind(_spec("find_company", FINDS, CompanyName), CompanyName, self._companies),
        ]
        self._kinds = {kind.spec.name: kind for kind in kinds}
        self.tools = [kind.spec for kind in kinds]

    async def call(
        self, name: str, arguments: Mapping[str, Any], task: Task, *, read: Sequence[str] = (), **spent: float
    ) -> ToolOutcome:
        """`read` are the tainted texts seen so far, `spent` what the step has taken, by the names that rules know.

        A refusal, a failure or an unknown tool is an outcome too.
        """
        kind, url = self._kinds.get(name), arguments.get("url")
        if kind is None:
            unknown = task.say("steps.tool.unknown", name=name, offered=list(self._kinds))
            return ToolOutcome(unknown, failed=True)
        try:
            given = {**arguments, "url": _ascii(url)} if isinstance(url, str) else arguments
            asked = validate(kind.arguments, given).model_dump()
            allowed = await self._allow(name, asked, task, spent, read)
            outcome = await kind.run(validate(kind.arguments, allowed.args), task)
        except AppError as e:
            return ToolOutcome(e.in_locale(task.reader), failed=True, ends=_ends(e))
        if name == "web_search":
            urls = [each.url for each in outcome.citations if each.url]
            self._found.extend((task.errand.workspace, task.goal, url) for url in urls)
        if allowed.notice is None:
            return outcome
        return outcome._replace(text=f"{allowed.notice.in_locale(task.reader)}\n\n{outcome.text}")

    async def _allow(
        self, name: str, args: Mapping[str, Any], task: Task, spent: Mapping[str, Any], read: Sequence[str]
    ) -> Allowed:
        """The session is told, not bound to: what a person approves after the turn has ended is for the next that
        asks. An address that the search service has given to this question may be read for it."""
        goal, workspace, url = task.goal, task.errand.workspace, str(args.get("url", ""))
        known = {
            **{"token_used": 0, "execution_time": 0.0, **spent},
            "goal": goal,
            "locale": task.reader,
            "trigger_source": REQUESTER,
            "tools": [spec.model_dump() for spec in self.tools],
            "tainted_arguments": _from_strangers(args, goal, read),
            "session_id": task.errand.record,
            "open_breakers": [],  # what a tool depends on has a breaker of its own, which refuses the call itself
        }
        if (workspace, goal, url) in self._found:
            known["facts"] = {"found": [url]}
        async with self._in_turn:
            return await self._rules.allow(name, args, known, requester=REQUESTER, workspace=workspace)

    async def _run_search(self, asked: Words, task: Task) -> ToolOutcome:
        assert self._search is not None
        request = WebSearchRequest(query=asked.query, count=asked.count)
        answer = await self._search.search(request)
        results = answer.results[: asked.count]
        if not results:
            return ToolOutcome(task.say("steps.tool.nothing_found", query=asked.query))
        citations = [
            Citation(
                title=each.title,
                url=_ascii(each.url),
                quote=(each.summary or each.snippet)[:LONGEST_QUOTE],
                source=each.site_name or "web",
                published_at=each.published_date.date().isoformat() if each.published_date else None,
            )
            for each in results
        ]
        return ToolOutcome("\n\n".join(map(_passage, citations)), tuple(citations), tainted=True)

    async def _page(self, asked: Address, task: Task) -> ToolOutcome:
        page = await self._pages.read(asked.url)
        text = page.text[:LONGEST_PAGE]
        if len(page.text) > LONGEST_PAGE:
            text += task.say("steps.left_out")
        cited = Citation(
            title=page.title or page.url, url=page.url, quote=page.text[:LONGEST_QUOTE], source="web"
        )
        return ToolOutcome(f"{cited.title}\n{page.url}\n\n{text}", (cited,), tainted=True)

    async def _run_query(self, asked: Statement, task: Task) -> ToolOutcome:
        as_of = self._clock.now()
        result = await self._database().query(asked.sql, as_of=as_of, workspace=task.errand.workspace)
        if not result.rows:
            return ToolOutcome(task.say("steps.tool.nothing_found", query=asked.sql))
        cited = Citation(
            title=" ".join(result.sql.split())[:LONGEST_QUOTE],
            source="database",
            published_at=as_of.isoformat(),
        )
        shown = [result.columns, *result.rows[:MOST_ROWS]]
        table = as_table([[" ".join(str(value).split())[:LONGEST_CELL] for value in row] for row in shown])
        if result.truncated or len(result.rows) > MOST_ROWS:
            table = f"{table}\n\n{task.say('steps.tool.more_rows', shown=MOST_ROWS)}"
        return ToolOutcome(table, (cited,), tainted=bool(NEWS.search(result.sql)))

    async def _companies(self, asked: CompanyName, task: Task) -> ToolOutcome:
        matches = await self._directory.find(asked.text, limit=MOST_COMPANIES)
        if not matches:
            return ToolOutcome(task.say("steps.tool.nothing_found", query=asked.text))
        told = [(match.company, f"{match.company.symbol} {match.company.label}") for match in matches]
        lines = [f"- {label} · {company.industry} {company.industry_en}".rstrip() for company, label in told]
        citations = tuple(
            Citation(title=label, source=f"directory:{company.source}") for company, label in told
        )
        return ToolOutcome("\n".join(lines), citations)


def _spec(name: str, description: str, arguments: type[BaseModel]) -> Tool:
    return Tool(name=name, description=description, parameters=arguments.model_json_schema())


def _ends(error: AppError) -> bool:
    """Whether a broken rule ends more than this call."""
    broken = error.details.get("violations", []) if isinstance(error, DecisionRejected) else []
    return any(each["action"] == "terminate" and each["mode"] == "enforce" for each in broken)


def _from_strangers(args: Mapping[str, Any], goal: str, read: Sequence[str]) -> list[str]:
    """Arguments that stand in what strangers wrote and not in the question."""
    return [
        name
        for name, value in args.items()
        if isinstance(value, str) and value not in goal and any(value in text for text in read)
    ]


def _ascii(url: str) -> str:
    """An address as it goes over the wire, so that everybody reads the same one."""
    return quote(url.strip(), safe=IN_A_URL)


def _passage(found: Citation) -> str:
    about = " · ".join(part for part in (found.source, found.published_at) if part)
    return f"{found.title} ({about})\n{found.url}\n> " + " ".join(found.quote.split())


async def find_mentions(directory: Directory, clock: Clock, text: str) -> list[Mention]:
    """Companies that a sentence names, in its order; codes, names, former and English names, parts of them."""
    mentions, now = list[Mention](), clock.now()
    for named in await directory.find_in(text):
        companies = [match.company for match in named.matches]
        gone = companies[0].delist_date if len(companies) == 1 else None
        mention = Mention(
            text=named.text,
            symbols=tuple(company.symbol for company in companies),
            names=tuple(company.name or company.name_en for company in companies),
            names_en=tuple(company.name_en for company in companies),
            delisted_on=gone if gone and gone <= Symbol.parse(companies[0].symbol).local_date(now) else None,
        )
        mentions.append(mention)
    return mentions


async def find_near(directory: Directory, text: str) -> list[str]:
    """Companies that a text nearly names, by code and name."""
    try:
        symbols = [(await directory.resolve(text)).symbol]
    except AppError as e:
        symbols = [candidate["symbol"] for candidate in e.details.get("candidates", ())]
    found = [match.company for symbol in symbols for match in await directory.find(symbol, limit=1)]
    return [f"{company.symbol} {company.label}" for company in found]
