"""From the bytes of a page to its text, in time that grows with its length only: pages may be written to hurt."""

import codecs
import html
import re

UNREAD = ("script", "style", "template", "noscript", "svg", "iframe", "textarea", "select")
INLINE = re.compile(
    r"/?(a|abbr|b|bd[io]|cite|code|em|font|i|img|kbd|label|mark|q|s|small|span|strong|su[bp]|time|u|var|wbr)"
)
# A tag never spans another `<`, so nothing is looked at twice.
TAG = re.compile(r"<!--|<([!?/]?[a-zA-Z][^<>]*)>")
ENDS = {name: re.compile(rf"</{name}\b[^<>]*>", re.IGNORECASE) for name in (*UNREAD, "title")}
COMMENT_END = re.compile(r"--!?>")
HUGE_REFERENCE = re.compile(r"&#[xX]?[0-9a-fA-F]{8,};?")
"""No character has such a number, and the standard library fails on the longest of them."""

DECLARED = re.compile(rb"<meta[^<>]{0,500}charset\s{0,20}=\s{0,20}[\"']?([a-zA-Z0-9_-]{1,40})", re.IGNORECASE)
ENCODINGS = {"gb2312": "gb18030", "gbk": "gb18030"}
READ_AS = re.compile(
    r"utf-8(-sig)?|utf-16(-[lb]e)?|gb18030|hz|big5(hkscs)?|iso8859-15?|cp125[12]|ascii|shift_jis|cp932|euc_(jp|kr)|"
    r"iso2022_jp|cp949|koi8-r"
)
"""Python knows encodings that are none of text, and some that are slow; a page has no say in that."""


def decoded(body: bytes, declared: str | None) -> str:
    """As the header says, else as the page says, else as it looks. What cannot be read is marked, never an error."""
    if body.startswith(codecs.BOM_UTF8):
        return body.decode("utf-8-sig", "replace")
    meta = DECLARED.search(body, 0, 4096)
    encoding = _encoding(declared) or _encoding(meta[1].decode() if meta else None)
    if encoding is not None:
        return body.decode(encoding, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("gb18030", "replace")


def plain_text(body: bytes, charset: str | None) -> tuple[str, str]:
    return "", _tidy(decoded(body, charset))


def page_text(body: bytes, charset: str | None) -> tuple[str, str]:
    """The title and the text of a page: a line for each block, without scripts, styles and comments."""
    source = decoded(body, charset)
    title, pieces, at = "", [], 0
    while tag := TAG.search(source, at):
        pieces.append(source[at : tag.start()])
        name = "!--" if tag[1] is None else tag[1].split(maxsplit=1)[0].rstrip("/").lower()
        closed = tag[0].endswith("/>")
        at, inside = (tag.end(), "") if closed else _past(source, tag.end(), name)
        title = title or (inside if name == "title" else "")
        pieces.append("" if INLINE.fullmatch(name) else "\n")
    pieces.append(source[at:])
    return " ".join(_plain(title).split()), _tidy(_plain("".join(pieces)))


def _tidy(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.replace("\0", "").splitlines())
    return "\n".join(line for line in lines if line)


def _past(source: str, at: int, name: str) -> tuple[int, str]:
    """Where reading goes on after a tag, and what was left out. What is never closed lasts to the end."""
    end = COMMENT_END if name == "!--" else ENDS.get(name)
    if end is None:
        return at, ""
    closed = end.search(source, at)
    return (closed.end(), source[at : closed.start()]) if closed else (len(source), "")


def _plain(text: str) -> str:
    return html.unescape(HUGE_REFERENCE.sub("", text))


def _encoding(name: str | None) -> str | None:
    try:
        known = codecs.lookup(name or "").name
    except (LookupError, ValueError):
        return None
    known = ENCODINGS.get(known, known)
    return known if READ_AS.fullmatch(known) else None
