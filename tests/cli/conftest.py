"""Two ways to run the command: in this process, and as the process a user starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from distlearn.cli.app import app


@pytest.fixture
def cli(monkeypatch):
    """Call the command in this process: ``cli("schedule", "1f1b", ...)`` -> result of CliRunner."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def call(*args, text=None):
        return CliRunner().invoke(app, [str(arg) for arg in args], input=text)

    return call


@pytest.fixture(scope="session")
def program():
    """Start the real command: ``program("--help", COLUMNS="40")`` -> CompletedProcess."""
    keep = {key: value for key, value in os.environ.items()
            if key not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "PYTHONIOENCODING")}

    def call(*args, cwd=None, stdin=None, **environment):
        return subprocess.run(
            [sys.executable, "-c", "from distlearn.cli import main; main()", *map(str, args)],
            capture_output=True, text=True, encoding="utf-8", cwd=cwd, input=stdin, timeout=120,
            env=keep | {"PYTHONUTF8": "1"} | environment, check=False)

    return call


@pytest.fixture
def empty(tmp_path, monkeypatch) -> Path:
    """An empty directory to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
