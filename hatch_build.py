"""Build hook: compiles the Go program and puts it into the wheel as the omni-perf command.

The wheel is tagged py3-none-<platform>: no Python ABI is used, the program serves every
CPython. OMNI_PERF_WHEEL_PLATFORM overrides the platform tag, for release builds in a
manylinux image. A missing tool ends the build with one sentence that names it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, NoReturn

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAM = "omni-perf"
LIBRARY = "lib/omni_perf/exact.so"
LICENCE_NAMES = re.compile(r"(LICEN[CS]E|COPYING|NOTICE)", re.IGNORECASE)


class GoBuildHook(BuildHookInterface[Any]):
    """Compiles ./cmd/omni-perf before the wheel is packed."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the program and name its place to hatchling; version is the kind of wheel."""
        root = Path(self.root)
        output = root / "build" / "wheel"
        output.mkdir(parents=True, exist_ok=True)
        go = _go(root)
        program = output / PROGRAM
        _compile(go, root, program, str(self.metadata.version))  # pyright: ignore[reportUnknownMemberType]
        build_data["shared_scripts"][str(program)] = PROGRAM
        library = output / Path(LIBRARY).name
        _compile_library(go, root, library)
        build_data["shared_data"][str(library)] = LIBRARY
        build_data["pure_python"] = False
        if version == "standard":
            licences = output / "THIRD_PARTY_LICENSES.txt"
            licences.write_text(_third_party_licences(go, root), encoding="utf-8")
            build_data["force_include"][str(licences)] = "omni_perf/THIRD_PARTY_LICENSES.txt"
            build_data["tag"] = f"py3-none-{_platform()}"


def _go(root: Path) -> str:
    """Return the go command, or end the build with what is missing."""
    needed = re.search(r"^go (\S+)", (root / "go.mod").read_text(), re.MULTILINE)
    assert needed is not None
    go = shutil.which("go")
    if go is None:
        _fail(f"Go {needed[1]} or newer is needed to build omni_perf; see https://go.dev/dl/.")
    # Outside the module, GOTOOLCHAIN cannot answer for a newer one.
    found = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, cwd="/").stdout
    if _numbers(found) < _numbers(needed[1]):
        _fail(f"Go {needed[1]} or newer is needed to build omni_perf, this is {found.strip()}.")
    compiler = shlex.split(os.environ.get("CC") or "") or shlex.split(
        subprocess.run([go, "env", "CC"], capture_output=True, text=True, cwd="/").stdout
    )
    if not compiler or shutil.which(compiler[0]) is None:
        _fail(
            "A C compiler is needed to build omni_perf (gcc 4.7 or clang 3.4, or newer): "
            "apt-get install gcc libc6-dev, or set CC."
        )
    return go


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _compile(go: str, root: Path, program: Path, version: str) -> None:
    """Compile with the flags that the Makefile uses too.

    -trimpath, -s -w    no paths of this machine, no symbols: a third of the size
    -z lazy             go-nvml looks NVIDIA's functions up at run time; bound early the
                        program would not start on machines without the driver
    -Wno-deprecated…    go-nvml's headers print some 200 lines otherwise
    """
    flags = f"-s -w -X main.version={version} -extldflags=-Wl,-z,lazy"
    environment = {
        **os.environ,
        "CGO_ENABLED": "1",
        "CGO_CFLAGS": os.environ.get("CGO_CFLAGS", "-O2 -g") + " -Wno-deprecated-declarations",
    }
    command = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags", flags]
    command += ["-o", str(program), "./cmd/omni-perf"]
    built = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    if built.returncode != 0:
        print(built.stderr, file=sys.stderr)
        _fail("The omni-perf program could not be compiled; what the Go compiler said is above.")


def _compile_library(go: str, root: Path, library: Path) -> None:
    """Compile what records GPUs within a process; the program finds it from its own place."""
    compiler = os.environ.get("CC") or subprocess.run([go, "env", "CC"], capture_output=True, text=True).stdout.strip()
    built = subprocess.run(
        ["sh", str(root / "sidecar/measure/cupti/shim/build.sh"), str(library), "-s"],
        env={**os.environ, "CC": compiler},
        capture_output=True,
        text=True,
    )
    if built.returncode != 0:
        print(built.stderr, file=sys.stderr)
        _fail(f"{LIBRARY} could not be compiled; what the C compiler said is above.")


def _third_party_licences(go: str, root: Path) -> str:
    """Join the licences of every module in the program, and of Go itself."""
    listed = subprocess.run(
        [go, "list", "-deps", "-json=Module", "./cmd/omni-perf"],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    modules: dict[str, Path] = {}
    decoder, text = json.JSONDecoder(), listed.stdout.strip()
    while text:
        package, end = decoder.raw_decode(text)
        module: dict[str, Any] = package.get("Module") or {}
        if module and not module.get("Main"):
            modules[f"{module['Path']} {module['Version']}"] = Path(module["Dir"])
        text = text[end:].lstrip()
    goroot = subprocess.run([go, "env", "GOROOT"], capture_output=True, text=True, cwd=root).stdout
    modules["The Go standard library"] = Path(goroot.strip())
    parts: list[str] = []
    for name, folder in sorted(modules.items()):
        texts = [
            file.read_text(encoding="utf-8", errors="replace").strip()
            for file in sorted(folder.iterdir())
            if file.is_file() and LICENCE_NAMES.match(file.name)
        ]
        parts.append("\n\n".join([f"{'=' * 78}\n{name}\n{'=' * 78}", *texts]))
    return "\n\n\n".join(parts) + "\n"


def _platform() -> str:
    tag = os.environ.get("OMNI_PERF_WHEEL_PLATFORM") or sysconfig.get_platform()
    return re.sub(r"[-.]", "_", tag)


def _fail(sentence: str) -> NoReturn:
    print(f"omni_perf: {sentence}", file=sys.stderr)
    sys.exit(1)
