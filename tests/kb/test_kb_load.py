from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import UsageError
from rocmend.kb.entry import Entry
from rocmend.kb.load import MAX_FILE_BYTES, EntryFormatError, Knowledge, load_entries, parse_entry

Write = Callable[..., Path]

HEAD = '+++\nid = "x"\ntitle = "T"\nkind = "issue"\nstatus = "active"\nreviewed = 2026-01-01\nreview_by = 2027-01-01\n'
SOURCE = '\n[[source]]\ntitle = "S"\nurl = "https://example.org"\n'


def test_entries_are_found_by_walking_the_folders(write_entry: Write, tmp_path: Path) -> None:
    write_entry("b")
    write_entry("a", topic="rocm")
    (tmp_path / "kernel" / "notes.txt").write_text("no entry")
    (tmp_path / "kernel" / ".hidden.md").write_text("no entry")
    knowledge = load_entries(tmp_path, builtin=False)
    assert list(knowledge.entries) == ["a", "b"]
    assert knowledge.problems == ()
    entry = knowledge.get("a")
    assert (entry.topic, entry.body, entry.source[0].title) == ("rocm", "Because.", "A document")
    assert knowledge.paths["a"] == str(tmp_path / "rocm" / "a.md")


def test_an_extra_directory_is_named_by_the_environment(
    write_entry: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_entry("mine-and-nobody-elses")
    monkeypatch.setenv("ROCMEND_KB", str(tmp_path))
    knowledge = load_entries()
    assert "mine-and-nobody-elses" in knowledge.entries
    assert len(knowledge.entries) > 1
    monkeypatch.setenv("ROCMEND_KB", str(tmp_path / "absent"))
    assert "not a directory" in load_entries().problems[0].reason


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("id = 1\n", 1, "first line is not +++"),
        ("", 1, "first line is not +++"),
        ("+++\nid = 'x'\n", 1, "no closing +++"),
        ('+++\nid = "x"\ntitle = = 1\n+++\n', 3, "not TOML"),
        ('+++\nid = "x"\nid = "y"\n+++\n', 3, "not TOML"),
        ("+++\nid = [" + "[" * 5000 + "\n+++\n", 2, "nests deeper"),
        ('+++\nid = "x"\n+++\n', 2, "missing required field `title`"),
        (HEAD.replace('"issue"', '"rumour"') + SOURCE + "+++\n", 4, "Invalid enum value 'rumour'"),
        (HEAD + 'colour = "red"\n' + SOURCE + "+++\n", 8, "unknown field `colour`"),
        (HEAD + 'body = "here"\n' + SOURCE + "+++\n", 8, "'body' is not written"),
        (HEAD + SOURCE + 'link = "x"\n+++\n', 12, "source[0]: unknown field `link`"),
        (HEAD + SOURCE + '[[remedy]]\ntext = "x"\n[[remedy]]\ntext = "y"\nrisks = "low"\n+++\n', 16, "remedy[1]"),
        (HEAD + SOURCE + '[[effect]]\nwhat = "x"\nbasis = "guessed"\n+++\n', 14, "Invalid enum value 'guessed'"),
        (HEAD + SOURCE + "[scope]\ngfx = [1]\n+++\n", 13, "Expected `str`"),
        (HEAD.replace("2027-01-01", '"2027-99-99"') + SOURCE + "+++\n", 7, "Invalid"),
    ],
)
def test_a_file_that_is_no_entry_is_listed_and_the_others_load(
    text: str, line: int, reason: str, write_entry: Write, tmp_path: Path
) -> None:
    write_entry("good")
    path = write_entry("bad", text)
    knowledge = load_entries(tmp_path, builtin=False)
    assert list(knowledge.entries) == ["good"]
    (problem,) = knowledge.problems
    assert problem.path == str(path)
    assert problem.line == line
    assert reason in problem.reason
    assert str(path) in str(problem)


def test_bytes_that_are_no_text_are_listed(write_entry: Write, tmp_path: Path) -> None:
    write_entry("bad").write_bytes(b"+++\nid = 'a'\n\xff\xfe\n")
    write_entry("large").write_bytes(b"+" * (MAX_FILE_BYTES + 1))
    write_entry("gone").unlink()
    (tmp_path / "kernel" / "gone.md").symlink_to(tmp_path / "nowhere")
    (tmp_path / "kernel" / "folder.md").mkdir()
    reasons = {Path(problem.path).stem: problem for problem in load_entries(tmp_path, builtin=False).problems}
    assert reasons["bad"].line == 3
    assert "larger than" in reasons["large"].reason
    assert "No such file" in reasons["gone"].reason
    assert "directory" in reasons["folder"].reason


def test_a_duplicate_id_is_an_error(write_entry: Write, tmp_path: Path) -> None:
    first = write_entry("same")
    second = write_entry("same", topic="rocm")
    knowledge = load_entries(tmp_path, builtin=False)
    assert knowledge.paths == {"same": str(first)}
    (problem,) = knowledge.problems
    assert problem.path == str(second)
    assert str(first) in problem.reason


def test_an_unknown_id_names_its_neighbours(
    knowledge_of: Callable[..., Knowledge], entry_of: Callable[..., Entry]
) -> None:
    knowledge = knowledge_of(entry_of(id="cwsr-too-small"), entry_of(id="sdma-hang"))
    with pytest.raises(UsageError, match="cwsr-too-small") as caught:
        knowledge.get("cwsr-to-small")
    assert "sdma-hang" not in caught.value.next_step
    with pytest.raises(UsageError, match="kb search"):
        knowledge.get("zzzz")


def test_line_endings_and_fences_in_the_body_are_kept_apart() -> None:
    entry = parse_entry((HEAD + SOURCE + "+++\n\nFirst.\n\n+++\n\nSecond.\n").replace("\n", "\r\n"), topic="t")
    assert entry.body == "First.\n\n+++\n\nSecond."


@given(st.text(max_size=300))
def test_any_text_is_an_entry_or_refused(text: str) -> None:
    for candidate in (text, f"+++\n{text}\n+++\n", f"{HEAD}{text}{SOURCE}+++\n"):
        try:
            entry = parse_entry(candidate, topic="t")
        except EntryFormatError as error:
            refusal = error
        else:
            assert entry.topic == "t"
            continue
        assert refusal.line >= 0
        assert refusal.reason
