"""What a tool does is told from its name, its schema and its description; what is not known counts as a change."""

from typing import Any

import pytest

from moot.modules.governance.application.tool_knowledge import deed, sink_kind, traits
from moot.modules.governance.domain.conditions import ToolProfile


def schema(name: str, description: str = "") -> dict[str, Any]:
    return {"name": name, "description": description, "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    "name",
    [
        "get_order_status",
        "listChannels",
        "search_hotels",
        "read-inbox",
        "calendar.find_events",
        "calculate",
        "查询持仓",
    ],
)
def test_a_tool_that_only_looks_has_no_side_effects(name: str) -> None:
    assert deed(name).side_effects is False


@pytest.mark.parametrize(
    "name",
    [
        "sendMessage",
        "post_page",
        "mcp__tracker__create_issue",
        "file.delete",
        "reserve_room",
        "return_order",
        "发送邮件",
    ],
)
def test_a_tool_that_does_something_has_side_effects(name: str) -> None:
    assert deed(name).side_effects is True


def test_a_tool_nothing_tells_of_is_taken_to_change_something() -> None:
    assert deed("frobnicate").side_effects is True
    assert deed("frobnicate", "Returns the weather of a city.").side_effects is False


def test_a_name_that_reads_does_not_hide_what_the_description_or_its_second_half_does() -> None:
    assert deed("check_inbox", "Deletes all mails that are read.").side_effects is True
    assert deed("get_or_create_user").side_effects is True


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("list_files_delete", {"destroy"}),
        ("listFilesDelete", {"destroy"}),
        ("files.list-then-purge", {"destroy"}),
        ("get_user_remove", {"destroy", "change"}),
        ("read_inbox_forward", {"send"}),
        ("list_hotels_book", {"make"}),
        ("search_and_destroy", {"destroy"}),
        ("update_users_delete", {"change", "destroy"}),
        ("查询并删除文件", {"destroy"}),
        ("human_delete_files", {"destroy"}),
    ],
)
def test_every_verb_of_a_name_counts_wherever_it_stands(name: str, changes: set[str]) -> None:
    assert (deed(name).changes, deed(name).side_effects) == (changes, True)


@pytest.mark.parametrize(
    "name",
    [
        "get_user_email",
        "find_user_id_by_email",
        "list_deleted_files",
        "get_transfer_status",
        "get_share_price",
        "check_return_policy",
        "get_scheduled_transactions",
        "列出已删除文件",
        "查询转账记录",
    ],
)
def test_a_word_that_names_a_thing_or_tells_of_the_past_is_no_deed(name: str) -> None:
    assert deed(name).side_effects is False


def test_handing_over_to_a_person_changes_nothing() -> None:
    assert deed("transfer_to_human_agent").side_effects is False
    assert deed("transfer_funds_to_agent").side_effects is True


@pytest.mark.parametrize(
    ("argument", "kind"),
    [
        ("recipients", "receiver"),
        ("channel_id", "receiver"),
        ("userEmail", "receiver"),
        ("url", "receiver"),
        ("email_id", "thing"),
        ("new_password", "secret"),
        ("amount", "amount"),
        ("zip_code", "place"),
        ("order_id", "thing"),
        ("shell_command", "command"),
        ("body", None),
        ("title", None),
        ("start_time", None),
        ("收款人", "receiver"),
    ],
)
def test_the_name_of_an_argument_tells_what_it_decides(argument: str, kind: str | None) -> None:
    assert sink_kind(argument) == kind


def test_a_schema_tells_of_a_tool_in_either_shape() -> None:
    plain = schema("guestbook", "Invites a guest.")
    for tools in ([plain], [{"type": "function", "function": plain}]):
        known = traits("guestbook", None, tools)
        assert known is not None
        assert (known.does.changes, known.side_effects, known.is_guess) == ({"make"}, True, False)


def test_what_is_registered_stands_and_the_rest_is_told_from_the_name() -> None:
    registered = ToolProfile(name="get_report", side_effects=True, sinks=("text",))
    known, named = traits("get_report", registered), traits("get_report", None)
    assert known is not None and named is not None
    assert (known.side_effects, known.sinks, known.does) == (True, ("text",), named.does)
    assert (named.side_effects, named.sinks) == (False, None)


def test_a_tool_that_its_agent_does_not_have_is_unknown() -> None:
    assert traits("wipe_disk", None, [schema("read_disk")]) is None
    assert traits("read_disk", None) is not None
