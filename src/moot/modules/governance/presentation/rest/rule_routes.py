"""Single rules: read, added, changed, taken away, and made from what a user says."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel

from moot.modules.governance.application.rule_files import write_rules
from moot.modules.governance.application.rule_generator import Wish
from moot.modules.governance.domain.exceptions import NoSuchRule
from moot.modules.governance.domain.texts import SAY
from moot.modules.governance.presentation.rest.asking import (
    BAD_REQUEST,
    NOT_FOUND,
    NOT_KEPT,
    By,
    Governance,
    Responses,
)
from moot.modules.governance.presentation.rest.rule_edits import Edited, RuleEdits
from moot.modules.governance.presentation.rest.rule_shapes import (
    Problem,
    RuleBody,
    RulesBody,
    SentRule,
    reading_of,
    refuse_wrong,
)
from moot.modules.governance.presentation.rest.status_routes import in_force
from moot.shared.domain.errors import InvalidInput
from moot.shared.presentation.caller import Reader, Workspace
from moot.shared.presentation.errors import ErrorBody

router = APIRouter(prefix="/coordinator/rules", tags=["rules"])

DUPLICATE: Responses = {409: {"model": ErrorBody, "description": "another rule has this id"}}


class RuleChange(BaseModel):
    """The ruleset that is in force now, and what became of the rule; `problems`: why it is a draft."""

    ruleset: int
    digest: str
    rule: RuleBody | None
    problems: list[Problem] = []


class GeneratedRules(BaseModel):
    """In shadow and not stored: `yaml` is for people to read, to change and to save."""

    rules: list[RuleBody]
    yaml: str


def rule_edits(request: Request) -> RuleEdits:
    found: RuleEdits = request.app.state.rule_edits
    return found


Edits = Annotated[RuleEdits, Depends(rule_edits)]


@router.post("/generate", summary="Make rules from what a user says", responses=BAD_REQUEST)
async def generate(body: Wish, governance: Governance) -> GeneratedRules:
    """Nothing that is said can loosen a rule, or take one away."""
    made = governance.rule_generator().generate_from_user_input(
        body.start, body.goal, body.description, body.constraints
    )
    return GeneratedRules(rules=[RuleBody.of(rule) for rule in made], yaml=write_rules(made))


@router.get("/{rule_id}", summary="One of the rules in force", responses=NOT_FOUND)
async def one_rule(rule_id: str, governance: Governance, workspace: Workspace) -> RuleBody:
    for rule in (await in_force(governance, workspace)).rules:
        if rule.id == rule_id:
            return RuleBody.of(rule)
    raise NoSuchRule(rule_id)


@router.post("", summary="Add a rule", status_code=201, responses=BAD_REQUEST | DUPLICATE | NOT_KEPT)
async def add_rule(
    body: SentRule,
    governance: Governance,
    edits: Edits,
    workspace: Workspace,
    by: By,
    reader: Reader,
) -> RuleChange:
    """Makes the next ruleset, which is in force from the next decision on."""
    reading = reading_of(RulesBody(rules=[body]), governance.book)
    refuse_wrong(reading.complaints, reader)
    done = await edits.add(reading.rules[0], by=by, workspace=workspace)
    return _changed(done, [Problem.of(found, reader) for found in reading.complaints])


@router.put("/{rule_id}", summary="Change a rule", responses=BAD_REQUEST | NOT_FOUND | NOT_KEPT)
async def change_rule(
    rule_id: str,
    body: SentRule,
    governance: Governance,
    edits: Edits,
    workspace: Workspace,
    by: By,
    reader: Reader,
) -> RuleChange:
    """The whole rule is sent. If it says something else than before, it gets the next version."""
    if body.id != rule_id:
        raise InvalidInput(SAY("rest.other_id", path=rule_id, body=body.id))
    reading = reading_of(RulesBody(rules=[body]), governance.book)
    refuse_wrong(reading.complaints, reader)
    done = await edits.replace(reading.rules[0], by=by, workspace=workspace)
    return _changed(done, [Problem.of(found, reader) for found in reading.complaints])


@router.delete("/{rule_id}", summary="Take a rule away", responses=NOT_FOUND | NOT_KEPT)
async def remove_rule(rule_id: str, edits: Edits, workspace: Workspace, by: By) -> RuleChange:
    """It stays in the rulesets it was part of, which decisions name."""
    return _changed(await edits.remove(rule_id, by=by, workspace=workspace), [])


def _changed(done: Edited, problems: list[Problem]) -> RuleChange:
    rule = RuleBody.of(done.rule) if done.rule else None
    return RuleChange(ruleset=done.ruleset, digest=done.digest, rule=rule, problems=problems)
