"""The ``distlearn`` command: thin, every number comes from the library below it."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and exit with its code; the console entry point.

    Exit codes: 0 done; 1 a check, grade or validation found something wrong; 2 bad usage or
    input; 70 an error of distlearn itself; 130 interrupted; 141 the reader of a pipe went away.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started us
            # open until we end; plain open, so that nothing more is loaded before `app`
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    try:
        from distlearn.cli.app import app  # on use, so that Ctrl-C is quiet from the start

        app(prog_name="distlearn")
    except KeyboardInterrupt:
        sys.exit(130)
