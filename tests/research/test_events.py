"""Events are read by the words of their headline; fresh ones weigh most, and exceptions come first."""

import re

import pytest

from moot.modules.research.domain.events import balance, event_table, read_events
from moot.shared.domain.facts import NewsItem
from tests.fakes.research import CASE, a_news
from tests.research.cases import policy


def category(news: NewsItem) -> str:
    return read_events([news], CASE)[0].category


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("股东拟减持不超过2%股份", "selldown"),
        ("股东提前终止减持计划", "selldown_ended"),
        ("控股股东增持0.6%股份", "stake_raised"),
        ("某券商首次覆盖给予增持评级", "rating_up"),
        ("拟回购不超过1亿元股份", "buyback"),
        ("终止回购公司股份", "buyback_ended"),
        ("预计全年亏损2亿元", "profit_warning"),
        ("预计净利1.4亿元，上年亏损，同比扭亏", "turnaround"),
        ("亏损同比收窄30%", "loss_narrowed"),
        ("签订重大业务合同", "contract_won"),
        ("未中标某项目", "contract_lost"),
        ("收到问询函", "inquiry"),
        ("被证监会立案调查", "investigation"),
        ("收到环保部门行政处罚决定书", "enforcement"),
        ("召开临时股东大会", "unread"),
    ],
)
def test_chinese_headlines(title: str, kind: str) -> None:
    assert category(a_news(title, title)) == kind


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("Holder to reduce stake by 2%", "selldown"),
        ("Controlling holder adds 0.6% of the shares to its holding", "stake_raised"),
        ("Plans to buy back up to 1% of its shares, a repurchase", "buyback"),
        ("Issues a profit warning for the year", "profit_warning"),
        ("Wins contract worth CNY 300 million", "contract_won"),
        ("Customers complain about delays", "complaint"),
        ("Holds its annual meeting", "unread"),
    ],
)
def test_english_headlines(title: str, kind: str) -> None:
    assert category(a_news(title, title)) == kind


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("出台支持措施", "policy_support"),
        ("收紧广告管理", "policy_restrict"),
        ("央行宣布降准", "policy_easing"),
    ],
)
def test_policy_notices_have_their_own_table(title: str, kind: str) -> None:
    assert category(policy(title, title)) == kind


def test_company_news_is_sorted_by_what_happened_other_news_by_whom_it_is_about() -> None:
    about_industry = a_news("需求回升", "Demand recovers", symbol=None, industry="白酒")
    about_market = a_news("资金流入股市", "Inflow into stocks", symbol=None)
    about_earnings = a_news("净利润增长", "Profit growth")
    events = read_events([about_industry, about_market, about_earnings], CASE)
    assert {event.title: event.topic for event in events} == {
        "需求回升": "industry",
        "资金流入股市": "sentiment",
        "净利润增长": "earnings",
    }


def test_half_of_an_event_is_left_after_thirty_days() -> None:
    fresh, old = read_events([a_news("中标项目", "Wins contract", days_ago=n) for n in (0, 30)], CASE)
    assert (fresh.points, old.points) == (2.0, 1.0)


@pytest.mark.parametrize(
    ("kind", "title", "probability"),
    [
        ("announcement", "中标项目", "高"),
        ("announcement", "拟收购某公司", "中"),
        ("news", "中标项目", "中"),
        ("news", "有望收购某公司", "低"),
    ],
)
def test_what_is_announced_is_likelier_than_what_is_told_or_only_intended(
    kind: str, title: str, probability: str
) -> None:
    assert read_events([a_news(title, title, kind=kind)], CASE)[0].probability == probability


def test_events_come_newest_first_and_each_address_once() -> None:
    old = a_news("中标项目", "Wins contract", days_ago=9, url="fake://same?id=1")
    new = a_news("收到问询函", "Inquiry letter", days_ago=2, url="fake://same?id=1")
    other = a_news("回购股份", "Buyback", days_ago=5, url="fake://same?id=2")
    assert [e.title for e in read_events([old, other, new], CASE)] == ["收到问询函", "回购股份"]


def test_the_balance_of_one_event_is_not_the_whole_scale() -> None:
    one, three = ([policy("收紧管理", "Tighter", days_ago=0, url=f"u{n}") for n in range(k)] for k in (1, 3))
    assert balance(read_events(one, CASE)) == -0.5
    assert balance(read_events(three, CASE)) == -0.75
    assert balance([]) is None


def test_every_pattern_of_the_table_is_lower_case_and_compiles() -> None:
    table = event_table()
    for pattern in [*table.tentative, *(w for c in (*table.news, *table.policy) for w in c.words)]:
        assert pattern == pattern.lower()
        re.compile(pattern)
