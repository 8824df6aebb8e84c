"""What must hold of the source itself: who imports whom, sizes, headers, the package list."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("validators", "sql", "store", "ledger", "scheduler", "importers", "learner", "app")

# Folder → the folders of ours that it may import.
MAY_IMPORT = {
    "validators": set[str](),
    "sql": set[str](),
    "store": {"sql", "validators"},
    "ledger": {"store", "sql", "validators"},
    "scheduler": {"store", "sql", "validators"},
    "importers": {"validators"},
    "learner": {"validators"},
    "app": {"ledger", "scheduler", "importers", "store", "sql", "validators"},
}
LONGEST_FUNCTION = 70
LONGEST_MODULE = 420


def modules() -> list[Path]:
    """Return all modules of the product."""
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def imported_folders(path: Path) -> Iterator[str]:
    """Yield the top folders of ours that a module imports."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert not alias.name.startswith("rollbook"), f"{path}: import relatively"
        elif isinstance(node, ast.ImportFrom) and node.level:
            package = parts[: len(parts) - node.level]
            target = (*package, *(node.module or "").split("."))
            yield target[0] if target[0] else (node.names[0].name)
        elif isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("rollbook"), f"{path}: import relatively"


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_point_downward_only(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        foreign = set(imported_folders(path)) - {folder}

        assert foreign <= MAY_IMPORT[folder], f"{path.relative_to(ROOT)} imports {foreign}"


def test_only_the_store_imports_deltalake() -> None:
    users = {p.relative_to(ROOT).parts[0] for p in modules() if "deltalake" in _imports(p)}

    assert users == {"store"}


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    return found


def function_lengths() -> Iterator[tuple[int, str]]:
    """Yield the lines of each function's body, its docstring left out, and its name."""
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                if body:
                    lines = (body[-1].end_lineno or 0) - body[0].lineno + 1
                    yield lines, f"{path.relative_to(ROOT)}:{node.name}"


def test_functions_are_short() -> None:
    lengths = sorted(function_lengths())

    longest = lengths[-1]
    ninetieth = lengths[int(len(lengths) * 0.9)]

    assert longest[0] <= LONGEST_FUNCTION, longest
    assert ninetieth[0] <= 30, ninetieth
    assert lengths[len(lengths) // 2][0] <= 10


def test_modules_hold_one_thing() -> None:
    sizes = {str(p.relative_to(ROOT)): p.read_text().count("\n") for p in modules()}

    too_long = {name: lines for name, lines in sizes.items() if lines > LONGEST_MODULE}

    assert not too_long


def test_every_package_is_in_the_wheel_and_typed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = set(project["tool"]["setuptools"]["packages"])
    found = {
        "rollbook." + ".".join(path.parent.relative_to(ROOT).parts)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("__init__.py")
    }

    assert listed == found
    assert all((ROOT / folder / "py.typed").is_file() for folder in FOLDERS)
    assert all((ROOT / ".types/rollbook" / folder).resolve() == ROOT / folder for folder in FOLDERS)
    assert not (ROOT / "rollbook").exists()


def test_no_sql_in_python() -> None:
    keyword = re.compile(r"\b(SELECT\s.+\sFROM|INSERT INTO|CREATE (TABLE|VIEW|TEMP))\b", re.DOTALL)
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not keyword.search(node.value), f"{path.relative_to(ROOT)}:{node.lineno}"


def test_statements_keep_the_house_style() -> None:
    for path in sorted((ROOT / "sql").rglob("*.sql")):
        text = path.read_text()
        code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
        name = path.relative_to(ROOT)

        assert text.startswith("-- "), f"{name}: a header comes first"
        assert re.search(r"^-- returns:", text, re.MULTILINE), f"{name}: says what it returns"
        assert "?" in text.splitlines()[0] + text.splitlines()[1], f"{name}: asks a question"
        assert "::" not in code, f"{name}: write CAST"
        assert not re.search(r"\b(select|from|where|join|group by|order by)\b", code), name
        assert max(map(len, text.splitlines())) <= 100, f"{name}: lines of 100 at most"


def test_statements_that_are_not_marked_duckdb_avoid_its_dialect() -> None:
    only_duckdb = re.compile(r"\b(lambda|unnest|list_\w+|QUALIFY|EXCLUDE|PIVOT|epoch_us)\b|//")
    for path in sorted((ROOT / "sql").rglob("*.sql")):
        text = path.read_text()
        if "-- dialect: duckdb" not in text:
            assert not only_duckdb.search(text), path.relative_to(ROOT)


def test_public_names_have_docstrings() -> None:
    for path in modules():
        tree = ast.parse(path.read_text())
        assert ast.get_docstring(tree), f"{path.relative_to(ROOT)} has no docstring"


def test_nothing_names_a_registry_or_a_machine() -> None:
    names = re.compile(
        r"https?://(pypi|files\.pythonhosted|registry\.npmjs|deb\.debian)|/work/|/root/"
    )
    texts = [p for p in ROOT.rglob("*") if p.suffix in {".py", ".md", ".toml", ".lock", ".sql"}]
    skipped = {".venv", ".venv-duckdb-1", "build", "dist", ".git", "demo"}
    for path in texts:
        parts = path.relative_to(ROOT).parts
        if not skipped & set(parts) and path != Path(__file__).resolve():
            assert not names.search(path.read_text()), path.relative_to(ROOT)
