"""How commands end: exit codes, and errors as one line on stderr without a traceback."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

FOUND, USAGE, INTERNAL, BROKEN_PIPE = 1, 2, 70, 141


class Found(Exception):  # noqa: N818 - not an error of the program
    """A command ran well and found something wrong, for example an invalid schedule: code 1."""


class Group(TyperGroup):
    """The group of all commands; it turns what commands raise into exit codes."""

    def main(self, args: Any = None, prog_name: str | None = None, complete_var: str | None = None,
             standalone_mode: bool = True, windows_expand_args: bool = True, **extra: Any) -> Any:
        """Run like the base class, but report usage errors in one line."""
        try:
            result = super().main(args, prog_name, complete_var, standalone_mode=False,
                                  windows_expand_args=windows_expand_args, **extra)
        except typer.Abort:
            result = 130
        except SystemExit as end:  # how rich and typer answer a broken pipe
            if not isinstance(end.__context__, BrokenPipeError):
                raise
            result = BROKEN_PIPE
        except OSError as error:  # help that cannot be written
            result = fail(_input_message(error), USAGE)
        except Exception as error:
            if not hasattr(error, "format_message"):  # typer's usage errors have it
                raise
            result = fail(_usage_message(error), USAGE)
        code = result if isinstance(result, int) else 0
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: Any) -> Any:
        """Run the command; say what went wrong in one line."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes stdout once more on exit, which would complain again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return BROKEN_PIPE
        except Found as found:
            return fail(str(found), FOUND)
        except (ValueError, OSError) as error:
            return fail(_input_message(error), USAGE)
        except (typer.Exit, typer.Abort, KeyboardInterrupt):
            raise
        except Exception as error:
            if hasattr(error, "format_message") or "DISTLEARN_TRACEBACK" in os.environ:
                raise
            return fail(f"distlearn failed: {type(error).__name__}: {error} "
                        "(DISTLEARN_TRACEBACK=1 shows where)", INTERNAL)
        return result


def fail(message: str, code: int) -> int:
    """Write ``error: message`` on stderr, as one line, and return the exit code."""
    typer.echo("error: " + " ".join(message.split()), err=True)
    return code


def _input_message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror}"
    return str(error)


def _usage_message(error: Any) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return str(error.format_message()).rstrip(".") + hint
