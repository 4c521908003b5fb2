"""LangGraph by itself in the shape of a research run: the yardstick for what orchestration may cost.

router → five experts in parallel → aggregate → bull ∥ bear → resolve → judge, every node a call that returns at once,
or after `LATENCY`. With a checkpointer it survives a crash.
"""

import asyncio
import operator
from contextvars import ContextVar
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

EXPERTS = 5
TEXT = "An answer of some length, as a model would give it. " * 24
LATENCY: ContextVar[float] = ContextVar("latency", default=0.0)


class State(TypedDict, total=False):
    query: str
    reports: Annotated[list[str], operator.add]
    brief: str
    debate: Annotated[list[str], operator.add]
    resolution: str
    verdict: str


async def call() -> str:
    await asyncio.sleep(LATENCY.get())
    return TEXT


async def router(state: State) -> State:
    return {}


def fan_out(state: State) -> list[Send]:
    return [Send("expert", {"query": state["query"]}) for _ in range(EXPERTS)]


async def expert(state: State) -> State:
    return {"reports": [await call()]}


async def aggregate(state: State) -> State:
    return {"brief": "\n".join(state["reports"])}


async def side(state: State) -> State:
    return {"debate": [await call()]}


async def resolve(state: State) -> State:
    return {"resolution": await call()}


async def judge(state: State) -> State:
    return {"verdict": await call()}


def compiled(checkpointer: BaseCheckpointSaver[Any] | None = None) -> Any:
    graph = StateGraph(State)
    nodes = {"router": router, "expert": expert, "aggregate": aggregate, "bull": side, "bear": side}
    for name, node in {**nodes, "resolve": resolve, "judge": judge}.items():
        graph.add_node(name, node)
    graph.add_edge(START, "router")
    graph.add_conditional_edges("router", fan_out, ["expert"])
    graph.add_edge("expert", "aggregate")
    graph.add_edge("aggregate", "bull")
    graph.add_edge("aggregate", "bear")
    graph.add_edge(["bull", "bear"], "resolve")
    graph.add_edge("resolve", "judge")
    graph.add_edge("judge", END)
    return graph.compile(checkpointer=checkpointer)
