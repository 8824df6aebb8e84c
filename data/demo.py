"""The main job, start to end, on the example recordings: what `make demo` runs.

Trajectories that mini-swe-agent wrote become samples; two weight versions are published,
rewards are settled, batches are cut by turns, read through Arrow and acknowledged; a third
weight version makes the rest of the first one's samples too old; `why` says what the next batch
lacks; then the ledgers are shown, one sample is traced to where it came from, the book is
audited and judged, and a simulation compares what is trained under three orders.
"""

import csv
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

HERE = Path(os.path.relpath(Path(__file__).parent))
BOOK = Path("demo")
RUNS = HERE / "recordings" / "mini-swe-agent"
ROLLBOOK = Path(sys.executable).with_name("rollbook")


def rollbook(*words: str) -> None:
    """Run a command as a user would, and show it."""
    print(f"\n$ rollbook {shlex.join(words)}", flush=True)
    done = subprocess.run([str(ROLLBOOK), *words], check=False)  # noqa: S603
    if done.returncode:
        sys.exit(f"rollbook {words[0]} ended with exit code {done.returncode}")


def answer(query: str) -> list[dict[str, str]]:
    """Return the rows of a query, which is not shown."""
    command = [str(ROLLBOOK), "query", query, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603
    rows: list[dict[str, str]] = json.loads(done.stdout)
    return rows


def environment_digest() -> str:
    """Return the digest of what every environment was made from: the task files."""
    return f"sha256:{hashlib.sha256((HERE / 'recordings' / 'tasks.py').read_bytes()).hexdigest()}"


def import_run(run: str, attempt: int, weight_version: int) -> None:
    """Import one run folder, with what its files do not say."""
    rollbook(
        "import",
        str(RUNS / run),
        "--tenant=acme",
        "--task-type=repair",
        f"--attempt={attempt}",
        f"--weight-version={weight_version}",
        f"--image-digest=*={environment_digest()}",
    )


def write_rewards(path: Path) -> None:
    """Join the gradings of the recordings to the samples that they are about."""
    samples = answer("SELECT sample_id, source_ref FROM samples")
    ids = {tuple(Path(row["source_ref"]).parts[-3:-1]): row["sample_id"] for row in samples}
    with (HERE / "recordings" / "rewards.csv").open() as given, path.open("w") as out:
        writer = csv.writer(out)
        writer.writerow(["sample_id", "reward"])
        for row in csv.DictReader(given):
            writer.writerow([ids[row["run"], row["task"]], row["reward"]])


def assemble_until_short() -> list[str]:
    """Cut batches until the turns do not suffice, and return their ids."""
    made = []
    while True:
        rollbook("assemble", "--learner=demo")
        found = answer("SELECT batch_id FROM batch ORDER BY sequence")
        if len(found) == len(made):
            return made
        made = [batch["batch_id"] for batch in found]


def compare_orders() -> None:
    """Simulate a learner with too much supply: what it trains on under three orders."""
    bench, plot = HERE.parent / "bench" / "run.py", BOOK / "fairness.svg"
    print(f"\n$ python {bench} fairness --plot {plot}   # 4,000 tasks, 1.3 × supply", flush=True)
    few = {"ROLLBOOK_BENCH_FAIRNESS_TASKS": "4000", "ROLLBOOK_BENCH_FAIRNESS_SUPPLIES": "1.3"}
    command = [sys.executable, str(bench), "fairness", "--json", "--plot", str(plot)]
    done = subprocess.run(command, env=os.environ | few, stdout=subprocess.PIPE, check=True)  # noqa: S603
    for line in done.stdout.splitlines():
        figure = json.loads(line)
        print(f"{figure['name']}: turns trained off the submitted mix")
        for order in ("first-come by tasks", "first-come by turns", "ours"):
            print(f"  {order:<20} {figure['more'][f'{order}: whole run, %']:6.1f} %")
    print(f"plot in {plot}")


def main() -> None:
    """Run the whole story."""
    shutil.rmtree(BOOK, ignore_errors=True)
    os.environ["ROLLBOOK_BOOK"] = str(BOOK)
    print(f"\n$ export ROLLBOOK_BOOK={BOOK}")
    rollbook("init", f"--settings={HERE / 'example.toml'}")
    import_run("run-0", attempt=0, weight_version=1)
    import_run("run-1", attempt=1, weight_version=2)
    rollbook("publish", "1")
    rollbook("publish", "2")
    rollbook("assemble")
    rollbook("why")
    write_rewards(BOOK / "rewards.csv")
    rollbook("reward", f"--from={BOOK / 'rewards.csv'}", "--grader=unit tests")
    rollbook("assemble", "--learner=demo")
    rollbook("publish", "3")
    for batch_id in assemble_until_short():
        out = BOOK / f"{batch_id}.arrow"
        rollbook("read", batch_id, f"--out={out}", "--trajectories")
        with pa.ipc.open_file(str(out)) as batch:
            rows = batch.read_all()
        print(f"  the learner reads {rows.num_rows} samples, {rows.nbytes:,} bytes of Arrow")
        rollbook("ack", batch_id, '--figures={"clipped_share": 0.0}')
    rollbook("why")
    rollbook("sql", "states")
    rollbook("sql", "discards")
    rollbook("sql", "ledger")
    first = "SELECT sample_id FROM sample_state WHERE state = 'trained' ORDER BY position LIMIT 1"
    rollbook("trace", answer(first)[0]["sample_id"])
    rollbook("audit")
    rollbook("accept")
    compare_orders()


if __name__ == "__main__":
    main()
