"""Run the chapters that changed side by side, one kernel a core, before Sphinx reads them in turn.

Sphinx then finds them in myst-nb's cache. A chapter that fails is left out of the cache: it runs
again when it is read, and is reported there.
"""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from jupyter_cache import get_cache
from myst_nb.core.execute import create_client
from myst_nb.core.read import create_nb_reader
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging as sphinx_logging

SILENT = logging.getLogger("distlearn_book.silent")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


class _Quiet(logging.LoggerAdapter[logging.Logger]):
    """myst-nb's loggers take a subtype."""

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        return msg, {key: value for key, value in kwargs.items() if key == "exc_info"}


def run_at_once(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Fill the cache for the documents that Sphinx is about to read."""
    paths = [Path(env.doc2path(name)) for name in docnames]
    chapters = [path for path in paths
                if path.suffix == ".md" and "kernelspec:" in path.read_text(encoding="utf-8")]
    if len(chapters) < 2:
        return
    sphinx_logging.getLogger(__name__).info("running %d chapters", len(chapters))
    get_cache(env.mystnb_config.execution_cache_path).list_cache_records()  # makes its tables
    chapters.sort(key=lambda path: -path.stat().st_size)  # the longest first
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(lambda path: _run(env, path), chapters))


def _run(env: BuildEnvironment, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    reader = create_nb_reader(str(path), env.myst_config, env.mystnb_config, text)
    if reader is not None:
        client = create_client(reader.read(text), str(path), env.mystnb_config,
                               _Quiet(SILENT, {}), reader.read_fmt)
        with client:
            pass


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the function above."""
    app.connect("env-before-read-docs", run_at_once)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
