"""The acceptance map: no id is invented, none is listed twice, and the page shows what the tests claim."""

import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.acceptance.__main__ import ROOT, main
from tests.acceptance.marks import Claim, UnreadableMark, claims_below
from tests.acceptance.page import Group, read_groups, render, unknown

LIST = '[A9]\ntitle = "Tea"\n[A9.ids]\nA9-02 = "It is hot"\nA9-01 = "There is tea"\n'
IDS = "tests/acceptance/ids.toml"
PAGE = "docs/acceptance.md"
claims_of = cache(claims_below)


class TestTheProject:
    def test_no_test_claims_an_unknown_id(self) -> None:
        assert unknown(read_groups(ROOT / IDS), claims_of(ROOT)) == []

    def test_the_page_is_current(self) -> None:
        groups, page = read_groups(ROOT / IDS), (ROOT / PAGE).read_text(encoding="utf-8")
        assert render(groups, claims_of(ROOT)) == page, "run make acceptance"

    def test_the_list_has_no_duplicate(self) -> None:
        groups = read_groups(ROOT / IDS)
        phrases = [phrase for group in groups for phrase in group.phrases.values()]
        assert len(set(phrases)) == len(phrases)

    def test_every_id_stands_in_its_own_group_and_none_is_left_out(self) -> None:
        counted_groups = [group for group in read_groups(ROOT / IDS) if group.name != "W"]
        for group in counted_groups:
            counted = [f"{group.name}-{n:02}" for n in range(1, len(group.phrases) + 1)]
            assert list(group.phrases) == counted

    @pytest.mark.accepts("A1N-33")
    def test_every_scenario_has_a_test(self) -> None:
        scenarios = next(group for group in read_groups(ROOT / IDS) if group.name == "A1S")
        claimed = {claim.accepted for claim in claims_of(ROOT)}
        assert sorted(set(scenarios.phrases) - claimed) == []

    def test_nothing_required_is_without_a_test(self) -> None:
        listed = {accepted for group in read_groups(ROOT / IDS) for accepted in group.phrases}
        assert sorted(listed - {claim.accepted for claim in claims_of(ROOT)}) == []


class TestReadingMarks:
    def test_of_functions_plain_and_async(self, tmp_path: Path) -> None:
        write_tests(
            tmp_path,
            "@pytest.mark.accepts('A9-01', 'A9-02')",
            "def test_pours(): ...",
            "@mark.accepts('A9-02')",
            "async def test_steams(): ...",
            "def test_of_something_else(): ...",
        )
        assert claims_below(tmp_path) == [
            Claim("A9-01", "tests/test_tea.py::test_pours"),
            Claim("A9-02", "tests/test_tea.py::test_pours"),
            Claim("A9-02", "tests/test_tea.py::test_steams"),
        ]

    def test_of_classes_and_the_methods_in_them(self, tmp_path: Path) -> None:
        write_tests(
            tmp_path,
            "@pytest.mark.accepts('A9-01')",
            "class TestTea:",
            "    pytestmark = pytest.mark.accepts('A9-02')",
            "    class TestGreen:",
            "        @pytest.mark.accepts('A9-03')",
            "        def test_pours(self): ...",
        )
        assert claims_below(tmp_path) == [
            Claim("A9-01", "tests/test_tea.py::TestTea"),
            Claim("A9-02", "tests/test_tea.py::TestTea"),
            Claim("A9-03", "tests/test_tea.py::TestTea::TestGreen::test_pours"),
        ]

    @pytest.mark.parametrize("value", ["pytest.mark.accepts('A9-01')", "[mark.slow, mark.accepts('A9-01')]"])
    def test_of_whole_modules(self, tmp_path: Path, value: str) -> None:
        write_tests(tmp_path, f"pytestmark = {value}", "def test_pours(): ...")
        assert claims_below(tmp_path) == [Claim("A9-01", "tests/test_tea.py")]

    def test_of_parametrised_tests_and_their_cases_once(self, tmp_path: Path) -> None:
        write_tests(
            tmp_path,
            "@pytest.mark.accepts('A9-01')",
            "@pytest.mark.parametrize('pot', [1, pytest.param(2, marks=pytest.mark.accepts('A9-02'))])",
            "@pytest.mark.parametrize('cup', [1, pytest.param(2, marks=pytest.mark.accepts('A9-01'))])",
            "def test_pours(pot, cup): ...",
        )
        assert claims_below(tmp_path) == [
            Claim("A9-01", "tests/test_tea.py::test_pours"),
            Claim("A9-02", "tests/test_tea.py::test_pours"),
        ]

    def test_in_subfolders_but_not_outside_test_files(self, tmp_path: Path) -> None:
        write_tests(
            tmp_path, "@pytest.mark.accepts('A9-01')", "def test_pours(): ...", name="green/test_tea.py"
        )
        write_tests(tmp_path, "@pytest.mark.accepts('A9-01')", "def test_pours(): ...", name="green/tea.py")
        assert claims_below(tmp_path) == [Claim("A9-01", "tests/green/test_tea.py::test_pours")]

    @pytest.mark.parametrize(
        "lines",
        [
            ("@pytest.mark.accepts('A9-01')", "def pours(): ..."),
            ("CASES = [pytest.param(1, marks=pytest.mark.accepts('A9-01'))]",),
            ("accepts = pytest.mark.accepts",),
        ],
    )
    def test_a_mark_that_belongs_to_no_test_is_refused(self, tmp_path: Path, lines: tuple[str, ...]) -> None:
        write_tests(tmp_path, *lines)
        with pytest.raises(UnreadableMark, match=r"tests/test_tea\.py:1: put accepts\(\.\.\.\) on a test"):
            claims_below(tmp_path)

    @pytest.mark.parametrize("ids", ["", "*IDS", "'A9-01', SECOND", "9"])
    def test_ids_that_are_not_literal_strings_are_refused(self, tmp_path: Path, ids: str) -> None:
        write_tests(tmp_path, f"@pytest.mark.accepts({ids})", "def test_pours(): ...")
        with pytest.raises(
            UnreadableMark, match=r"tests/test_tea\.py:1: accepts\(\.\.\.\) takes ids as literal"
        ):
            claims_below(tmp_path)


