"""`rollbook init` and the settings file that it leaves and that every command reads."""

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollbook.store.settings import Settings

if TYPE_CHECKING:
    from tests.app.conftest import Call

TABLES = {
    "calls", "configs", "dispositions", "heartbeats", "incidents", "quarantine", "rewards",
    "samples", "trajectories", "weights",
}  # fmt: skip
# Broken settings → what the error says, beside the file.
BROKEN = [
    ("[batch]\nturns = 0", "batch.turns is 0: Input should be greater than or equal to 1"),
    ("[batch]\nturns = '40'", "batch.turns is '40': Input should be a valid integer"),
    ("[batch]\nturns = true", "batch.turns is True: Input should be a valid integer"),
    ("[batch]\nlease_seconds = nan", "batch.lease_seconds is nan"),
    ("[batch]\ntruns = 1", "batch.truns is 1: there is no such setting"),
    ("[bacth]\nturns = 1", "bacth is {'turns': 1}: there is no such setting"),
    ("[storage]\nkeep_days = 0", "storage.keep_days is 0"),
    ("[discard]\nreason_order = ['age']", "discard.reason_order"),
    (
        "[discard]\nreason_order = ['age_versions', 'age_versions']",
        "discard: reason_order names age_versions twice: name each once",
    ),
    ("[alarms]\nhook_command = 'notify'", "alarms.hook_command is 'notify': it must be a list"),
    ("[groups]\nmin_members = 3", ": groups: min_members is 3 but size is not set"),
    (
        "[duration_class.long]\nsoft_age_versions = 9",
        ".toml: duration_class.long.soft_age_versions 9 is above discard.max_age_versions 4",
    ),
    ("[batch\n", "line 1"),
    ("turns", "Expected '='"),
]


