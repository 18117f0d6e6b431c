"""The source files that a module depends on: its own, and all that it imports from its package.

A cached result (a compiled kernel, a point of a sweep) must be discarded when any code that it
depends on changes. Imports are found in the text, at the top and inside functions, but not those
for type checkers, those by a computed name, nor what a package imports when a name is first used
(`__getattr__`). If in doubt, a file is included: one too many costs a computation, one too few
could give a wrong number.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

from ..errors import SelfTrainError

_NOT_LOADED = re.compile(
    r"^(?:if TYPE_CHECKING:|def __getattr__\()[^\n]*\n(?:(?:[ \t][^\n]*)?\n)+", re.MULTILINE
)
_FROM = re.compile(r"^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([^\n]+)", re.MULTILINE)


def package_root(file: Path) -> Path:
    """Return the folder of the outermost package that contains a file; its own if there is none.

    >>> package_root(Path(__file__)).name
    'selftrain'
    """
    folder = file.parent
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


def sources(file: Path, without: Collection[str] = ()) -> tuple[Path, ...]:
    """Return a file and every file of its package that it imports, directly or not, sorted.

    Arguments:
        without: subpackages and modules at the top of the package to leave out.

    >>> [path.name for path in sources(Path(__file__))]
    ['errors.py', '__init__.py', 'source_files.py']
    """
    root = package_root(file)
    found: set[Path] = set()
    waiting = [file]
    while waiting:
        here = waiting.pop()
        part = here.relative_to(root).parts[0] if here.is_relative_to(root) else ""
        if here not in found and part not in without:
            found.add(here)
            waiting += _imported(here, root)
    return tuple(sorted(found))


def sources_digest(files: Iterable[Path], root: Path) -> str:
    """Return a digest of the paths of files below `root` and of their contents."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(root).as_posix()}\n".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


@cache
def _imported(file: Path, root: Path) -> tuple[Path, ...]:
    """Return the files that a file imports from its package, and the `__init__.py` above it."""
    text = _NOT_LOADED.sub("", file.read_text(encoding="utf-8"))
    below = root in file.parents
    found = [one / "__init__.py" for one in file.parents if below and root in one.parents]
    found = [one for one in found if one.is_file()]
    for module, names in _FROM.findall(text):
        folder = _base(module, file, root)
        if folder is not None:
            files = list(_files_of(folder, names))
            if not files:
                raise SelfTrainError(
                    f"{file}: it imports {_dotted(folder, root)}, which does not exist"
                )
            found += files
    for modules in _IMPORT.findall(text):
        for module in modules.split(","):
            folder = _base(module.split(" as ")[0].strip(), file, root)
            if folder is not None:
                found += _files_of(folder, "")
    return tuple(found)


def _base(module: str, file: Path, root: Path) -> Path | None:
    """Return the path of a module of the package without suffix; None for other packages."""
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


def _dotted(place: Path, root: Path) -> str:
    return ".".join(place.relative_to(root.parent).parts)


def _files_of(place: Path, names: str) -> Iterator[Path]:
    """Yield the files that `from place import names` loads: submodules, or `place` itself."""
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
