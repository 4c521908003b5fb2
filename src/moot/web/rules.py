"""Rules: those in force; one changed and checked as it is written, tried on history, put in force, taken back."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Response

from moot.modules.governance.application.decision_log import SimulationReport, simulate
from moot.modules.governance.application.decision_validator import in_locale
from moot.modules.governance.application.rule_files import EnhancedRule, Reading, as_data, write_rules
from moot.modules.governance.application.rulesets import Ruleset
from moot.modules.governance.presentation.dependencies import By, Decisions, Governance, Rulesets
from moot.shared.domain.clock import Day, in_utc
from moot.shared.domain.errors import AppError, Conflict, InvalidInput, NotFound
from moot.shared.domain.validation import Strict, refuse_field, validate
from moot.web.page import Form, Page, Reader

router = APIRouter()

MOST_SHOWN = 50
LOOK_BACK = timedelta(days=30)
LONGEST_NOTE = 500
NEW = """\
rules:
  - id: my.small_steps
    name: Small steps
    category: behavior
    decision_types: [verdict]
    condition: payload.action == 'BUY' && payload.position_percent > 0.03
    action: suggest
    corrector: {kind: clamp, path: payload.position_percent, at_most: 0.03}
    metadata:
      suggestion: {zh-CN: 单笔建仓不超过 3%。, en-US: Open positions of 3 % at most.}
    examples:
      - {violates: true, payload: {action: BUY, position_percent: 0.05}}
      - {violates: false, payload: {action: BUY, position_percent: 0.03}}
"""
"""What a new rule begins as: one that is sound, to be changed."""
Number = Annotated[int, Path(ge=-(2**31), lt=2**31)]


class Since(Strict):
    since: Day


@dataclass(frozen=True)
class Desk:
    """The rules of the workspace of whoever looks, and in whose name they are changed."""

    page: Reader
    governance: Governance
    stored: Rulesets
    by: By

    async def save(self, wanted: Sequence[EnhancedRule], *, gone: Sequence[str] = (), note: str) -> Ruleset:
        """What is in force with this changed, under the next number; it decides nothing yet."""
        book, active = self.governance.book, await self.stored.newest(self.page.workspace)
        rules = book.repository(active.rules)
        for rule_id in gone:
            active.find(rule_id)
            rules.remove(rule_id)
        for rule in wanted:
            if rules.get(rule.id):
                rules.update(rule)
            else:
                rules.load([rule])
        return await self.stored.save(rules.list_all(), note=note[:LONGEST_NOTE], **self.signed)

    @property
    def signed(self) -> dict[str, str]:
        return {"by": self.by, "workspace": self.page.workspace}


AtDesk = Annotated[Desk, Depends(Desk)]


@router.get("/rules")
async def list_rules(page: Reader, governance: Governance) -> Response:
    active, stored = await governance.in_force(page.workspace), governance.rulesets
    number = await stored.number_in_force(page.workspace) if stored else None
    return page.render(
        "rules.html",
        active=active,
        rules=sorted(active.rules, key=lambda rule: rule.order),
        sets=await stored.list(page.workspace) if stored else [],
        number=number,
        text=_text(page),
    )


@router.get("/rules/edit")
async def edit(page: Reader, governance: Governance, rule: str = "") -> Response:
    known = (await governance.in_force(page.workspace)).find(rule) if rule else None
    return _show_editor(page, governance, write_rules([known]) if known else NEW, rule)


@router.post("/rules/check")
async def check(page: Reader, form: Form, governance: Governance) -> Response:
    """What is wrong with it as it stands, line by line; nothing is kept."""
    reading = await asyncio.to_thread(_read, governance, form)
    return page.render("rule_check.html", **_tell(page, reading))


@router.post("/rules/edit")
async def save(page: Reader, form: Form, desk: AtDesk) -> Response:
    reading = await asyncio.to_thread(_read, desk.governance, form)
    try:
        rules = reading.accept(page.locale)
        note = form.get("note") or page.say("rules.note", rules=", ".join(rule.id for rule in rules))
        saved = await desk.save(rules, note=note)
    except (InvalidInput, Conflict, NotFound) as e:
        return _show_editor(page, desk.governance, form.get("yaml", ""), form.get("rule", ""), form, e)
    return page.go(f"/rules/sets/{saved.number}")


@router.post("/rules/remove")
async def remove(page: Reader, form: Form, desk: AtDesk) -> Response:
    rule_id = form.get("rule", "")
    saved = await desk.save([], gone=[rule_id], note=page.say("rules.note_removed", rule=rule_id))
    return page.go(f"/rules/sets/{saved.number}")


@router.get("/rules/sets/{number}")
async def show_set(number: Number, desk: AtDesk) -> Response:
    return await _show_set(desk, await desk.stored.get(number, desk.page.workspace))


@router.post("/rules/sets/{number}/simulate")
async def try_on_history(number: Number, form: Form, desk: AtDesk, decisions: Decisions) -> Response:
    """Every decision since then, with what was known at its time."""
    found, book = await desk.stored.get(number, desk.page.workspace), desk.governance.book
    try:
        first = validate(Since, {"since": form.get("since", "")}).since
    except InvalidInput as e:
        return await _show_set(desk, found, since=form.get("since", ""), error=e)
    validator = book.validator(book.repository(desk.stored.rules_of(found)))
    history = decisions.history(desk.page.workspace, in_utc(first))
    report = await simulate(validator.validate, history)
    return await _show_set(desk, found, since=str(first), report=report)


@router.post("/rules/sets/{number}/activate")
async def activate(number: Number, form: Form, desk: AtDesk) -> Response:
    """Only instead of what was in force when the difference was shown."""
    try:
        await desk.stored.activate(number, _number(form, "instead_of"), **desk.signed)
    except (InvalidInput, Conflict) as e:
        return await _show_set(desk, await desk.stored.get(number, desk.page.workspace), error=e)
    return desk.page.go("/rules")


@router.get("/rules/rollback")
async def show_rollback(desk: AtDesk) -> Response:
    return await _show_set(desk, await desk.stored.before(desk.page.workspace), back=True)


@router.post("/rules/rollback")
async def roll_back(desk: AtDesk) -> Response:
    await desk.stored.rollback(**desk.signed)
    return desk.page.go("/rules")


@router.get("/rules/{rule_id}")
async def show_rule(page: Reader, rule_id: str, governance: Governance) -> Response:
    rule = (await governance.in_force(page.workspace)).find(rule_id)
    return page.render("rule.html", rule=rule, data=as_data(rule), text=_text(page))


def _text(page: Page) -> Any:
    """What a rule says of itself in the reader's language, or else as it was written."""
    return lambda rule, name: in_locale(rule, name, page.locale) or str(getattr(rule, name, ""))


