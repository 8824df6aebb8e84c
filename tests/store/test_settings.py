"""Settings: one file, every fault named, one fingerprint for equal settings."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rollbook.store.book import Book
from rollbook.store.settings import Settings
from rollbook.store.settings_file import DEFAULTS
from rollbook.validators.errors import SettingsInvalid

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a settings file."""

    def written(text: str) -> Path:
        path = tmp_path / "rollbook.toml"
        path.write_text(text)
        return path

    return written


def test_what_the_file_leaves_out_has_its_default(write: Write) -> None:
    settings = Settings.read(write("[batch]\nturns = 7\n"))

    assert settings.batch.turns == 7
    assert settings.batch.lease_seconds == Settings().batch.lease_seconds
    assert settings.discard == Settings().discard


def test_the_file_of_a_new_book_states_every_default_as_it_is(write: Write) -> None:
    stated = "\n".join(
        line.removeprefix("# ")
        for line in DEFAULTS.splitlines()
        if line.startswith("[") or (line.startswith("# ") and " = " in line)
    )

    assert Settings.read(write(stated)) == Settings()


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("[batch]\nturns = 0", "batch.turns", "0"),
        ("[batch]\nturns = 1.5", "batch.turns", "1.5"),
        ("[batch]\nturns = '100'", "batch.turns", "'100'"),
        ("[batch]\nlease_seconds = 0", "batch.lease_seconds", "0"),
        ("[batch]\nlease_seconds = inf", "batch.lease_seconds", "inf"),
        ("[batch]\nlease_second = 5", "batch.lease_second", "5"),
        ("[discard]\nmax_age_versions = -1", "discard.max_age_versions", "-1"),
        ("[discard]\nreason_order = ['age']", "discard.reason_order", "'age'"),
        (
            "[duration_class.long]\nmax_wait_seconds = -2",
            "duration_class.long.max_wait_seconds",
            "-2",
        ),
        ("[storage]\nkeep_days = 0", "storage.keep_days", "0"),
        ("[storage]\ntarget_file_mb = true", "storage.target_file_mb", "True"),
        ("[stroage]\nkeep_days = 1", "stroage", "{'keep_days': 1}"),
    ],
)
def test_a_fault_is_told_by_file_field_and_value(
    write: Write, text: str, field: str, value: str
) -> None:
    path = write(text)

    with pytest.raises(SettingsInvalid) as caught:
        Settings.read(path)

    assert str(caught.value).startswith(f"{path}: ")
    assert field in str(caught.value)
    assert f" is {value}: " in str(caught.value)


def test_all_faults_are_told_at_once(write: Write) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        Settings.read(write("[batch]\nturns = 0\nlease_seconds = -1\n[storage]\nkeep_days = 0\n"))

    for field in ("batch.turns", "batch.lease_seconds", "storage.keep_days"):
        assert field in str(caught.value)


@pytest.mark.parametrize("text", ["[batch", "turns = ", "\x00", "[a]\n[a]"])
def test_a_file_that_is_not_toml_is_told_by_its_name(write: Write, text: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"rollbook\.toml: "):
        Settings.read(write(text))


def test_a_file_that_is_not_there_or_not_text_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")

    for name in ("absent.toml", "binary.toml"):
        with pytest.raises(SettingsInvalid, match=name):
            Settings.read(tmp_path / name)


def test_equal_settings_have_one_fingerprint_however_they_were_written(write: Write) -> None:
    left = Settings.read(write("[batch]\nturns = 7\n[storage]\nkeep_days = 3\n"))
    right = Settings.read(write("storage = {keep_days = 3}\nbatch = {turns = 7}\n"))

    assert left.fingerprint == right.fingerprint
    assert left.fingerprint != Settings().fingerprint
    assert Settings.model_validate_json(left.document) == left


def test_a_book_is_opened_with_the_settings_of_its_own_file(book: Book, root: Path) -> None:
    """A learner in Python and an operator at the command line assemble by the same rules."""
    (root / "rollbook.toml").write_text("[batch]\nturns = 77\n")

    assert Book.open(root).settings.batch.turns == 77
    assert Book.open(root, Settings()).settings.batch.turns == 4096

    (root / "rollbook.toml").write_text("[batch]\nturns = 0\n")
    with pytest.raises(SettingsInvalid, match="turns is 0"):
        Book.open(root)
