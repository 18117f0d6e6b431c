"""Small faults that can be put into the source: one operator, comparison, number or name of a
formula.

`faults` lists all faults of a file. `put` changes the running program: it replaces the code of a
function in place, or the value of a constant in every module that has it.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
"""Comparisons are reversed: `<` to `<=` would change nothing for numbers that are never equal."""

NAMES = {"min": "max", "max": "min", "sin": "cos", "exp": "expm1", "log": "log1p"}


class Fault(NamedTuple):
    """A fault.

    Attributes:
        file, owner, line: the file, the function or constant in it, and the line.
        node: the index of the changed node among `_formulas` of the owner.
        before, after: the source of the node without and with the fault.
    """

    file: str
    owner: str
    node: int
    line: int
    before: str
    after: str


def faults(file: Path) -> Iterator[Fault]:
    """Yield all faults of a file, in its functions and its constants.

    Class bodies outside of methods (defaults of records, enumerations) are skipped.
    """
    for owner, top in _owners(ast.parse(file.read_text())):
        for place, node in enumerate(_formulas(top)):
            before = ast.unparse(node)
            if _change(node):
                yield Fault(str(file), owner, place, node.lineno, before, ast.unparse(node))


def put(fault: Fault) -> None:
    """Put a fault into the running program. Functions must be plain Python, not compiled."""
    tree = ast.parse(Path(fault.file).read_text())
    top = dict(_owners(tree))[fault.owner]
    _change(_formulas(top)[fault.node])
    code = compile(tree, fault.file, "exec")
    if isinstance(top, ast.FunctionDef):
        _replace_code(fault, code)
    else:
        _replace_constants(fault, code)
    for known in gc.get_objects():
        if hasattr(type(known), "cache_clear"):
            known.cache_clear()


def _owners(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield functions, methods and constants with their qualified names."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef):
                    yield f"{node.name}.{part.name}", part
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield ast.unparse(target), node


def _formulas(top: ast.AST) -> list[Any]:
    """Return expressions and assignments, without annotations, decorators, defaults and texts."""
    left_out: set[int] = set()
    for node in ast.walk(top):
        if isinstance(node, ast.FunctionDef):
            arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            skipped = [*node.decorator_list, node.returns, *(a.annotation for a in arguments)]
            skipped += [*node.args.defaults, *node.args.kw_defaults]
        elif isinstance(node, ast.AnnAssign):
            skipped = [node.annotation]
        else:
            continue
        left_out.update(id(part) for skip in skipped if skip for part in ast.walk(skip))
    return [
        node
        for node in ast.walk(top)
        if isinstance(node, (ast.expr, ast.AugAssign)) and id(node) not in left_out
    ]


def _change(node: Any) -> bool:
    """Put the fault into a node; return False if there is no fault for this kind of node."""
    if isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)) and type(node.op) in OPERATORS:
        node.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
        node.ops[0] = OPERATORS[type(node.ops[0])]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node.op = ast.UAdd()
    elif isinstance(node, ast.IfExp):
        node.body, node.orelse = node.orelse, node.body
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        node.attr = NAMES[node.attr]
    elif isinstance(node, ast.Name) and node.id in NAMES:
        node.id = NAMES[node.id]
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value += 1
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        node.value = 2 * node.value or 1.0
    else:
        return False
    return True


def _replace_code(fault: Fault, code: CodeType) -> None:
    """Change functions in place, so that every module that imported them has the fault.

    Functions are recognised by ``type``: ``isinstance`` follows a weak proxy, which raises if its
    object has been deleted.
    """
    new = next(part for part in _codes(code) if part.co_qualname == fault.owner)
    found = [
        known
        for known in gc.get_objects()
        if type(known) is FunctionType
        and known.__code__.co_filename == fault.file
        and known.__code__.co_qualname == fault.owner
    ]
    if not found:
        raise LookupError(f"{fault.file}: no function {fault.owner}")
    for function in found:
        function.__code__ = new


def _codes(code: CodeType) -> Iterator[CodeType]:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from _codes(part)


def _replace_constants(fault: Fault, code: CodeType) -> None:
    """Set the new values in the module of the constants and in all modules that imported them."""
    loaded = [module for name, module in sys.modules.items() if name.split(".")[0] == "selftrain"]
    home = next(module for module in loaded if getattr(module, "__file__", "") == fault.file)
    fresh = {"__name__": home.__name__, "__package__": home.__package__, "__file__": fault.file}
    exec(code, fresh)
    names = {part.id for part in ast.walk(ast.parse(fault.owner)) if isinstance(part, ast.Name)}
    for name in names:
        old = home.__dict__[name]
        for module in loaded:
            if module.__dict__.get(name) is old:
                setattr(module, name, fresh[name])
