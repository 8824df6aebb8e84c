"""What the documents say is so: their commands run, their Python works, nothing is left out."""

import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rollbook.app.main import COMMANDS
from rollbook.store import Settings

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]
DIGEST = f"sha256:{'ab' * 32}"


def blocks(language: str) -> list[str]:
    """Return the contents of all code blocks of README in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """Return the lines of all console blocks, in order, without what only remarks."""
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [line for line in lines if shlex.split(line, comments=True)]


def targets() -> set[str]:
    """Return the targets of the Makefile."""
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def environment() -> dict[str, str]:
    """Return the environment without what a user of Rollbook may have set."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ROLLBOOK")}


def test_every_make_command_is_a_target_of_the_makefile() -> None:
    named = {
        name
        for document in DOCUMENTS
        for name in re.findall(r"(?:^|`)make ([a-z]+)", document.read_text(), re.MULTILINE)
    }

    assert {"demo", "test"} <= named <= targets()


def test_the_commands_work_by_hand_in_order(tmp_path: Path) -> None:
    """Run as they stand, in a folder with the data and with this environment as `.venv`."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    by_hand = [line for line in commands() if not line.startswith("make ")]
    script = "\n".join(f"echo '#{number}'\n{line}" for number, line in enumerate(by_hand))

    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    printed = re.split(r"^#\d+\n", done.stdout, flags=re.MULTILINE)[1:]
    said = {line.split()[1]: text for line, text in zip(by_hand, printed, strict=False)}
    assert (done.stderr, done.returncode) == ("", 0)
    assert len(printed) == len(by_hand) >= 9
    assert said["init"] == f"book at {tmp_path / 'mybook'}\n"
    assert "24 rollouts arrived, 24 added" in said["import"]
    assert said["publish"] == "weight version 1 published\n"
    assert "bucket   completed" in said["query"]
    assert "evidence_missing" in said["assemble"]
    assert said["schema"].startswith("samples: ")
    assert (tmp_path / "mybook" / "samples" / "_delta_log").is_dir()


def row(number: int) -> dict[str, Any]:
    """Return a sample of 64 turns that may be trained on at once."""
    return {
        "sample_id": f"s{number}",
        "task_id": f"t{number}",
        "tenant": "acme",
        "task_type": "repair",
        "attempt": 0,
        "status": "completed",
        "reward": float(number % 2),
        "turns": 64,
        "finished_at": datetime.now(UTC),
        "weight_version": 1,
        "image_digest": DIGEST,
        "seed": number,
        "toolchain_version": "mine 1.0",
        "dependency_digest": DIGEST,
        "source": "README",
    }


def call(number: int) -> dict[str, Any]:
    """Return the one external call of a sample."""
    own = {"call_id": f"c{number}", "operation_id": f"o{number}", "sample_id": f"s{number}"}
    return own | {"tenant": "acme", "tool": "bash", "status": "ok"}


def test_the_python_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """4,096 turns complete a batch, so 150 samples of 64 turns make two, and 22 are left."""
    monkeypatch.chdir(tmp_path)
    trained: list[pa.RecordBatch] = []
    numbers = range(150)
    given: dict[str, Any] = {
        "samples": [row(number) for number in numbers],
        "trajectories": [{"sample_id": f"s{n}", "token_ids": [n, n + 1]} for n in numbers],
        "calls": [call(number) for number in numbers],
        "train": trained.append,
    }
    (text,) = blocks("python")

    exec(compile(text, "README.md", "exec"), given)  # noqa: S102

    rows = pa.Table.from_batches(trained)
    assert (rows.num_rows, sum(rows["turns"].to_pylist())) == (128, 2 * 4096)
    first_tokens = [tokens[0] for tokens in rows["token_ids"].to_pylist()]
    assert first_tokens == [int(seed) for seed in rows["seed"].to_pylist()]
    assert given["receipt"].added == 150
    states = given["book"].sql("states").to_pylist()
    assert {state["state"]: state["samples"] for state in states} == {"pending": 22, "trained": 128}


def test_the_settings_are_accepted_as_they_stand(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    path = tmp_path / "rollbook.toml"
    path.write_text(text)

    settings = Settings.read(path)

    assert all("#" in line for line in text.splitlines() if " = " in line)
    assert (settings.batch.turns, settings.groups.size) == (4096, 8)
    assert sum(settings.shares.configured.values()) == pytest.approx(1)


def test_the_demonstration_tells_the_whole_story(tmp_path: Path) -> None:
    """`make demo` runs this file; here it runs in an empty folder."""
    done = subprocess.run(
        [sys.executable, ROOT / "data" / "demo.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stderr, done.returncode) == ("", 0)
    steps = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("$ rollbook")]
    assert set(steps) == set(COMMANDS) - {"heartbeat", "release", "query", "schema", "maintain"}
    for says in (
        "12 rollouts arrived, 12 added",
        "24 rewards arrived, 24 added",
        "no batch: short by 40 of 40 turns (0 pending)",
        "short by 40 turns of 40; 135 turns in 23 samples await their reward since ",
        "batch train-00000002: 41 turns in 9 samples",
        "batch train-00000003: 46 turns in 7 samples",
        "the learner reads 9 samples",
        "batch train-00000003 trained: 7 samples",
        "rules held, no offence",
        "fairness, supply 1.3 ×, one cap: turns trained off the submitted mix",
        "4  pass ",
    ):
        assert says in done.stdout
    squeezed = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "discarded 2 samples 18 turns age_versions" in squeezed
    assert "trained – 16 87" in squeezed
    assert "state trained" in squeezed
    assert (tmp_path / "demo" / "rollbook.toml").is_file()
    assert (tmp_path / "demo" / "fairness.svg").read_text().startswith("<svg")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_explained_in_a_document(name: str) -> None:
    told = [path for path in DOCUMENTS if re.search(rf"rollbook {name}\b", path.read_text())]

    assert told


def test_every_command_that_a_document_names_is_there() -> None:
    named = {
        name
        for document in DOCUMENTS
        for name in re.findall(r"(?:^|`)rollbook ([a-z]+)", document.read_text(), re.MULTILINE)
    }

    assert named <= set(COMMANDS)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_that_a_document_links_to_is_there(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())

    assert all((document.parent / link).exists() for link in links)