class TestThePage:
    def test_shows_each_group_with_ids_and_tests_in_order(self) -> None:
        groups = [Group("A9", "Tea", {"A9-02": "It is hot", "A9-01": "There is tea"})]
        claims = [Claim("A9-01", "tests/test_b.py::test_pours"), Claim("A9-01", "tests/test_a.py")]
        assert render(groups, claims).partition("## ")[2].splitlines() == [
            "A9 · Tea",
            "",
            "| id | what | tests |",
            "|---|---|---|",
            "| A9-01 | There is tea | [`tests/test_a.py`](../tests/test_a.py)"
            "<br>[`tests/test_b.py::test_pours`](../tests/test_b.py) |",
            "| A9-02 | It is hot | — |",
        ]
        assert "**1 of 2 proven**" in render(groups, claims)

    def test_an_id_claimed_but_not_listed_is_named_with_its_test(self) -> None:
        groups = [Group("A9", "Tea", {"A9-01": "There is tea"})]
        claims = [Claim("A9-01", "tests/test_a.py"), Claim("A9-07", "tests/test_a.py::test_pours")]
        assert unknown(groups, claims) == ["tests/test_a.py::test_pours claims A9-07, which is not listed"]

    def test_an_id_listed_twice_cannot_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "ids.toml").write_text(LIST + 'A9-01 = "Again"\n')
        with pytest.raises(tomllib.TOMLDecodeError):
            read_groups(tmp_path / "ids.toml")


class TestTheCommand:
    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        (tmp_path / "docs").mkdir()
        (tmp_path / IDS).parent.mkdir(parents=True)
        (tmp_path / IDS).write_text(LIST)
        write_tests(tmp_path, "@pytest.mark.accepts('A9-01')", "def test_pours(): ...")
        return tmp_path

    def test_writes_a_page_that_then_is_current(self, tree: Path) -> None:
        main(tree, [])
        main(tree, ["--check"])
        assert "**1 of 2 proven**" in (tree / PAGE).read_text(encoding="utf-8")

    def test_check_refuses_a_page_that_is_missing_and_writes_none(self, tree: Path) -> None:
        with pytest.raises(SystemExit, match="run make acceptance"):
            main(tree, ["--check"])
        assert not (tree / PAGE).exists()

    def test_check_refuses_a_page_older_than_the_tests(self, tree: Path) -> None:
        main(tree, [])
        write_tests(tree, "@pytest.mark.accepts('A9-02')", "def test_pours(): ...")
        with pytest.raises(SystemExit, match="run make acceptance"):
            main(tree, ["--check"])

    def test_nothing_is_written_while_an_id_is_unknown(self, tree: Path) -> None:
        write_tests(tree, "@pytest.mark.accepts('A9-07')", "def test_pours(): ...")
        with pytest.raises(SystemExit, match="test_pours claims A9-07"):
            main(tree, [])
        assert not (tree / PAGE).exists()


def write_tests(root: Path, *lines: str, name: str = "test_tea.py") -> None:
    file = root / "tests" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
