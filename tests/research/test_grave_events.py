"""Which headlines tell of something grave, which only sound like it, and what takes it back."""

import pytest

from moot.modules.research.application.catalyst_detective.context import catalyst_context
from moot.modules.research.domain.events import event_table, find_grave, is_grave, read_events
from moot.shared.domain.claims import GRAVE_KINDS
from tests.fakes.research import CASE, a_news

GRAVE = {
    "investigation": [
        "因涉嫌信息披露违法违规被证监会立案调查",
        "收到《行政处罚及市场禁入事先告知书》",
        "净利润同比增长50%的背后：公司被曝财务造假",
        "Regulator opens a fraud investigation into the company",
        "Profit up 30%, accounts said to be falsified",
    ],
    "audit_qualified": [
        "会计师事务所对年报出具保留意见的审计报告",
        "年报被出具非标意见",
        "年度财务报告被出具无法表示意见",
        "Auditor issues a qualified opinion on the annual report",
        "Auditor disclaims an opinion: disclaimer of opinion on the accounts",
    ],
    "delisting": [
        "关于公司股票可能被终止上市的风险提示公告",
        "公司股票将被实施退市风险警示",
        "关于申请撤销退市风险警示的公告",
        "Shares may be delisted, the exchange warns",
    ],
    "default": [
        "未能按期兑付公司债券本息",
        "累计债务逾期2.18亿元",
        "法院裁定受理公司破产重整申请",
        "Company defaults on its bonds",
        "Misses a bond payment due on Friday",
    ],
    "suspension": [
        "公司股票自明日起停牌核查",
        "股票停牌，待相关公告披露后复牌",
        "Trading in the shares halted: trading halt until further notice",
        "Shares suspended pending an announcement",
    ],
}
HARMLESS = [
    "收到交易所问询函",
    "年度报告被出具标准无保留意见",
    "Auditor issues an unqualified opinion",
    "公司未被立案调查的说明",
    "商务部对进口产品发起反倾销立案调查",
    "公司推出反欺诈产品",
    "关于债券赎回结果暨转债终止上市的公告",
    "公司无逾期担保",
    "提起诉讼并获法院立案受理",
    "因环保问题被罚款5万元",
    "复牌公告",
    "关于撤销退市风险警示的公告",
    "Not under investigation, the company says",
    "Halts production at one plant",
    "Shares resume trading on Monday",
]


@pytest.mark.parametrize(("kind", "title"), [(kind, title) for kind in GRAVE for title in GRAVE[kind]])
def test_grave_headlines(kind: str, title: str) -> None:
    assert list(find_grave([a_news(title, title)])) == [kind]


@pytest.mark.parametrize("title", HARMLESS)
def test_what_only_sounds_grave(title: str) -> None:
    assert find_grave([a_news(title, title)]) == {}


def test_every_grave_kind_is_in_the_table_and_what_lifts_it_too() -> None:
    kinds = {category.id for category in event_table().news}
    grave = {kind for kind in kinds if is_grave(kind)}
    assert {f"catalyst.{kind}" for kind in grave} == GRAVE_KINDS
    assert {kind for category in event_table().news for kind in category.lifts} == grave


LIFTED = [
    ("公司股票停牌", "股票复牌的公告"),
    ("公司被证监会立案调查", "收到证监会结案通知书"),
    ("Regulator opens an investigation", "Investigation closed without findings"),
    ("公司股票被实施退市风险警示", "股票撤销退市风险警示"),
    ("年报被出具保留意见", "保留意见所涉事项影响已消除的专项说明"),
    ("公司债务逾期", "逾期债务已全部清偿"),
]


@pytest.mark.parametrize(("grave", "lifting"), LIFTED)
@pytest.mark.parametrize("days", [(40, 10), (10, 40), (10, 10)], ids=["after", "before", "at once"])
def test_only_what_is_announced_later_lifts_it(grave: str, lifting: str, days: tuple[int, int]) -> None:
    told, over = days
    news = [
        a_news(grave, grave, days_ago=told, url="fake://a"),
        a_news(lifting, lifting, days_ago=over, url="fake://b", kind="announcement"),
    ]
    lifted = over < told
    assert bool(find_grave(news)) is not lifted
    assert ("settled" in [event.category for event in read_events(news, CASE)]) is lifted


@pytest.mark.parametrize(("grave", "lifting"), LIFTED)
def test_what_others_report_lifts_nothing(grave: str, lifting: str) -> None:
    reported = a_news(lifting, lifting, days_ago=1, url="fake://b", kind="news")
    assert find_grave([a_news(grave, grave, days_ago=9, url="fake://a"), reported])


def test_one_kind_is_not_lifted_by_the_end_of_another() -> None:
    resumed = a_news("股票复牌", "Trading resumes", days_ago=1, url="fake://b", kind="announcement")
    assert list(find_grave([a_news("被立案调查", "Under investigation", days_ago=9), resumed])) == [
        "investigation"
    ]


def test_what_is_said_of_an_industry_is_not_said_of_the_company() -> None:
    assert find_grave([a_news("多家公司被立案调查", "Investigated", symbol=None, industry="白酒")]) == {}


def test_an_old_grave_event_is_not_crowded_out_by_newer_ones() -> None:
    old = a_news("公司被证监会立案调查", "Under investigation", days_ago=80, url="fake://old")
    newer = [a_news("中标项目", "Wins contract", days_ago=n, url=f"fake://{n}") for n in range(1, 20)]
    events = catalyst_context(CASE, read_events([*newer, old], CASE)).events
    assert events[0].category == "investigation"
    assert [event.published for event in events[1:3]] > [event.published for event in events[2:4]]
