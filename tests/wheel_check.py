"""Build the wheel and try it as an installed package, beside PyPI's `validators`.

Run by `make wheel`; not a test of its own, since it needs a package registry.
"""

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRIAL = """
import validators
from rollbook.store import Book
from rollbook.sql import statements
assert validators.email("a@example.org") is True, "PyPI's validators is shadowed"
assert len(statements()) > 20, "statements are missing from the wheel"
book = Book.create("book")
assert book.query("SELECT COUNT(*) AS n FROM samples").to_pylist() == [{"n": 0}]
print("the wheel works:", len(statements()), "statements")
"""


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command, and stop with its output if it fails."""
    subprocess.run([str(word) for word in command], cwd=cwd, check=True)


def main() -> None:
    """Build, look inside, install elsewhere, try."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        # From the committed files alone: a left-over build folder would bring back old modules.
        run("git", "checkout-index", "--all", f"--prefix={place / 'source'}/")
        run(sys.executable, "-m", "build", "--wheel", "--outdir", place, place / "source")
        wheel = next(place.glob("*.whl"))
        tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
        foreign = {top for top in tops if top != "rollbook" and not top.endswith(".dist-info")}
        if foreign:
            sys.exit(f"the wheel would install {foreign} beside other people's packages")
        venv.create(place / "venv", with_pip=True)
        python = place / "venv" / "bin" / "python"
        pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
        run(*pip, "-r", ROOT / "requirements.lock")
        run(*pip, "--no-deps", wheel)
        run(*pip, "validators")
        run(python, "-c", TRIAL, cwd=place)
        run(place / "venv" / "bin" / "rollbook", "--version", cwd=place)
        # Some tests against what a user gets, not against the checkout.
        tests = ("-q", "-p", "no:cacheprovider", "--rootdir", ROOT, "-c", ROOT / "pyproject.toml")
        chosen = (ROOT / "tests" / "sql" / "test_loader.py", ROOT / "tests" / "scheduler")
        run(place / "venv" / "bin" / "pytest", *tests, *chosen, cwd=place)


if __name__ == "__main__":
    main()