def files(folder: Path) -> dict[str, bytes]:
    """Return path → content of all files below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def settings_in(lines: list[str], *marks: str) -> dict[str, Any]:
    """Return the settings in the lines of a file that begin with one of these marks."""
    bare = [line.lstrip("#").lstrip() for line in lines if line.startswith(marks)]
    return tomllib.loads("\n".join(line for line in bare if re.match(r"\w+ = |\[", line)))


# -- creating ------------------------------------------------------------------------------------


def test_a_new_book_has_all_tables_and_a_settings_file_of_defaults(
    call: "Call", tmp_path: Path
) -> None:
    path = tmp_path / "deep" / "book"

    ran = call("init", "--book", path)

    assert ran.code == 0
    assert ran.out == f"book at {path}\n"
    assert {folder.name for folder in path.iterdir() if folder.is_dir()} == TABLES
    assert Settings.read(path / "rollbook.toml") == Settings()


def test_every_setting_of_the_file_shows_its_default(call: "Call", book: Path) -> None:
    """Each line without its hash is the setting as it is; one with two has no default."""
    lines = (book / "rollbook.toml").read_text().splitlines()

    told = settings_in(lines, "[", "# ")
    everything = settings_in(lines, "[", "# ", "## ")

    assert Settings.model_validate(told) == Settings()
    assert {"duration_class", "task_type"} <= set(everything)
    Settings.model_validate(everything)
    defaults = Settings().model_dump(mode="json")
    for name in defaults.keys() - {"duration_class", "task_type"}:
        stated = {key for key, value in defaults[name].items() if value is not None}
        assert set(told[name]) == stated
        assert set(everything[name]) == set(defaults[name])


def test_a_relative_book_lies_in_the_working_directory(
    call: "Call", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    ran = call("init", "--book", "here/")

    assert ran.out == f"book at {tmp_path / 'here'}\n"
    assert (tmp_path / "here" / "samples").is_dir()


def test_creating_again_changes_nothing(call: "Call", graded: Path) -> None:
    before = files(graded)

    ran = call("init")

    assert ran.code == 0
    assert files(graded) == before


def test_settings_that_are_given_become_those_of_the_book(call: "Call", tmp_path: Path) -> None:
    path, settings = tmp_path / "book", tmp_path / "mine.toml"
    settings.write_text("[batch]\nturns = 7\n")

    call("init", "--book", path, "--settings", settings)

    assert (path / "rollbook.toml").read_text() == settings.read_text()
    assert call("assemble", "--book", path, "--json").document["target_turns"] == 7


def test_json_names_the_book_and_its_settings(call: "Call", tmp_path: Path) -> None:
    ran = call("init", "--book", tmp_path / "book", "--json")

    assert ran.document == {
        "book": str(tmp_path / "book"),
        "settings": Settings().fingerprint,
    }


@pytest.mark.parametrize("broken", ["file/book", "\0"])
def test_a_place_that_can_hold_no_book_is_named_in_one_line(
    call: "Call", tmp_path: Path, broken: str
) -> None:
    (tmp_path / "file").write_text("no folder")

    ran = call("init", "--book", f"{tmp_path}/{broken}")

    assert ran.code == 1
    assert ran.err.startswith("rollbook: ")
    assert len(ran.err.splitlines()) == 1
    assert str(tmp_path) in ran.err


# -- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "says"), BROKEN)
def test_a_broken_settings_file_is_named_with_field_value_and_bound(
    call: "Call", tmp_path: Path, text: str, says: str
) -> None:
    settings = tmp_path / "mine.toml"
    settings.write_text(text)

    ran = call("init", "--book", tmp_path / "book", "--settings", settings)

    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.startswith(f"rollbook: {settings}: ")
    assert says in ran.err
    assert not (tmp_path / "book").exists()


def test_every_fault_of_a_settings_file_is_told_at_once(call: "Call", tmp_path: Path) -> None:
    settings = tmp_path / "mine.toml"
    settings.write_text("[batch]\nturns = 0\nlease_seconds = -1\n[storage]\nkeep_days = 0\n")

    ran = call("init", "--book", tmp_path / "book", "--settings", settings)

    assert all(
        field in ran.err for field in ("batch.turns", "batch.lease_seconds", "storage.keep_days")
    )


def test_settings_that_are_no_text_or_not_there_are_named(call: "Call", tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")

    undecodable = call("init", "--book", tmp_path / "b", "--settings", tmp_path / "bytes.toml")
    absent = call("init", "--book", tmp_path / "b", "--settings", tmp_path / "absent.toml")
    folder = call("init", "--book", tmp_path / "b", "--settings", tmp_path)

    assert (undecodable.code, absent.code, folder.code) == (1, 1, 2)
    assert "bytes.toml" in undecodable.err
    assert "absent.toml" in absent.err
    assert "No such file" in absent.err
    assert "is a directory" in folder.err


@pytest.mark.parametrize(
    "words",
    [
        ["assemble"],
        ["sql", "states"],
        ["query", "SELECT 1"],
        ["publish", "1"],
        ["maintain"],
        ["reward", "s", "1"],
        ["import", "x.json", "--tenant=a"],
    ],
)
def test_no_command_runs_with_broken_settings_in_the_book(
    call: "Call", book: Path, words: list[str]
) -> None:
    (book / "rollbook.toml").write_text("[batch]\nturns = 0\n")

    ran = call(*words)

    assert ran.code == 1
    assert ran.err.startswith(f"rollbook: {book / 'rollbook.toml'}: batch.turns is 0")


def test_settings_are_those_named_else_those_of_the_environment_else_those_of_the_book(
    call: "Call", book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def target(*words: str) -> int:
        return int(call("assemble", "--json", *words).document["target_turns"])

    for turns in (1, 2):
        (tmp_path / f"{turns}.toml").write_text(f"[batch]\nturns = {turns}\n")

    (book / "rollbook.toml").unlink()
    none = target()
    (book / "rollbook.toml").write_text("[batch]\nturns = 3\n")
    own = target()
    monkeypatch.setenv("ROLLBOOK_SETTINGS", str(tmp_path / "2.toml"))
    environment = target()
    named = target("--settings", str(tmp_path / "1.toml"))

    assert (none, own, environment, named) == (4096, 3, 2, 1)
