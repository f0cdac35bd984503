"""What C forbids in a function although it parses: names declared twice, constants assigned."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pycparser import c_ast

from distlearn.kernels.cuda_c.errors import refuse

STEPS = ("++", "--", "p++", "p--")


def check(function: Any, nodes: list[Any], filename: str) -> None:
    """Refuse what is wrong in a function, of which ``nodes`` are all parts.

    Raises
    ------
    SourceError
    """
    for node in nodes:
        if isinstance(node, c_ast.Compound):
            _once(node, filename)
    parameters = function.decl.type.args.params if function.decl.type.args else []
    declared = [node for node in (*parameters, *nodes) if isinstance(node, c_ast.Decl)]
    names = Counter(node.name for node in declared)
    constant = {node.name: _constant(node.type) for node in declared if names[node.name] == 1}
    for node in nodes:
        place = node.lvalue if isinstance(node, c_ast.Assignment) else node.expr if isinstance(
            node, c_ast.UnaryOp) and node.op in STEPS else None
        word, what = _root(place)
        if what and constant.get(word) == what:
            refuse(f"{word} is declared const: {what} cannot be assigned", node.coord, filename)


def _once(block: Any, filename: str) -> None:
    seen: set[str] = set()
    for node in block.block_items or ():
        if isinstance(node, c_ast.Decl) and node.name and "extern" not in node.storage and (
                not isinstance(node.type, c_ast.FuncDecl)):
            if node.name in seen:
                refuse(f"{node.name} is declared twice in one block", node.coord, filename)
            seen.add(node.name)


def _constant(kind: Any) -> str:
    """What ``const`` protects: the variable, or the memory that it is or points to."""
    if isinstance(kind, c_ast.TypeDecl):
        return "it" if "const" in kind.quals else ""
    inner = kind.type
    while isinstance(inner, c_ast.ArrayDecl):
        inner = inner.type
    return "its memory" if isinstance(inner, c_ast.TypeDecl) and "const" in inner.quals else ""


def _root(place: Any) -> tuple[str, str]:
    """The variable of a place that is assigned, and whether that is the variable or its memory."""
    while isinstance(place, c_ast.StructRef) and place.type == ".":
        place = place.name
    if isinstance(place, c_ast.ID):
        return place.name, "it"
    if isinstance(place, c_ast.StructRef):
        place = place.name
    elif isinstance(place, c_ast.UnaryOp) and place.op == "*":
        place = place.expr
    else:
        while isinstance(place, c_ast.ArrayRef):
            place = place.name
    return (place.name, "its memory") if isinstance(place, c_ast.ID) else ("", "")
