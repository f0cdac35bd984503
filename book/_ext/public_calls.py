"""Sphinx directive ``public-calls``: what a package offers, with its docstrings.

Docstrings are shown as they are written, as ``help`` would show them: each opens below its line.
Rendered by autodoc, they took a third of the time of the whole build.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

SHOWN = 60  # characters of a line that is closed
# Of an example that raises, the error is enough.
TRACEBACK = re.compile(r"^ *Traceback \(most recent call last\):\n(?: *\.\.\.\n)?", re.MULTILINE)


def short_signature(value: Any) -> str:
    """``(name, p, m, v=None, …)``: names and defaults, as many as fit."""
    if not _called(value):
        return ""
    parts = list(_parameters(inspect.signature(value), typed=False))
    text = ", ".join(parts)
    while len(text) > SHOWN and len(parts) > 1:
        parts.pop()
        text = ", ".join([*parts, "…"])
    return f"({text})"


def full_text(name: str, value: Any) -> str:
    """The call with its types, its docstring, and those of a class's own members."""
    lines = [f"{name}{_signature(value)}", "", inspect.getdoc(value) or ""]
    if inspect.isclass(value):
        for member, got in _members(value):
            lines += ["", f"{member}{_signature(got)}",
                      textwrap.indent(inspect.getdoc(got) or "", "    ")]
    return TRACEBACK.sub("", "\n".join(lines)).rstrip()


def _members(value: type) -> Iterator[tuple[str, Any]]:
    for member, raw in vars(value).items():
        if member.startswith("_"):
            continue
        got = raw.fget if isinstance(raw, property) else getattr(raw, "__func__", raw)
        got = getattr(got, "func", got)  # of a cached_property
        if inspect.isfunction(got) and inspect.getdoc(got):
            yield member, raw if isinstance(raw, property) else got


def _signature(value: Any) -> str:
    """With types; a parameter a line, if it is long."""
    if not _called(value):
        return ""
    made = inspect.signature(value)
    parts = list(_parameters(made, typed=True))
    arrow = "" if made.return_annotation in (made.empty, "None", None) \
        else f" -> {made.return_annotation}"
    text = f"({', '.join(parts)}){arrow}"
    return text if len(text) < SHOWN else f"(\n    {f',{chr(10)}    '.join(parts)}){arrow}"


def _parameters(made: inspect.Signature, *, typed: bool) -> Iterator[str]:
    starred = False
    for one in made.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        annotation = f": {one.annotation}" if typed and one.annotation is not one.empty else ""
        default = "" if one.default is one.empty else f"={one.default!r}"
        if not typed and len(default) > SHOWN // 3:
            default = "=…"
        yield f"{star}{one.name}{annotation}{default}"


def _called(value: Any) -> bool:
    """Whether readers call it: no property, no error, no protocol."""
    return callable(value) and not (inspect.isclass(value) and (
        issubclass(value, BaseException) or getattr(value, "_is_protocol", False)))


class PublicCalls(SphinxDirective):
    """``.. public-calls:: distlearn.pipeline``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A line for each class and function of the package's ``__all__``, in its order."""
        package = importlib.import_module(self.arguments[0])
        made = list[nodes.Node]()
        for name in package.__all__:
            value = getattr(package, name)
            if not inspect.isclass(value) and not inspect.isfunction(value):
                continue  # constants are told where they are used
            if not str(value.__module__).startswith("distlearn"):
                continue
            made += self._entry(package.__name__, name, value)
        return made

    def _entry(self, package: str, name: str, value: Any) -> Iterator[nodes.Node]:
        first = (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
        anchor = f"{package}.{name}"
        head = (f'<details class="public-call" id="{anchor}"><summary><code>'
                f"<strong>{name}</strong>{escape(short_signature(value))}</code> "
                f"<span>{_inline(first)}</span></summary>")
        yield nodes.raw("", head, format="html")
        text = full_text(name, value)
        block = nodes.literal_block(text, text, language="text")
        yield block
        yield nodes.raw("", "</details>", format="html")


def _inline(text: str) -> str:
    """Backquoted words as code."""
    parts = escape(text).replace("``", "`").split("`")
    return "".join(f"<code>{part}</code>" if odd % 2 else part for odd, part in enumerate(parts))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("public-calls", PublicCalls)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
