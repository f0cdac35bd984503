"""Sphinx extension of this book: notebooks to download, a bar on each chapter, a safe cache.

A chapter is a MyST notebook (`.md`). For each one this adds

- ``_sources/CHAPTER.ipynb`` in the built book, converted by jupytext, without outputs;
- a bar below the title that offers it and says how to open the chapter in JupyterLab. The link
  holds the notebook itself: a browser does not download a file next to a page from ``file://``.

On the references page it corrects an ARIA role. Papers that would be cited alike ("Narayanan et
al., 2021") get a letter behind their year. Plots made with pyplot follow the page to dark mode, as
the library's own figures do.

It also puts the cache of executed cells in a folder named after a hash of the library's sources:
jupyter-cache looks at the cells only, and would show old figures after a change of distlearn.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import string
from pathlib import Path
from typing import Any

import jupytext
from sphinx.application import Sphinx
from sphinx.config import Config

import distlearn
from distlearn.plots import PALETTE
from distlearn.plots.picture import dark_style

BAR = """
<nav class="chapter-bar" aria-label="This chapter as a notebook">
<a class="chapter-download" href="{url}" download="{name}.ipynb">Download as a notebook</a>
<span>or run it in JupyterLab: <code>make lab</code>, then open <code>book/{name}.md</code></span>
</nav>
"""


def library_hash() -> str:
    """Hash of every source and data file of the installed distlearn."""
    root = Path(distlearn.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(str(path.relative_to(root)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def key_cache_by_library(app: Sphinx, config: Config) -> None:
    """Point myst-nb's cache at this library's folder and drop those of older versions."""
    caches = Path(app.outdir).parent / ".jupyter_cache"
    current = caches / library_hash()
    if caches.is_dir():
        for old in caches.iterdir():
            if old != current:
                shutil.rmtree(old) if old.is_dir() else old.unlink()
    config.nb_execution_cache_path = str(current)


def is_notebook(app: Sphinx, pagename: str) -> bool:
    """Whether a page has cells that run."""
    return "kernelspec" in app.env.metadata.get(pagename, {})


def add_notebook(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any],
                 doctree: object) -> None:
    """Write a chapter's notebook, offer it in the header, and put the bar below the title."""
    if app.builder.format != "html" or not is_notebook(app, pagename):
        return
    notebook = jupytext.read(app.env.doc2path(pagename))
    text = jupytext.writes(notebook, fmt="ipynb")
    target = Path(app.outdir, "_sources", f"{pagename}.ipynb")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    context["ipynb_source"] = f"{pagename}.ipynb"  # the theme lists it under "download"
    if context.get("body") and pagename != app.config.root_doc:
        data = base64.b64encode(text.encode()).decode()
        bar = BAR.format(url=f"data:application/x-ipynb+json;base64,{data}", name=pagename)
        context["body"] = context["body"].replace("</h1>", f"</h1>{bar}", 1)


def make_references_a_list(app: Sphinx, pagename: str, templatename: str,
                           context: dict[str, Any], doctree: object) -> None:
    """Give docutils' citations the role that their parent, a list, asks of its children."""
    if 'role="doc-biblioentry"' in context.get("body", ""):
        context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')


def tell_years_apart(app: Sphinx) -> None:
    """2021a, 2021b: for references that the same authors' names and year would cite alike."""
    alike: dict[tuple[str, ...], list[Any]] = {}
    for entry in app.env.get_domain("cite").bibdata.data.entries.values():
        names = [" ".join(person.last_names) for person in entry.persons.get("author", ())]
        names = [names[0], "et al."] if len(names) > 2 else names
        year = entry.fields["year"].rstrip(string.ascii_lowercase)  # it may come from a cache
        alike.setdefault((*names, year), []).append(entry)
    for (*_, year), entries in alike.items():
        letters = string.ascii_lowercase if len(entries) > 1 else [""]
        for letter, entry in zip(letters, entries, strict=False):
            entry.fields["year"] = year + letter


TEXT, GRID = PALETTE["dark"]["text"], PALETTE["dark"]["grid"]
PYPLOT = {  # matplotlib's own colours, and what dark makes of them
    "#000000": TEXT, "#b0b0b0": GRID, "#cccccc": GRID,
    "#1f77b4": "#6ab7f5", "#ff7f0e": "#ffa04d", "#2ca02c": "#63cf63", "#d62728": "#ff8080",
    "#9467bd": "#bf9be0", "#8c564b": "#c79287",
}


def let_plots_go_dark(app: Sphinx, error: Exception | None) -> None:
    """Add to pyplot's SVG files the rules that the library's own figures bring with them."""
    if error is not None or app.builder.format != "html":
        return
    glyphs = f"@media (prefers-color-scheme:dark){{g[id^='text_']{{fill:{TEXT}}}}}"
    style = f"<style>{glyphs}{dark_style(PYPLOT)}</style>"
    for path in Path(app.outdir, "_images").glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        if "https://matplotlib.org" in text[:2000] and "prefers-color-scheme" not in text:
            path.write_text(text.replace("</svg>", f"{style}\n</svg>"), encoding="utf-8")


TOGGLE = '<summary><span class="toctree-toggle"'


def name_toggles(app: Sphinx, error: Exception | None) -> None:
    """Say aloud what the arrow beside a chapter in the sidebar opens; the theme leaves it bare."""
    if error is not None or app.builder.format != "html":
        return
    named = TOGGLE.replace("<summary>", '<summary aria-label="Pages of this chapter">')
    for path in Path(app.outdir).glob("*.html"):
        text = path.read_text(encoding="utf-8")
        if TOGGLE in text:
            path.write_text(text.replace(TOGGLE, named), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the functions above."""
    app.connect("config-inited", key_cache_by_library)
    app.connect("builder-inited", tell_years_apart)
    app.connect("build-finished", let_plots_go_dark)
    app.connect("build-finished", name_toggles)
    app.connect("html-page-context", add_notebook)
    app.connect("html-page-context", make_references_a_list)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
