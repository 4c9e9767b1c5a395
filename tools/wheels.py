"""Builds the wheels of a release into dist and tries each: ``make wheels``.

manylinux_2_28 wheels for x86-64 and arm64, cross-compiled by Zig (tools/zigcc.py), whatever this
machine is. Each is checked for what it asks of a system, installed into an environment without
Go and without a compiler, and profiles a cell there; that of the other architecture does so
under qemu's user emulation where qemu-aarch64 and Debian's packages of Python can be had.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
TOOLS = ROOT / ".cache" / "wheels"
NEEDED = ("hatchling==1.27.0", "ziglang==0.17.1", "pyelftools==0.33")
OLDEST_GLIBC = (2, 28)


@dataclass(frozen=True)
class Architecture:
    """One architecture, as Go, Zig, pip and ELF call it."""

    go: str
    machine: str
    elf: str


ARCHITECTURES = (Architecture("amd64", "x86_64", "EM_X86_64"), Architecture("arm64", "aarch64", "EM_AARCH64"))


class NotPossibleError(Exception):
    """A wheel cannot be tried on this machine; the text says why."""


def main() -> None:
    """Build, check and try."""
    python = prepare()
    shutil.rmtree(DIST, ignore_errors=True)
    for architecture in ARCHITECTURES:
        wheel = build(python, architecture)
        oldest = check(python, wheel, architecture)
        size = wheel.stat().st_size / 1e6
        print(f"{wheel.name}: {size:.1f} MB, glibc {oldest} or newer")
        try:
            if architecture.machine == platform.machine():
                print("  " + try_here(wheel))
            else:
                print("  " + try_emulated(wheel, architecture))
        except NotPossibleError as reason:
            print(f"  not tried: {reason}")


def prepare() -> Path:
    """Make the environment with the pinned tools; return its Python."""
    python = TOOLS / "bin" / "python"
    if not python.exists():
        venv.create(TOOLS, with_pip=True)
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *NEEDED])
    return python


def build(python: Path, architecture: Architecture) -> Path:
    """Build one wheel and return its path."""
    cache = ROOT / ".cache" / "zig"
    glibc = ".".join(map(str, OLDEST_GLIBC))
    environment = {
        "GOOS": "linux",
        "GOARCH": architecture.go,
        "CC": f"{python} {ROOT / 'tools' / 'zigcc.py'} {architecture.machine}-linux-gnu.{glibc}",
        "OMNI_PERF_WHEEL_PLATFORM": f"manylinux_{glibc.replace('.', '_')}_{architecture.machine}",
        "ZIG_LOCAL_CACHE_DIR": str(cache),
        "ZIG_GLOBAL_CACHE_DIR": str(cache),
    }
    before = set(DIST.glob("*.whl"))
    command = [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    run([*command, "--no-deps", "--no-build-isolation", "--wheel-dir", DIST, ROOT], environment)
    (wheel,) = set(DIST.glob("*.whl")) - before
    return wheel


CHECK = """
import io, re, sys, zipfile
from elftools.elf.elffile import ELFFile
wheel = zipfile.ZipFile(sys.argv[1])
needed, libraries = set(), set()
for ending in ("/scripts/omni-perf", "/data/lib/omni_perf/exact.so"):
    (name,) = [name for name in wheel.namelist() if name.endswith(ending)]
    program = ELFFile(io.BytesIO(wheel.read(name)))
    versions = program.get_section_by_name(".gnu.version_r").iter_versions()
    needed |= {aux.name for _, auxes in versions for aux in auxes}
    libraries |= {tag.needed for tag in program.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")}
print(program["e_machine"], *sorted(needed), "/", *sorted(libraries))
for wanted in ("THIRD_PARTY_LICENSES.txt", "LICENSE", "NOTICE"):
    assert any(each.endswith(wanted) for each in wheel.namelist()), wanted + " is not in the wheel"
"""

SYSTEM_LIBRARIES = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "libresolv.so.2", "libm.so.6", "librt.so.1"}
"""Those of glibc, which every system with it has."""


def check(python: Path, wheel: Path, architecture: Architecture) -> str:
    """Return the oldest glibc that the program runs on; end if that is too new, or more is needed."""
    said = run([python, "-c", CHECK, wheel])
    versions, _, libraries = said.partition("/")
    machine, *symbols = versions.split()
    if machine != architecture.elf:
        sys.exit(f"{wheel.name} holds a program for {machine}")
    foreign = {name for name in libraries.split() if not name.startswith("ld-linux")} - SYSTEM_LIBRARIES
    if foreign:
        sys.exit(f"{wheel.name} needs {', '.join(sorted(foreign))}, which not every system has")
    found = [tuple(map(int, each.removeprefix("GLIBC_").split("."))) for each in symbols if each.startswith("GLIBC_")]
    if not found or max(found) > OLDEST_GLIBC:
        sys.exit(f"{wheel.name} needs glibc {max(found, default='?')}")
    return ".".join(map(str, max(found)))


def try_here(wheel: Path) -> str:
    """Profile a cell with the wheel in an environment that has neither Go nor a compiler."""
    with tempfile.TemporaryDirectory(prefix="wheel-") as folder:
        environment = Path(folder) / "venv"
        venv.create(environment, with_pip=True)
        bare = {"PATH": str(environment / "bin"), "HOME": folder, "IPYTHONDIR": folder}
        python = environment / "bin" / "python"
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel])
        for tool in ("go", "cc", "gcc", "clang"):
            assert shutil.which(tool, path=bare["PATH"]) is None
        version = run([environment / "bin" / "omni-perf", "version"], bare, clean=True).strip()
        run([python, ROOT / "tools" / "try_wheel.py"], bare, clean=True)
    return f"{version}: installed without Go and compiler, a cell was profiled"


def try_emulated(wheel: Path, architecture: Architecture) -> str:
    """Profile a cell with the wheel of another architecture under qemu."""
    qemu = shutil.which(f"qemu-{architecture.machine}-static") or shutil.which(f"qemu-{architecture.machine}")
    if qemu is None:
        raise NotPossibleError(f"there is no qemu-{architecture.machine} (apt-get install qemu-user-static)")
    with tempfile.TemporaryDirectory(prefix="wheel-") as name:
        folder = Path(name)
        root = unpack_debian(folder, architecture)
        site = folder / "site"
        (minor,) = {path.name.removeprefix("python") for path in (root / "usr" / "lib").glob("python3.1?")}
        run(
            [
                sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", site,
                "--only-binary", ":all:", "--python-version", minor, "--implementation", "cp",
                "--platform", f"manylinux_2_28_{architecture.machine}",
                "--platform", f"manylinux2014_{architecture.machine}", wheel,
            ]
        )  # fmt: skip
        # Programs of the other architecture start through qemu, by a script of its name.
        # The program cannot start itself again there, as it does to detach.
        program, emulator = folder / "omni-perf", f"{qemu} -L {root} {site / 'bin' / 'omni-perf'}"
        detach = f'[ "$*" = "serve --detach" ] && {{ exec 3<&0; setsid {emulator} serve <&3 & exit 0; }}'
        write_script(program, f'{detach}\nexec {emulator} "$@"')
        python = folder / "python"
        write_script(python, f'exec {qemu} -L {root} {root / "usr" / "bin" / f"python{minor}"} "$@"')
        emulated = {
            "PYTHONPATH": str(site),
            "OMNI_PERF_TRY_SHARE": str(site),  # pip --target puts the data of packages there
            "PYTHONHOME": str(root / "usr"),
            "OMNI_PERF_BINARY": str(program),
            "HOME": name,
            "IPYTHONDIR": name,
            "PATH": "/usr/bin:/bin",
            "OMNI_PERF_TRY_EMULATED": "1",
        }
        version = run([program, "version"], emulated, clean=True).strip()
        run([python, ROOT / "tools" / "try_wheel.py"], emulated, clean=True)
    return f"{version}: a cell was profiled under {Path(qemu).name}"


def write_script(path: Path, command: str) -> None:
    """Write an executable shell script."""
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)


def unpack_debian(folder: Path, architecture: Architecture) -> Path:
    """Unpack Debian's Python for an architecture, with what it needs, as a file system."""
    targets = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(CODENAME)", "Created-By: Packages"]
    try:
        listed = run(targets)
    except (OSError, SystemExit):
        raise NotPossibleError("there is no apt here to fetch a Python with") from None
    sites = re.findall(r"^(\S+) Debian (\w+)$", listed, re.MULTILINE)
    keyring = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    if not sites or not keyring.exists():
        raise NotPossibleError("apt knows no Debian mirror here")
    apt = folder / "apt"
    for needed in ("etc/apt.conf.d", "etc/preferences.d", "state/lists/partial", "cache/archives/partial"):
        (apt / needed).mkdir(parents=True)
    (apt / "status").touch()
    (apt / "etc" / "sources.list").write_text(f"deb [signed-by={keyring}] {sites[0][0]} {sites[0][1]} main\n")
    (apt / "conf").write_text(
        f'APT::Architecture "{architecture.go}";\nAPT::Architectures {{ "{architecture.go}"; }};\n'
        f'Dir::Etc "{apt}/etc";\nDir::State "{apt}/state";\nDir::State::status "{apt}/status";\n'
        f'Dir::Cache "{apt}/cache";\nAPT::Install-Recommends "false";\nAPT::Sandbox::User "";\n'
    )
    own = {"APT_CONFIG": str(apt / "conf")}
    run(["apt-get", "update", "-qq"], own)
    run(["apt-get", "install", "-y", "-qq", "--download-only", "-o", "Debug::NoLocking=true", "python3"], own)
    root = folder / "root"
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for package in (apt / "cache" / "archives").glob("*.deb"):
        run(["dpkg-deb", "-x", package, root])
    return root


def run(command: list[Any], environment: dict[str, str] | None = None, clean: bool = False) -> str:
    """Run a command and return what it printed; end with what it said if it fails."""
    env = {**({} if clean else os.environ), **(environment or {})}
    ran = subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{command[0]} failed ({ran.returncode}):\n{ran.stdout}{ran.stderr}")
    return ran.stdout


if __name__ == "__main__":
    main()
