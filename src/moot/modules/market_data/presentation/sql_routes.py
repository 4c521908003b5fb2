"""SQL over HTTP: one SELECT, as far as the rules allow it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from moot.modules.market_data.application.query_result import QueryResult
from moot.modules.market_data.application.sql_door import SqlDoor, SqlQuestion
from moot.shared.domain.errors import Conflict
from moot.shared.presentation.caller import Caller, Reader, Workspace
from moot.shared.presentation.errors import ErrorBody, answer

router = APIRouter()

ANYBODY = "api"


def sql_door(request: Request) -> SqlDoor:
    found: SqlDoor = request.app.state.desk.sql_door
    return found


Door = Annotated[SqlDoor, Depends(sql_door)]


@router.get("/tables", summary="The tables that SQL can read, with their columns")
async def tables(door: Door) -> dict[str, list[str]]:
    return door.tables()


@router.post(
    "/sql",
    summary="One SELECT over the market data, as known at a moment",
    response_model=QueryResult,
    responses={
        202: {"model": ErrorBody, "description": "a person is asked; come back with the same request"},
        400: {"model": ErrorBody, "description": "it does not run, or takes too long"},
        403: {
            "model": ErrorBody,
            "description": "the rules say no, `details` tell which; or the key has not the scope",
        },
    },
)
async def sql(
    request: Request, body: SqlQuestion, door: Door, workspace: Workspace, caller: Caller, reader: Reader
) -> QueryResult | Response:
    """A decision of type `tool_call` is on the record before anything runs; `notices` say what the rules changed."""
    try:
        return await door.query(body, requester=caller or ANYBODY, workspace=workspace, locale=reader)
    except Conflict as e:
        if "escalation_id" not in e.details:
            raise
        response = answer(request, e, 202)
        place = request.app.url_path_for("escalation", escalation_id=e.details["escalation_id"])
        response.headers["Location"] = str(place)
        return response
