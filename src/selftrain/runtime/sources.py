"""Which source files a module stands on: the file itself and all it imports from its own package.

Whoever keeps a result of code (compiled kernels, stored points) must notice when that code changes,
however far away the change is. Imports are found in the text: at the top, inside functions, over
several lines. Imports for type checking alone do not count. A file too many costs a computation, a
file too few a wrong number: what looks like an import is taken for one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

_TYPES_ONLY = re.compile(r"^if TYPE_CHECKING:[^\n]*\n(?:(?:[ \t][^\n]*)?\n)+", re.MULTILINE)
_FROM = re.compile(r"^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([^\n]+)", re.MULTILINE)


def package_root(file: Path) -> Path:
    """The folder of the outermost package that a file belongs to; its own folder if it is in none.

    >>> package_root(Path(__file__)).name
    'selftrain'
    """
    folder = file.parent
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


def sources(file: Path) -> tuple[Path, ...]:
    """A file and every file of its package that it imports, directly or through others, sorted.

    >>> [path.name for path in sources(Path(__file__))]
    ['sources.py']
    """
    root = package_root(file)
    found: set[Path] = set()
    waiting = [file]
    while waiting:
        here = waiting.pop()
        if here not in found:
            found.add(here)
            waiting += _imported(here, root)
    return tuple(sorted(found))


def sources_digest(files: Iterable[Path], root: Path) -> str:
    """A digest of files, by their places below `root` and their contents."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(root).as_posix()}\n".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


@cache
def _imported(file: Path, root: Path) -> tuple[Path, ...]:
    """Files of the package that one file imports."""
    text = _TYPES_ONLY.sub("", file.read_text(encoding="utf-8"))
    found: list[Path] = []
    for module, names in _FROM.findall(text):
        folder = _base(module, file, root)
        if folder is not None:
            found += _files_of(folder, names)
    for modules in _IMPORT.findall(text):
        for module in modules.split(","):
            folder = _base(module.split(" as ")[0].strip(), file, root)
            if folder is not None:
                found += _files_of(folder, "")
    return tuple(found)


def _base(module: str, file: Path, root: Path) -> Path | None:
    """Where a module of the package would be, without its ending; None for other packages."""
    name = module.lstrip(".")
    dots = len(module) - len(name)
    if dots:
        place = file.parent
        for _ in range(dots - 1):
            place = place.parent
    elif name.split(".")[0] == root.name:
        place = root.parent
    else:
        return None
    return place.joinpath(*name.split(".")) if name else place


def _files_of(place: Path, names: str) -> Iterator[Path]:
    """Files behind `from place import names`: modules among the names, and `place` itself."""
    if not place.is_dir():
        file = place.with_name(f"{place.name}.py")
        if file.is_file():
            yield file
        return
    modules = [place / f"{name}.py" for name in re.findall(r"\w+", names)]
    yield from (module for module in modules if module.is_file())
    packages = [place / name / "__init__.py" for name in re.findall(r"\w+", names)]
    yield from (package for package in packages if package.is_file())
    if (place / "__init__.py").is_file() and not any(module.is_file() for module in modules):
        yield place / "__init__.py"
