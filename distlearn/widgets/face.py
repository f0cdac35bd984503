"""The two faces of an interactive view: live in JupyterLab, and alone on a page of the book.

`StaticFace.static_html` is HTML with its own script, which needs no kernel, no request and no other
script on the page; it works in JupyterLab just as well. A view that needs Python for what it shows
derives from `Face`: its children are a live face (ipywidgets, Python computes). A notebook then
stores both and each reader shows the one it can. While it is being worked in, the second one may be
less (`Face.saved_html`), so that the cell is quick.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any, ClassVar

import ipywidgets
from IPython import get_ipython

from distlearn.plots.look import STYLE, variables


class StaticFace:
    """Base of the views: one HTML element with its own script, the same on every page.

    Subclasses set `label`, `scripts` and `mount`, and write `static_body` and `static_data`.
    """

    label: ClassVar[str]
    """Name of the view for screen readers."""
    scripts: ClassVar[Sequence[str]]
    """Files in ``distlearn/widgets/js``, in the order in which they need each other."""
    mount: ClassVar[str]
    """The JavaScript function that brings the static face to life: ``mount(root, data)``."""

    _numbers: ClassVar[itertools.count[int]] = itertools.count(1)

    def static_body(self, ident: str) -> str:
        """HTML of the first state, which is what a reader without JavaScript sees.

        Parameters
        ----------
        ident : str
            Prefix for ids, different for each face on a page.
        """
        raise NotImplementedError

    def static_data(self) -> Any:
        """What the script needs, as JSON."""
        raise NotImplementedError

    def static_html(self) -> str:
        """The face for a page without a kernel, all within one root element.

        The n-th call in a process gets the id ``dl-n``, so that pages are reproducible.
        """
        ident = f"dl-{next(self._numbers)}"
        # "<" would end the script element early if it stood before "/script"
        data = json.dumps(self.static_data(), separators=(",", ":")).replace("<", "\\u003c")
        code = "\n".join(asset(f"js/{name}") for name in self.scripts)
        return (
            f'<div class="dl-face" id="{ident}" role="group" aria-label="{escape(self.label)}">\n'
            f"<style>{face_style()}</style>\n{self.static_body(ident)}\n"
            "<noscript><p>The controls need JavaScript; what is shown is the first setting."
            "</p></noscript>\n"
            f'<script type="application/json">{data}</script>\n'
            f'<script>(function () {{\n"use strict";\n{code}\n'
            # currentScript is null where a front end inserts the HTML and then runs its scripts
            'var script = document.currentScript;\nvar root = script ? script.parentNode : '
            f'document.getElementById("{ident}");\n'
            "var data = root.querySelector('script[type=\"application/json\"]').textContent;\n"
            f"{self.mount}(root, JSON.parse(data));\n}})();</script>\n</div>"
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        return {"text/plain": f"<{type(self).__name__}: {self.label}>",
                "text/html": self.static_html()}


class Face(StaticFace, ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Base of the views with a live face, shown where there is a kernel; `static_html` elsewhere.

    Subclasses set and write what `StaticFace` says.
    """

    def saved_html(self) -> str:
        """What a notebook that is being worked in keeps for readers without a kernel.

        The whole static face, unless a view has something quicker.
        """
        return self.static_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = ipywidgets.VBox._repr_mimebundle_(self, **kwargs) or {}
        bundle["text/html"] = self.saved_html() if _worked_in() else self.static_html()
        return bundle


def _worked_in() -> bool:
    """Whether somebody runs the cell: front ends say which cell it is, the book's builder not."""
    kernel = getattr(get_ipython(), "kernel", None)
    return kernel is not None and "cellId" in kernel.get_parent().get("metadata", {})


def asset(name: str) -> str:
    """Text of a style sheet or script of this package."""
    return files("distlearn.widgets").joinpath(name).read_text(encoding="utf-8")


def without_style(svg: str) -> str:
    """An SVG figure for use inside a face, which has the figures' style sheet already."""
    return svg.replace(f"<style>{STYLE}</style>\n", "")


def face_style() -> str:
    """The style sheet of all views and of the SVG figures in them, light and dark."""
    return (
        f"{STYLE}\n.dl-face{{{variables('light')};color-scheme:light}}"
        'html[data-theme="dark"] .dl-face,body[data-jp-theme-light="false"] .dl-face'
        f"{{{variables('dark')};color-scheme:dark}}\n" + asset("face.css")
    )
