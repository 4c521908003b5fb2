"""What the rule generator understands in a text. Nothing else in it means anything: no instruction is followed."""

import re
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Literal, NamedTuple

from moot.shared.domain.messages import Locale


class SensitiveField(NamedTuple):
    """`words` in a text mean these `columns`, as tables, lists and records call them."""

    words: str
    columns: tuple[str, ...]


def _names(english: str, chinese: str) -> tuple[str, ...]:
    return (*english.split(), *chinese.split())


SENSITIVE: dict[str, SensitiveField] = {
    "name": SensitiveField(
        r"姓名|客户名称?|用户名|联系人|(?<!file )(?<!table )(?<!column )\bnames?\b|\busernames?\b",
        _names(
            "customer_name client_name user_name username full_name real_name contact_name name",
            "客户姓名 客户名称 用户名 联系人 姓名",
        ),
    ),
    "phone": SensitiveField(
        r"手机|电话|联系方式|\b(?:tele)?phones?\b|\bmobiles?\b",
        _names(
            "phone phone_number mobile mobile_number mobile_phone telephone tel",
            "电话 电话号码 手机 手机号 手机号码 联系电话 联系方式",
        ),
    ),
    "id_card": SensitiveField(
        r"身份证|证件号|护照|\bid (?:cards?|numbers?)\b|\bidentity\b|\bnational ids?\b|\bssn\b|\bpassports?\b"
        r"|\bsocial security\b",
        _names(
            "id_card id_number id_no identity_number national_id ssn passport passport_number",
            "身份证 身份证号 身份证号码 证件号 护照号",
        ),
    ),
    "email": SensitiveField(
        r"邮箱|邮件地址|电子邮件|\be-?mails?\b",
        _names("email email_address mail", "邮箱 电子邮箱 电子邮件 邮箱地址"),
    ),
    "address": SensitiveField(
        r"住址|(?<!邮件)(?<!邮箱)地址|(?<!email )(?<!e-mail )(?<!ip )\baddress(?:es)?\b",
        _names("address home_address street street_address", "地址 住址 家庭住址 家庭地址"),
    ),
    "bank_account": SensitiveField(
        r"银行卡|银行账[号户]|卡号|账号|\bbank (?:accounts?|cards?)\b|\b(?:account|card) numbers?\b|\biban\b"
        r"|\bcredit cards?\b",
        _names(
            "bank_account account_number account_no bank_card card_number card_no iban credit_card",
            "银行卡 银行卡号 银行账号 银行账户 卡号 账号",
        ),
    ),
    "birth_date": SensitiveField(
        r"生日|出生日期|\bbirth(?: ?days?| dates?)\b|\bdates? of birth\b|\bdob\b",
        _names("birth_date birthday date_of_birth dob", "生日 出生日期"),
    ),
    "salary": SensitiveField(
        r"工资|薪资|薪酬|\bsalar(?:y|ies)\b|\bwages?\b",
        _names("salary wage", "工资 薪资 薪酬"),
    ),
    "secret": SensitiveField(
        r"密码|口令|\bpasswords?\b|\bapi keys?\b",
        _names("password passwd secret api_key", "密码 口令"),
    ),
}

MASKING = re.compile(
    r"脱敏|打码|掩码|屏蔽|隐藏|隐去|遮盖|遮挡|匿名|去标识|加密|保密|敏感|隐私|[不勿]\w{0,2}(?:泄露|外泄|显示|展示|暴露)"
    r"|\bmask\w*|\banonymi[sz]\w*|\bredact\w*|\bhid(?:e|den|ing)\b|\bobfuscat\w*|\bconceal\w*|\bde-?identif\w*"
    r"|\bpseudonymi[sz]\w*|\bsensitive\b|\bconfidential\b|\bpii\b"
    r"|\b(?:not|never|don't)(?: be)? (?:show|expos|reveal|disclos|leak)\w*",
    re.IGNORECASE,
)
NOT_MASKED = re.compile(
    r"(?:不需要|不用|不必|不要|无需|无须|别|免)(?:再|做|进行|对)?(?:脱敏|打码|掩码|屏蔽|隐藏|匿名|加密|保密)"
    r"|\b(?:no need to|need not|not need to|not|n't|never|without|no|nothing (?:needs|has))(?: be| to be| to)?"
    r" (?:mask|anonymi|redact|hid)\w*",
    re.IGNORECASE,
)
SPELT_OUT = re.compile(
    r"\b([a-z][a-z0-9]*(?:_[a-z0-9]+)+)\b|(?:^|[对将把的和、与及，,\s])([一-鿿]{2,8}?)(?:字段|(?<![系排陈])列)",
    re.IGNORECASE,
)


