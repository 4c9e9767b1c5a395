"""A real JupyterLab in a real, headless Chromium.

Each test that uses `lab` gets a page of its own on one server for the whole
run. What is missing (Chromium, JupyterLab, playwright) skips the tests with the
reason. Pictures go to build/browser/ for a person to look at.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from requirement import missing

ROOT = Path(__file__).resolve().parents[3]
PICTURES = ROOT / "build" / "browser"
PATIENCE_MS = 120_000  # for a loaded machine; nothing waits that long when all is well


def chromium() -> str | None:
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if path := shutil.which(name):
            return path
    return None


class Server:
    """JupyterLab on a port of its own, its state in one temporary folder."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.notebooks = folder / "notebooks"
        self.notebooks.mkdir()
        self.settings = folder / "settings"
        self.env = env
        self.token = secrets.token_hex(16)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.log = (folder / "server.log").open("wb")
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser",
                f"--ServerApp.port={self.port}", "--ServerApp.ip=127.0.0.1", "--ServerApp.port_retries=0",
                f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={self.notebooks}",
                "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            ],
            stdout=self.log, stderr=self.log, env=env, cwd=self.notebooks,
        )  # fmt: skip
        self.url = f"http://127.0.0.1:{self.port}"
        self._wait(folder / "server.log")

    def _wait(self, log: Path) -> None:
        end = time.monotonic() + PATIENCE_MS / 1000
        while time.monotonic() < end and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/api?token={self.token}", timeout=5).close()
                return
            except OSError:
                time.sleep(0.2)
        raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def simulate_gpu(folder: Path) -> dict[str, str]:
    """Build the fake NVML library, so that GPU lanes are drawn here, too."""
    library = folder / "libnvidia-ml.so.1"
    build = ROOT / "sidecar" / "measure" / "gpu" / "testdata" / "fakenvml" / "build.sh"
    subprocess.run([str(build), str(library)], check=True)
    feed = folder / "gpu.feed"
    feed.touch()
    return {"OMNI_PERF_NVML_LIBRARY": str(library), "OMNI_PERF_FAKE_NVML_FEED": str(feed)}


def set_up(settings: Path) -> None:
    """Keep JupyterLab from asking questions on top of what is looked at."""
    plugin = settings / "@jupyterlab" / "apputils-extension"
    plugin.mkdir(parents=True)
    (plugin / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed (make build installs it)")
    folder = tmp_path_factory.mktemp("lab")
    env = os.environ | {
        "HOME": str(folder),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    env |= simulate_gpu(folder)
    set_up(folder / "settings")
    s = Server(folder, env)
    yield s
    s.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make build installs it)")
    path = chromium()
    if path is None:
        missing("chromium", "no Chromium here; on Debian: apt-get install chromium")
    with api.sync_playwright() as p:
        args = ["--no-sandbox"] if os.geteuid() == 0 else []
        b = p.chromium.launch(executable_path=path, args=args)
        yield b
        b.close()


WITHOUT_EXTENSION = """
document.addEventListener("readystatechange", () => {
    const element = document.getElementById("jupyter-config-data");
    const config = JSON.parse(element?.textContent || "{}");
    if (document.readyState !== "interactive" || !config.federated_extensions) return;
    config.federated_extensions = config.federated_extensions.filter((e) => e.name !== "omni-perf");
    element.textContent = JSON.stringify(config);
});
"""
"""Has JupyterLab find its settings as they are where omni_perf's extension is not installed: before its scripts run."""


class Lab:
    """One page of JupyterLab."""

    def __init__(self, server: Server, page: Any) -> None:
        self.server = server
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda e: self.errors.append(str(e)))

    def open(self, name: str, cells: list[Any] | None = None, *, dark: bool = False, extension: bool = True) -> None:
        """Opens a notebook; with cells (code, or whole ones), one made of them.

        Once without the extension, the page does not have it again.
        """
        if cells is not None:
            notebook = nbformat.v4.new_notebook(
                cells=[nbformat.v4.new_code_cell(c) if isinstance(c, str) else c for c in cells]
            )
            notebook.metadata["kernelspec"] = {
                "name": "python3",
                "display_name": "Python 3",
                "language": "python",
            }
            nbformat.write(notebook, str(self.server.notebooks / name))
        if not extension:
            self.page.add_init_script(WITHOUT_EXTENSION)
        self.page.goto(f"{self.server.url}/lab/tree/{name}?token={self.server.token}&reset")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=PATIENCE_MS)
        # The theme is a setting of the server, which the tests share.
        self.command("apputils:change-theme", {"theme": "JupyterLab Dark" if dark else "JupyterLab Light"})
        body = f'body[data-jp-theme-light="{"false" if dark else "true"}"]'
        self.page.wait_for_selector(body, state="attached", timeout=PATIENCE_MS)

    def command(self, name: str, args: dict[str, Any] | None = None) -> None:
        self.page.evaluate("([n, a]) => window.jupyterapp.commands.execute(n, a)", [name, args or {}])

    def begin(self, name: str) -> None:
        """Begins a command: what runs cells ends with them."""
        self.page.evaluate("name => void window.jupyterapp.commands.execute(name)", name)

    def run_all(self) -> None:
        """Runs every cell and waits until the last one has its number."""
        self.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'",
            timeout=PATIENCE_MS,
        )
        self.command("notebook:run-all-cells")
        self.page.wait_for_function(
            """() => {
                const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')];
                return prompts.length > 0 && prompts.every(p => /\\[\\d+\\]/.test(p.textContent));
            }""",
            timeout=PATIENCE_MS,
        )

    def save(self, name: str) -> Any:
        self.command("docmanager:save")
        path = self.server.notebooks / name
        end = time.monotonic() + PATIENCE_MS / 1000
        while time.monotonic() < end:
            saved = json.loads(path.read_text())
            if all(c.get("execution_count") for c in saved["cells"] if c["cell_type"] == "code"):
                return saved
            time.sleep(0.1)
        raise AssertionError(f"{name} was not saved with its outputs")

    def picture(self, name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(PICTURES / f"{name}.png"))

    def outputs(self, selector: str) -> Any:
        return self.page.locator(f".jp-OutputArea-output {selector}")


@pytest.fixture
def lab(server: Server, browser: Any) -> Iterator[Lab]:
    context = browser.new_context(viewport={"width": 1600, "height": 1100})  # an output as wide as its picture
    yield Lab(server, context.new_page())
    context.close()


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What a cell shows, by form ("cell" and "folded"): data by media type."""
    folder = tmp_path_factory.mktemp("bundles")
    program = ROOT / "sidecar" / "testkit" / "harness"
    report = ROOT / "sidecar" / "understand" / "report" / "testdata" / "cell.json"
    made = subprocess.run(
        ["go", "run", str(program), "-report", str(report), "-o", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode:
        missing("go", f"Go is not here; it makes the outputs: {made.stderr[-200:]}")
    return {form: json.loads((folder / f"{form}.json").read_text()) for form in ("cell", "folded")}
