"""Which cells does a function need? Only those are run for its question.

So an endless loop, a ``sys.exit()`` or a syntax error elsewhere in the notebook costs nothing. A
cell that defines a needed name runs whole, as in Jupyter; of a cell that only imports a needed
name, just the import runs.
"""

from __future__ import annotations

import ast
import re
import symtable
import warnings
from dataclasses import dataclass, field

from distlearn.grading.outcome import Outcome
from distlearn.grading.submission import Cell, Submission

_DEFINES = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|^(\w+)[ \t]*=(?!=)", re.MULTILINE)


@dataclass
class _Names:
    """What a cell binds, reads and changes, as a part of the whole notebook.

    ``reads`` are names it needs from elsewhere; ``bound`` those it defines; ``imports`` the subset
    bound by import statements, with these; ``changes`` names it only changes in place.
    """

    cell: Cell
    error: SyntaxError | None = None
    reads: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    stubs: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    imports: dict[str, ast.stmt] = field(default_factory=dict)
    stars: list[ast.stmt] = field(default_factory=list)
    changes: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Slice:
    """The cells that a function needs, or why there are none.

    Attributes
    ----------
    cells : tuple of Cell
        In the order of the notebook.
    problem : Outcome or None
        ``missing`` or ``syntax``: then there is nothing to run.
    notes : tuple of str
    """

    cells: tuple[Cell, ...] = ()
    problem: Outcome | None = None
    notes: tuple[str, ...] = ()


class Program:
    """A submission, analysed once, from which the slice of each question is cut."""

    def __init__(self, submission: Submission) -> None:
        self.submission = submission
        self._names = [_analyse(cell) for cell in submission.cells]
        made = {name for cell in self._names for name in cell.bound - set(cell.imports)}
        self._only_imported = {name for cell in self._names for name in cell.imports} - made

    @property
    def defined(self) -> list[str]:
        """Names defined at the top of any cell, except by import; in order, each once."""
        names = [name for cell in self._names for name in sorted(cell.bound - set(cell.imports))]
        return list(dict.fromkeys(names))

    @property
    def functions(self) -> list[str]:
        """Those of the names that a ``def`` defines."""
        return [name for name in self.defined
                if any(name in cell.functions for cell in self._names)]

    def written(self, function: str) -> bool:
        """Whether some cell defines the function and it is not just the stub."""
        return any(
            function in x.bound - x.stubs if x.error is None else function in x.bound
            for x in self._names)

    def slice(self, function: str) -> Slice:
        """The cells needed by ``function``."""
        whole: set[int] = set()
        parts: dict[int, list[ast.stmt]] = {}
        notes: list[str] = []
        todo, seen = [function], {function}
        while todo:
            name = todo.pop()
            problem = self._resolve(name, whole, parts, notes, todo, seen, name == function)
            if problem is not None:
                return Slice(problem=problem, notes=tuple(notes))
        for index, names in enumerate(self._names):  # what a star brings in is not known
            if names.stars and index not in whole:
                parts.setdefault(index, []).extend(names.stars)
        cells = []
        for index, names in enumerate(self._names):
            if index in whole:
                cells.append(names.cell)
            elif index in parts:
                cells.append(_only(names.cell, parts[index]))
        return Slice(tuple(cells), notes=tuple(notes))

    def _resolve(self, name: str, whole: set[int], parts: dict[int, list[ast.stmt]],
                 notes: list[str], todo: list[str], seen: set[str], wanted: bool) -> Outcome | None:
        """Add the cells that make ``name``, from the last definition back to a fresh one."""
        broken: _Names | None = None
        found = False
        for index in range(len(self._names) - 1, -1, -1):
            cell = self._names[index]
            if cell.error is not None:
                if name in cell.bound and not found and broken is None:
                    broken = cell
                continue
            if name in cell.bound:
                found = True
                if broken is not None and name in cell.stubs:
                    break
                if name in cell.imports:
                    part = parts.setdefault(index, [])
                    if cell.imports[name] not in part:
                        part.append(cell.imports[name])
                    break
            elif name not in cell.changes or name in self._only_imported:
                continue
            if index not in whole:
                whole.add(index)
                for other in sorted(cell.reads - seen):
                    seen.add(other)
                    todo.append(other)
            if name in cell.bound and name not in cell.reads:
                break
        else:
            if broken is None and wanted and not found:
                return Outcome("missing")
        if broken is None:
            return None
        text = f"{broken.cell.label}, line {(broken.error and broken.error.lineno) or 1}"
        last = next((c for c in reversed(self._names) if c.error is None and name in c.bound), None)
        if last is not None and name not in last.stubs:
            notes.append(f"{text} has a syntax error; the earlier `{name}` of {last.cell.label} "
                         "counted.")
            return None
        code = (broken.error.text or "").strip()[:120] if broken.error else ""
        message = f"SyntaxError: {broken.error.msg if broken.error else ''}"
        return Outcome("syntax", message=message[:300], where=text, code=code)