def locale_of(*texts: str | None) -> Locale:
    return "zh-CN" if re.search(r"[一-鿿]", " ".join(filter(None, texts))) else "en-US"


def sentences(*texts: str | None) -> list[str]:
    whole = "\n".join(filter(None, texts))
    return [part for part in re.split(r"[。；;！!？?\n]|\.(?=\s|$)", whole) if part.strip()]


PERMITTING = re.compile(
    r"允许|也可以|也行|不限|忽略|无视|作废|\b(?:allow|permit|ignor|disregard|overrid|instead)\w*|\balso (?:fine|ok)",
    re.IGNORECASE,
)


def demands(*texts: str | None) -> list[str]:
    """The clauses that may ask for something; one that gives leave asks for nothing."""
    return [clause for clause in clauses(*texts) if not PERMITTING.search(clause)]


def clauses(*texts: str | None) -> list[str]:
    return [part for sentence in sentences(*texts) for part in re.split(r"[，,]", sentence) if part.strip()]


def fields_to_mask(*texts: str | None) -> tuple[str, ...]:
    """The columns a text wants hidden; all it could mean when it does not say which. Hiding is never one itself."""
    found: dict[str, None] = {}
    for sentence in sentences(*texts):
        wanted = [part for part in clauses(sentence) if not NOT_MASKED.search(part)]
        if any(MASKING.search(part) for part in wanted):
            named = columns_named(MASKING.sub(" ", "，".join(wanted)))
            found |= dict.fromkeys(named or EVERY_COLUMN)
    return tuple(found)


def columns_named(text: str) -> list[str]:
    """`客户姓名` and `customer_name` mean the same columns; a name nobody knows means itself."""
    kinds = [kind for kind, field in SENSITIVE.items() if re.search(field.words, text, re.IGNORECASE)]
    for match in SPELT_OUT.finditer(text):
        spelt = (match[1] or match[2]).lower()
        known = [kind for kind, field in SENSITIVE.items() if spelt in field.columns]
        if not known and not any(re.search(field.words, spelt) for field in SENSITIVE.values()):
            kinds.append(spelt)
        kinds += known
    return [column for kind in dict.fromkeys(kinds) for column in _columns(kind)]


def kinds_of(columns: Iterable[str]) -> list[str]:
    """What the columns are about; one that is about nothing known stands for itself."""
    kinds = {column: kind for kind, field in SENSITIVE.items() for column in field.columns}
    return list(dict.fromkeys(kinds.get(column, column) for column in columns))


def _columns(kind: str) -> tuple[str, ...]:
    return SENSITIVE[kind].columns if kind in SENSITIVE else (kind,)


EVERY_COLUMN = tuple(column for field in SENSITIVE.values() for column in field.columns)


class OutputFormat(NamedTuple):
    """`values` is how tools and file names call it; `usual` goes in the place of a wrong one, where there is one."""

    words: str
    values: tuple[str, ...]
    usual: str | None = None


FormatName = Literal["report", "excel", "csv", "json", "pdf", "markdown", "html", "docx", "table", "chart"]