def _read(governance: Governance, form: Mapping[str, Any]) -> Reading:
    return governance.book.inspect_files({"yaml": form.get("yaml", "")})


def _tell(page: Page, reading: Reading) -> dict[str, Any]:
    problems = [complaint.as_details(page.locale) for complaint in reading.complaints]
    return {"problems": problems, "ok": not reading.errors, "rules": reading.rules}


def _number(form: Mapping[str, str], name: str) -> int:
    try:
        return int(form.get(name, ""))
    except ValueError:
        raise refuse_field("int_parsing", name, form.get(name, "")) from None


def _show_editor(
    page: Page,
    governance: Governance,
    yaml: str,
    rule: str,
    given: Mapping[str, str] | None = None,
    error: AppError | None = None,
) -> Response:
    told = {"yaml": yaml, "rule": rule, "given": given or {}}
    checked = _tell(page, _read(governance, told))
    return page.render("rule_edit.html", error=error, status=400 if error else 200, **told, **checked)


async def _show_set(
    desk: Desk,
    found: Ruleset,
    *,
    since: str = "",
    report: SimulationReport | None = None,
    back: bool = False,
    error: AppError | None = None,
) -> Response:
    page, stored = desk.page, desk.stored
    now = await stored.get(await stored.number_in_force(page.workspace), page.workspace)
    return page.render(
        "ruleset.html",
        error=error,
        found=found,
        number=now.number,
        changes=await stored.compare(found.rules, page.workspace),
        was={rule["id"]: rule for rule in now.rules},
        will={rule["id"]: rule for rule in found.rules},
        since=since or str((page.now - LOOK_BACK).date()),
        report=report,
        most=MOST_SHOWN,
        back=back,
    )
