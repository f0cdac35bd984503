"""What this machine offers distlearn: packages, engines, and what shuts submissions in."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from distlearn.extras import install_command


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes
    ----------
    name : str
    ok : bool
        There and usable.
    required : bool
        Whether distlearn cannot do without it.
    detail : str
        Version, or what was seen.
    remedy : str
        How to get it; empty if it is there.
    """

    name: str
    ok: bool
    required: bool
    detail: str
    remedy: str = ""


def report() -> dict[str, list[Finding]]:
    """Everything that was found, by section."""
    return {"system": system(), "packages": packages(), "engines": engines(),
            "sandbox": sandbox()}


def to_dict(sections: dict[str, list[Finding]]) -> dict[str, Any]:
    """The report as plain values, with ``ok`` over all that is required."""
    found = [finding for section in sections.values() for finding in section]
    return {
        "ok": all(finding.ok for finding in found if finding.required),
        **{name: [asdict(finding) for finding in section] for name, section in sections.items()},
    }


def system() -> list[Finding]:
    """Python, operating system, cores and memory."""
    version = platform.python_version()
    new_enough = sys.version_info >= (3, 11)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = _memory_bytes()
    return [
        Finding("Python", new_enough, True, f"{version}, {sys.executable}",
                "" if new_enough else "install Python 3.11 or later"),
        Finding("system", True, False, platform.platform(terse=True)),
        Finding("cores", True, False, f"{cores} usable"),
        Finding("memory", memory > 0, False,
                f"{memory / 2**30:.1f} GiB" if memory else "not known on this system"),
    ]


def _memory_bytes() -> int:
    """Memory this process may use, in bytes: the machine's or the container's, if that is less."""
    limits = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        if Path(name).is_file() and (text := Path(name).read_text().strip()).isdigit():
            limits.append(int(text))
    return min(limits, default=0)


def packages() -> list[Finding]:
    """What the package's own metadata says it needs, and the tools of book, lab and tests."""
    findings = []
    for name, needed in _requirements():
        version = _version(name)
        ok = version is not None and _satisfies(version, needed)
        detail = version or "not installed"
        findings.append(Finding(name, ok, True, detail if ok else f"{detail}, needs {needed}",
                                "" if ok else f"pip install '{name}{needed}'"))
    for name, what in (("jupyter-book", "build the book: make book"),
                       ("jupyterlab", "work in notebooks: make lab"),
                       ("pytest", "run the tests: make test")):
        version = _version(name)
        findings.append(Finding(name, version is not None, False, version or "not installed",
                                "" if version else what))
    return findings


def _requirements() -> list[tuple[str, str]]:
    """Run-time requirements (no extras) as (name, version rule)."""
    try:
        lines = importlib.metadata.requires("distlearn") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    matches = [re.match(r"([\w.-]+)\s*([^;]*)", line) for line in lines if "extra ==" not in line]
    return [(match[1], match[2].strip()) for match in matches if match]


def _satisfies(version: str, rule: str) -> bool:
    """Whether a version is at least what a ``>=`` rule asks for; other rules are not judged."""
    match = re.search(r">=\s*([\d.]+)", rule)

    def numbers(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text.partition("+")[0])]

    return match is None or numbers(version) >= numbers(match[1])


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def engines() -> list[Finding]:
    """The engines that can run a program over ranks, without importing any of them."""
    findings = [Finding("virtual", True, True, "ranks inside this process, always there")]
    mpi4py, launcher = _version("mpi4py"), _mpiexec()
    findings.append(Finding(
        "mpi", bool(mpi4py and launcher), False,
        f"mpi4py {mpi4py or 'not installed'}, mpiexec {launcher or 'not found'}",
        "" if mpi4py and launcher else install_command("mpi")))
    torch = _version("torch")
    findings.append(Finding("torch", torch is not None, False, torch or "not installed",
                            "" if torch else install_command("torch")))
    devices = _cuda_devices()
    toolkit = _torch_cuda()
    findings.append(Finding(
        "cuda", bool(devices and toolkit), False,
        f"{devices} device{'' if devices == 1 else 's'}, "
        + (f"torch built for CUDA {toolkit}" if toolkit else "no torch with CUDA"),
        "" if devices and toolkit else
        install_command("cuda") if devices else "needs an NVIDIA GPU with its driver"))
    return findings


def _mpiexec() -> str | None:
    """The MPI launcher: on the path, or beside this Python, where a wheel puts it."""
    return shutil.which("mpiexec") or shutil.which("mpiexec", path=str(Path(sys.executable).parent))


def _cuda_devices() -> int:
    """Devices that the CUDA driver counts; 0 without a driver."""
    import ctypes

    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return 0
    number = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(number)) != 0:
        return 0
    return number.value


def _torch_cuda() -> str | None:
    """The CUDA version torch was built for, from its version file: importing it takes seconds."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).with_name("version.py")
    cuda = runpy.run_path(str(file)).get("cuda") if file.is_file() else None
    return str(cuda) if cuda else None


def sandbox() -> list[Finding]:
    """What grading can use to keep a submission within bounds, each tried in a process of its own.

    None is required: what is missing makes grading less strict, never impossible.
    """
    linux = "needs Linux" if not sys.platform.startswith("linux") else ""
    allow = linux or ("switched off: sysctl kernel.unprivileged_userns_clone=1, or a container "
                      "that allows unshare and mount")
    return [
        Finding("child processes", True, True, "one for each question, ended after its time"),
        _tried("resource limits", "memory, processor time, file size", _LIMITS,
               "needs a Unix system: run grading on Linux or macOS"),
        _tried("namespaces", "no network, no other processes", _NAMESPACES, allow),
        _tried("private disk", "hidden cases and your files are out of sight, nothing is writable",
               _DISK, allow),
    ]


_LIMITS = """
import resource
for name in ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE"):
    limit = getattr(resource, name)
    resource.setrlimit(limit, (2**32, resource.getrlimit(limit)[1]))
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
try:
    bytearray(2**31)
except MemoryError:
    raise SystemExit(0)
raise SystemExit("no effect")
"""
_NAMESPACES = """
from distlearn.grading.confine import enter_namespaces
raise SystemExit(0 if enter_namespaces() else "not allowed")
"""
_DISK = """
import tempfile
from distlearn.grading.confine import enter_namespaces
from distlearn.grading.view import narrow
ok = enter_namespaces() and narrow(tempfile.gettempdir(), ())
raise SystemExit(0 if ok else "not allowed")
"""


def _tried(name: str, what: str, program: str, remedy: str) -> Finding:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=60, check=False)
    ok = done.returncode == 0
    last = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
    return Finding(name, ok, False, what if ok else f"{what}: {last}", "" if ok else remedy)