FORMATS: dict[FormatName, OutputFormat] = {
    "report": OutputFormat(
        r"报表|报告|\breports?\b", ("report", "pdf", "html", "docx", "xlsx", "excel", "markdown", "md")
    ),
    "excel": OutputFormat(
        r"excel|\bxlsx?\b|电子表格|\bspreadsheets?\b", ("xlsx", "xls", "excel", "spreadsheet"), "xlsx"
    ),
    "csv": OutputFormat(r"csv", ("csv",), "csv"),
    "json": OutputFormat(r"json", ("json",), "json"),
    "pdf": OutputFormat(r"pdf", ("pdf",), "pdf"),
    "markdown": OutputFormat(r"markdown", ("markdown", "md"), "markdown"),
    "html": OutputFormat(r"html|网页", ("html", "htm"), "html"),
    "docx": OutputFormat(r"docx|word\s*(?:文档|文件|documents?|files?)", ("docx",), "docx"),
    "table": OutputFormat(
        r"(?<!电子)表格|\btables?\b", ("table", "csv", "xlsx", "xls", "excel", "markdown", "md")
    ),
    "chart": OutputFormat(
        r"图表|[折柱饼线状]图|\bcharts?\b|\bgraphs?\b|\bplots?\b", ("chart", "png", "svg", "jpg", "jpeg")
    ),
}

PRODUCED = (
    r"生成|输出|导出|产出|制作|编写|撰写|写成|写一|保存|存为|转成|转为|转换|整理成|做成|做一|形成|出具|以(?=.*(?:格式|形式))"
    r"|\b(?:generat|produc|export|output|creat|writ|sav|render|mak|build|deliver|prepar|draw|draft|compil)\w*"
    r"|\b(?:into|as)\b"
)
GIVEN = r"根据|基于|读取|我有|从|用|\b(?:from|based on|using|read|load|have|parse|with)\b"
NOT_PRODUCED = re.compile(
    r"不要|不得|不需要|无需|禁止|勿|\b(?:not|never|without|no longer)\b|n't\b", re.IGNORECASE
)
MARKS = re.compile(f"(?P<out>{PRODUCED})|(?P<given>{GIVEN})", re.IGNORECASE)


def output_formats(*texts: str | None, laid_down: FormatName | None = None) -> tuple[FormatName, ...]:
    """The formats that are asked for. What was said first counts; what comes later can only narrow it."""
    asked = [named for clause in demands(*texts) if (named := _formats_of(clause))]
    if laid_down is not None:
        asked.insert(0, (laid_down,))
    return reduce(lambda first, then: _in_common(first, then) or first, asked) if asked else ()


def values_of(formats: Iterable[FormatName]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for name in formats for value in FORMATS[name].values))


def _in_common(first: tuple[FormatName, ...], then: tuple[FormatName, ...]) -> tuple[FormatName, ...]:
    """Those of `then` that `first` allows too: a PDF is a report, not the other way round."""
    allowed = set(values_of(first))
    return tuple(name for name in then if FORMATS[name].values[0] in allowed)


def _formats_of(clause: str) -> tuple[FormatName, ...]:
    """`生成PDF报告` asks for a report and, more exactly, for a PDF; `导出CSV和Excel` for either."""
    if NOT_PRODUCED.search(clause):
        return ()
    named = dict.fromkeys(_named_formats(clause))
    exact = [name for name in named if FORMATS[name].usual]
    kinds = [name for name in named if not FORMATS[name].usual]
    met = {kind for kind in kinds for name in exact if _in_common((kind,), (name,))}
    return tuple(name for name in named if name not in met)


def _named_formats(clause: str) -> Iterator[FormatName]:
    marks = [(match.start(), match.lastgroup) for match in MARKS.finditer(clause)]
    for name, known in FORMATS.items():
        for match in re.finditer(known.words, clause, re.IGNORECASE):
            before = [group for place, group in marks if place < match.start()]
            follows = re.match(r"\s*(?:格式|形式|format)", clause[match.end() :], re.IGNORECASE)
            if (before[-1:] == ["out"]) or (not before and follows):
                yield name
