"""Everything users read exists in every language, with the same values in it."""

import string
from pathlib import Path

import pytest

import moot
from moot.shared.domain.messages import LOCALES, Catalogue, Message, fill

SOURCE = Path(moot.__file__).parent
FOLDERS = sorted(path.parent for path in SOURCE.rglob("zh-CN.toml"))


def placeholders(text: str) -> set[str]:
    return {name.split("[")[0].split(".")[0] for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: str(f.relative_to(SOURCE)))
def test_all_languages_have_the_same_texts_with_the_same_values(folder):
    catalogue = Catalogue(folder)
    texts = {locale: catalogue.texts(locale) for locale in LOCALES}
    chinese = texts["zh-CN"]
    for other in texts.values():
        assert set(chinese) == set(other)
        for key, text in chinese.items():
            assert placeholders(text) == placeholders(other[key]), key


def test_there_are_catalogues_to_check():
    assert len(FOLDERS) >= 6


@pytest.fixture
def say(tmp_path) -> Catalogue:
    (tmp_path / "zh-CN.toml").write_text(
        'hello = "{who}，你好"\nname = "世界"\n[a]\nb = "{x:.1f}%"\n', "utf-8"
    )
    (tmp_path / "en-US.toml").write_text(
        'hello = "Hello, {who}"\nname = "world"\n[a]\nb = "{x:.1f} %"\n', "utf-8"
    )
    return Catalogue(tmp_path)


@pytest.mark.parametrize(
    ("n", "told"), [(0, "0 days, are"), (1, "1 day, is"), ("1", "1 day, is"), (2, "2 days, are")]
)
def test_a_word_follows_how_many_there_are(n, told):
    assert fill("{n} {n:day|days}, {n:is|are}", {"n": n}) == told
    assert fill("{n}|{n:>3}", {"n": n}) == f"{n}|{n:>3}"


def test_a_catalogue_of_several_folders_says_what_each_of_them_says(say, tmp_path):
    more = tmp_path / "more"
    more.mkdir()
    for locale in LOCALES:
        (more / f"{locale}.toml").write_text('a.c = "c"\n', "utf-8")
    said = Catalogue(tmp_path, more)
    assert [said(key, x=1).in_locale("en-US") for key in ("name", "a.b", "a.c")] == ["world", "1.0 %", "c"]


def test_a_message_waits_for_its_reader(say):
    greeting = say("hello", who=say("name"))
    assert isinstance(greeting, Message)
    assert [greeting.in_locale(locale) for locale in LOCALES] == ["世界，你好", "Hello, world"]
    assert str(greeting) == "Hello, world"


def test_lists_are_joined_as_the_language_does_it(say):
    greeting = say("hello", who=["A", say("name")])
    assert [greeting.in_locale(locale) for locale in LOCALES] == ["A、世界，你好", "Hello, A, world"]


def test_tables_become_dotted_keys_and_formats_apply(say):
    assert say("a.b", x=1.26).in_locale("zh-CN") == "1.3%"
