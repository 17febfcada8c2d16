import pytest

from headgate.settings import Settings
from headgate.settings.loading import judge
from headgate.settings.remarks import remarks
from headgate.settings.rules import is_inside

HEAD = "store: file:/state\nlake: /lake\n"


def settings(text: str) -> Settings:
    found = judge(text.encode(), "/srv", {})
    assert found.settings is not None, list(map(str, found.problems))
    return found.settings


def streams(**paths: str) -> str:
    lines = (
        f"  {name}: {{source: {{kind: files, path: {path}}}, event_time: {{json: $.at}}}}\n"
        for name, path in paths.items()
    )
    return HEAD + "streams:\n" + "".join(lines)


def said(text: str) -> str:
    (one,) = remarks(settings(text))
    return one


def test_plain_settings_call_for_no_remark() -> None:
    assert remarks(settings(streams(a="/in/a", b="/in/b", c="/in/ab"))) == []


def test_flags_that_cannot_roll_up_are_remarked() -> None:
    text = streams(a="/in").replace("}}\n", '}, folder: "{stream}/{yyyy}-{MM}-{dd}/{HH}"}\n')
    assert said(text).startswith("streams.a.folder: flags stay per stream")


def test_days_without_a_folder_are_remarked() -> None:
    text = streams(a="/in").replace("}}\n", '}, folder: "{yyyy}{MM}{dd}{HH}/{stream}"}\n')
    assert said(text).endswith("no day flags")


def test_more_shards_than_lanes_are_remarked() -> None:
    text = streams(a="/in").replace("}}\n", "}, shards: 4}\n")
    assert "at least 3 of them will never have anything to do" in said(text)
    assert remarks(settings(text.replace("path:", "lanes: 4, path:"))) == []


@pytest.mark.parametrize("other", ["/in", "/in/deeper", "/"])
def test_two_streams_that_read_the_same_folder_are_remarked(other: str) -> None:
    found = remarks(settings(streams(a="/in", b=other)))
    assert any(one.startswith("streams.b.source.path: streams.a reads there, too") for one in found)
    assert not any("takes files away" in one for one in found)


def test_a_stream_that_may_delete_what_another_reads_is_remarked() -> None:
    """Their patterns may tell them apart; who reads everything is refused."""
    text = streams(a="/in", b="/in").replace("path: /in", "path: /in, include: ['*a*']")
    assert "one takes files away" in said(text.replace("path:", "after_read: delete, path:", 1))


def test_a_source_inside_the_lake_is_remarked() -> None:
    assert "is inside the lake" in said(streams(a="/lake/in"))


def test_a_lake_inside_a_source_is_remarked() -> None:
    text = streams(a="/data").replace("/lake", "/data/lake")
    assert "would be read again" in said(text)


def test_done_files_inside_the_lake_are_remarked() -> None:
    text = streams(a="/in").replace("path:", "after_read: move, move_to: /lake/done, path:")
    assert said(text).startswith("streams.a.source.move_to: is inside the lake")


def test_a_store_inside_lake_or_source_is_remarked() -> None:
    assert "inside the lake" in said(streams(a="/in").replace("file:/state", "file:/lake/state"))
    assert "streams.a reads" in said(streams(a="/in").replace("file:/state", "file:/in/state"))


def test_a_store_in_memory_is_remarked() -> None:
    assert "gone when the process ends" in said(streams(a="/in").replace("file:/state", "memory:x"))


def test_no_stream_at_all_is_remarked() -> None:
    assert "nothing is landed" in said(HEAD)


def test_inside_is_judged_by_whole_names() -> None:
    assert is_inside("/a/b", "/a")
    assert is_inside("/a", "/a")
    assert is_inside("/a", "/")
    assert not is_inside("/ab", "/a")
