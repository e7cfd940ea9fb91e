"""How large the code is, by package: `make size`."""

import ast
import collections
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "cocoax"
COUNTS = """\
files      .py and .pyi files
lines      all lines of .py files
code       lines of .py files that are neither blank, nor a comment alone, nor of a docstring
docstrings lines of docstrings
public     names that an __init__.pyi imports from a module of its package
numbers    upper-case names of a module or class that are assigned a number, or numbers and nothing else
single     modules that exactly one other module imports, and no __init__.pyi"""


class Size(NamedTuple):
    """The counts of one file, or sums of them."""

    files: int = 0
    lines: int = 0
    code: int = 0
    docstrings: int = 0
    public: int = 0
    numbers: int = 0
    single: int = 0

    def __add__(self, other):
        return Size(*map(sum, zip(self, other)))


def size(path: Path) -> Size:
    """The counts of a file, but for `single`."""
    text = path.read_text()
    tree = ast.parse(text)
    if path.suffix == ".pyi":
        return Size(files=1, public=sum(len(line.names) for line in tree.body if isinstance(line, ast.ImportFrom)))
    docstrings = set().union(*map(_docstring, ast.walk(tree)))
    lines = text.splitlines()
    code = [n for n, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")]
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    numbers = sum(_names_numbers(statement) for body in bodies for statement in body)
    return Size(1, len(lines), len(set(code) - docstrings), len(docstrings), 0, numbers)


def _docstring(node) -> set[int]:
    """The lines of a node's docstring; also of one below an attribute."""
    body = getattr(node, "body", None)
    texts = [one for one in body if isinstance(one, ast.Expr)] if isinstance(body, list) else []
    texts = [one for one in texts if isinstance(one.value, ast.Constant) and isinstance(one.value.value, str)]
    return {line for one in texts for line in range(one.lineno, one.end_lineno + 1)}


def _names_numbers(statement) -> bool:
    """Whether it assigns numbers, and nothing else but None and texts beside them, to upper-case names."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    inside = list(ast.walk(statement.value))
    values = [node.value for node in inside if isinstance(node, ast.Constant)]
    is_plain = not any(isinstance(node, ast.Name | ast.Attribute) for node in inside)
    return is_plain and all(name.isupper() for name in names) and any(type(value) in (int, float) for value in values)


def importers() -> dict[Path, set[Path]]:
    """Which files import each module of src."""
    found = collections.defaultdict(set)
    for path in SRC.rglob("*.py*"):
        if path.suffix not in (".py", ".pyi"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
                for file in [folder.with_suffix(".py"), *(folder / f"{name.name}.py" for name in node.names)]:
                    if file.exists() and file != path:
                        found[file].add(path)
    return found


def main():
    """Print the table."""
    sizes = collections.defaultdict(Size)
    imported = importers()
    for path in sorted(SRC.rglob("*.py*")):
        if path.suffix in (".py", ".pyi"):
            inside = path.relative_to(SRC).parts
            single = Size(single=[user.suffix for user in imported[path]] == [".py"])
            sizes[inside[0] if len(inside) > 1 else "(top)"] += size(path) + single
    rows = {**sizes, "src": sum(sizes.values(), Size())}
    for folder in ("tests", "benchmarks"):
        rows[folder] = sum(map(size, sorted((ROOT / folder).rglob("*.py"))), Size())
    print(f"{'':12}", *(f"{name:>10}" for name in Size._fields))
    for name, counts in rows.items():
        print(f"{name:12}", *(f"{count:>10,}" for count in counts))
    print("\n" + COUNTS)


if __name__ == "__main__":
    main()
