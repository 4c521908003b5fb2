"""What to do about an argument, by rule: the action, how much of it, and why not more."""

from dataclasses import dataclass
from math import floor

from moot.modules.judge.domain.levels import Levels, levels_for, measured, to_tick
from moot.modules.judge.domain.verdict import SAY, JudgeInput, Sizing
from moot.shared.domain.claims import Action
from moot.shared.domain.experts import Direction
from moot.shared.domain.messages import Message

ACTION_FOR: dict[Direction, Action] = {"BULLISH": "BUY", "BEARISH": "SELL", "NEUTRAL": "HOLD"}
UNDECIDED = 0.5
"""The weight of an argument that leans to no side."""
ENOUGH_TO_ACT = 0.2
ENOUGH_TO_STAY = 0.15
"""Conviction that opens a case, and the lesser one that keeps it open: small movements do not flip a verdict."""
NOTICEABLE = 0.1
CAP = 0.3
RISK_SHARE = {"low": 0.5, "medium": 1.0, "high": 1.0}
"""Of the cap, by how much risk the holder bears; nobody's appetite raises it."""
CALM_ATR = 0.025
"""Average true range, as a share of the price, up to which volatility takes nothing from a position."""
SOLD_PER_DAY = 0.1
"""Share of the average daily turnover that can be sold without moving the price."""
QUICK_DAYS = 5.0
CAPITAL = 10_000_000.0
"""What the whole capital is taken to be, in the market's currency, as nobody says."""
IF_UNKNOWN = 0.5
SMALLEST = 0.01
NARROW = 2
"""Experts up to which nothing can be decided, and a verdict says in its first line who they were."""


@dataclass(frozen=True)
class Decision:
    """What is ruled, in figures."""

    action: Action
    levels: Levels
    position: float = 0.0
    sizing: Sizing | None = None
    why: Message | None = None


def decide(judge_input: JudgeInput) -> Decision:
    """Direction and conviction lead; a purchase must also pay more than it risks, and be worth opening."""
    leading, why = _follow(judge_input)
    levels = levels_for(leading, judge_input.evidence)
    if leading != "BUY":
        return Decision(leading, levels, why=why)
    sizing, position = size(judge_input)
    if refusal := refuse_purchase(levels, position):
        return Decision("HOLD", levels, why=refusal)
    return Decision("BUY", levels, position, sizing, why)


def _follow(judge_input: JudgeInput) -> tuple[Action, Message]:
    action, before = ACTION_FOR[judge_input.direction], judge_input.previous
    conviction = judge_input.conviction
    if action != "HOLD" and conviction >= ENOUGH_TO_ACT:
        return action, SAY(f"why.{action}")
    leaning: Action = "BUY" if judge_input.lean > 0 else "SELL"
    if before and before.action == leaning and conviction >= ENOUGH_TO_STAY:
        bounds = {"enter": UNDECIDED + ENOUGH_TO_ACT / 2, "stay": UNDECIDED + ENOUGH_TO_STAY / 2}
        return leaning, SAY("why.kept", action=SAY(f"action.{leaning}"), **bounds)
    narrow = 0 < judge_input.experts_heard <= NARROW and not conviction
    return "HOLD", SAY("why.unheard" if narrow else "why.weak" if conviction >= NOTICEABLE else "why.HOLD")


def refuse_purchase(levels: Levels, position: float) -> Message | None:
    """Why there is no purchase although the argument is for one."""
    if levels.stakes and levels.stakes[0] < levels.stakes[1]:
        return SAY("why.unrewarding", won=levels.stakes[0], lost=levels.stakes[1])
    return SAY("why.too_small") if position < SMALLEST else None


def tell_opening(judge_input: JudgeInput, levels: Levels) -> Message | None:
    """What would make a HOLD a purchase or a sale."""
    if judge_input.grave:
        return SAY("opening.grave")
    if 0 < judge_input.experts_heard <= NARROW and not judge_input.conviction:
        return SAY("opening.unheard")
    if judge_input.conviction < ENOUGH_TO_ACT:
        leaning = "for" if judge_input.lean > 0 else "against"
        side = "neither" if judge_input.confidence <= UNDECIDED else leaning
        enter = UNDECIDED + ENOUGH_TO_ACT / 2
        return SAY(f"opening.{side}", enter=enter, confidence=judge_input.confidence)
    won, lost = levels.stakes or (0.0, 0.0)
    if levels.entry is None or judge_input.lean < 0 or won >= lost:
        return None
    return SAY("opening.price", level=to_tick(levels.entry - (lost - won) / 2))


def size(judge_input: JudgeInput, at_most: float = 1.0) -> tuple[Sizing, float]:
    """Cap x conviction x volatility x liquidity, rounded down to whole per cents, or less where somebody wants less.

    The cap is 30 % of capital, half of it for a holder who bears little risk. Conviction is the argument's, 0 to 1,
    and 0 where it is not for buying.
    Volatility is 2.5 % over ATR/price, liquidity five days over the days it takes to sell what the other factors
    leave of a capital of ten million at a tenth of the average daily turnover; each at most 1, and 0.5 if unknown.
    """
    cap = CAP * (RISK_SHARE[judge_input.holder.risk] if judge_input.holder else 1.0)
    volatility = _volatility(judge_input)
    conviction = max(0.0, judge_input.lean)
    wanted = cap * conviction * _or_caution(volatility)
    turnover = measured(judge_input.evidence, "turnover_20d")
    days = wanted * CAPITAL / (SOLD_PER_DAY * turnover) if turnover else None
    liquidity = None if days is None else min(1.0, QUICK_DAYS / days if days else 1.0)
    position = min(at_most, floor(wanted * _or_caution(liquidity) * 100 + 1e-9) / 100)
    sizing = Sizing(
        cap=cap,
        conviction=conviction,
        volatility=None if volatility is None else round(volatility, 2),
        liquidity=None if liquidity is None else round(liquidity, 2),
        days_to_sell=round(position * CAPITAL / (SOLD_PER_DAY * turnover), 2) if turnover else None,
        capital=CAPITAL,
        lot=judge_input.lot_size,
    )
    return sizing, position


def _volatility(judge_input: JudgeInput) -> float | None:
    atr, price = measured(judge_input.evidence, "atr_value"), judge_input.price
    return min(1.0, CALM_ATR * price.value / atr) if atr and price else None


def _or_caution(factor: float | None) -> float:
    return IF_UNKNOWN if factor is None else factor