def _only(cell: Cell, statements: list[ast.stmt]) -> Cell:
    """A cell with just these statements, on their lines."""
    lines: dict[int, list[str]] = {}
    for statement in sorted(statements, key=lambda x: (x.lineno, x.col_offset)):
        lines.setdefault(statement.lineno - cell.first_line, []).append(ast.unparse(statement))
    source = "\n".join("; ".join(lines.get(k, [])) for k in range(max(lines) + 1))
    return Cell(cell.label, source, cell.first_line)


def _analyse(cell: Cell) -> _Names:
    names = _Names(cell)
    try:
        body = cell.parse().body
        lazy: set[str] = set()
        for statement in body:
            _visit(statement, names, lazy)
    except SyntaxError as error:
        names = _Names(cell, error=error)
        names.bound = {a or b for a, b in _DEFINES.findall(cell.source)}
        return names
    except RecursionError:
        names.error = SyntaxError("nested too deeply")
        return names
    names.reads |= lazy - names.bound
    names.changes -= set(names.imports)
    return names


def _visit(statement: ast.stmt, names: _Names, lazy: set[str]) -> None:
    """Add one top-level statement: what it reads now, what its functions read later, what it binds.

    symtable knows Python's scopes: a loop variable of a function is not a name of the notebook.
    """
    if isinstance(statement, ast.ImportFrom) and any(a.name == "*" for a in statement.names):
        names.stars.append(statement)
        return
    source = ast.unparse(ast.Module([statement], []))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = symtable.symtable(source, "cell", "exec")
    now = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    bound = {s.get_name() for s in table.get_symbols()
             if s.is_assigned() or s.is_imported() or s.is_namespace()}
    tables = list(table.get_children())
    while tables:
        inner = tables.pop()
        tables += inner.get_children()
        lazy |= {s.get_name() for s in inner.get_symbols() if s.is_global()}
    names.reads |= now - names.bound
    names.changes |= _changed(statement) - bound
    fresh = isinstance(statement, ast.Import | ast.ImportFrom)
    for name in bound:
        names.stubs.discard(name)
        if fresh and name not in names.bound:
            names.imports[name] = statement
        elif not fresh:
            names.imports.pop(name, None)
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        names.functions.add(statement.name)
        if _is_stub(statement):
            names.stubs.add(statement.name)
    names.bound |= bound


def _changed(statement: ast.stmt) -> set[str]:
    """Names changed in place: ``x[0] = 1``, ``x.a = 1``, ``del x[0]``, ``x.append(1)``."""
    changed: set[str] = set()
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        todo += ast.iter_child_nodes(node)
        target: ast.expr | None = None
        if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            target = node
        elif (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
              and isinstance(node.value.func, ast.Attribute)):
            target = node.value.func
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        if isinstance(target, ast.Name):
            changed.add(target.id)
    return changed


def _is_stub(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if len(body) != 1 or not isinstance(body[0], ast.Raise):
        return False
    raised = body[0].exc
    name = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(name, ast.Name) and name.id == "NotImplementedError"
