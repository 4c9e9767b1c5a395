"""A cell does the same with the magic, without it, while it is shown live, and under ``on``.

Every cell runs in real kernels: bare, below ``%%omni_perf``, below ``%%omni_perf --live``, and
with ``%omni_perf on``. What a front end sees must be equal but for our chart, and so must the
namespace and the history at the end. All of it runs a second time for a user who logs
everything.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel, Ran, is_chart

WRITTEN = Path(tempfile.gettempdir()) / f"omni_perf_same_behaviour_{os.getpid()}.txt"

CELLS: dict[str, str] = {
    "value": "x = 6\nx * 7",
    "no value": "x = 6\nx * 7;",
    "none": "None",
    "several values": "1\n2\n3",
    "print": "print('one')\nprint('two')",
    "streams in order": "import sys\nfor i in range(3):\n    print(i)\n    print(i, file=sys.stderr)\n    sys.stdout.flush(); sys.stderr.flush()",
    "print and value": "print('printed')\n'value'",
    "display": "from IPython.display import display, HTML\ndisplay(HTML('<b>1</b>'))\nprint('then')\ndisplay({'text/plain': 'raw'}, raw=True)\n'last'",
    "updated display": "h = display('a', display_id='d1')\nh.update('b')",
    "clear output": "from IPython.display import clear_output\nprint('gone')\nclear_output(wait=True)\nprint('there')",
    "rich result": "class R:\n    def _repr_html_(self): return '<i>r</i>'\n    def __repr__(self): return 'R'\nR()",
    "exception": "def f():\n    return 1 / 0\n\nf()",
    "exception in the first line": "1 / 0",
    "chained exception": "try:\n    {}['k']\nexcept KeyError as e:\n    raise RuntimeError('outer') from e",
    "exception group": "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])",
    "assertion": "assert x == 7, 'not seven'",
    "traceback of an earlier cell": "f()",
    "syntax error": "for i in range(3)\n    print(i)",
    "indentation error": "if True:\nprint(1)",
    "invalid utf": "'\\udc80'",
    "sys.exit": "import sys\nsys.exit(3)",
    "keyboard interrupt": "raise KeyboardInterrupt",
    "base exception": "class Odd(BaseException): pass\nraise Odd('odd')",
    "empty": "",
    "only a comment": "# nothing",
    "future import": "from __future__ import annotations\ndef g(a: undefined_name): return a\ng.__annotations__",
    "still future": "def g2(a: also_undefined): return a\ng2.__annotations__",
    "docstring": "'''cell docstring'''",
    "await": "import asyncio\nawait asyncio.sleep(0.01)\n'awaited'",
    "await raising": "await asyncio.sleep(0)\n1 / 0",
    "async for and with": "async def gen():\n    for i in range(3):\n        yield i\n[i async for i in gen()]",
    "task left running": "t = asyncio.create_task(asyncio.sleep(0.01, 'done'))\nt.done()",
    "task of the cell before": "await t",
    "time magic": "%time sum(range(1000))",
    "timeit magic": "%timeit -n 1 -r 1 sum(range(10))",
    "cell time": "%%time\ntotal = 0\nfor i in range(1000):\n    total += i\ntotal",
    "cell time raising": "%%time\nfoo = 1\n1 / 0",
    "cell timeit": "%%timeit -n 1 -r 1\nsum(range(10))",
    "cell capture": "%%capture seen\nprint('inside')\n5",
    "captured": "seen.stdout, [str(o.data) for o in seen.outputs]",
    "bash": "%%bash\necho from bash\nexit 0",
    "writefile": f"%%writefile {WRITTEN}\nhello",
    "shell assignment": "files = !echo a b\nfiles",
    "shell failing": "!exit 7\n_exit_code",
    "help": "len?",
    "line magic": "%who_ls function",
    "unknown magic": "%no_such_magic",
    "unknown cell magic": "%%no_such_magic\nx",
    "underscore": "_",
    "out": "sorted(Out)",
    "in": "In[4:7]",
    "frames": "import sys\n[sys._getframe(n).f_code.co_name for n in range(2)], sys._getframe().f_lineno",
    "trace functions": "import sys\nsys.gettrace(), sys.getprofile()",
    "recursion": "def r(n): return 0 if n == 0 else 1 + r(n - 1)\nr(900)",
    "recursion error": "def deep(): return deep()\ntry:\n    deep()\nexcept RecursionError as e:\n    print(type(e).__name__)",
    "warnings": "import warnings\nwith warnings.catch_warnings():\n    warnings.simplefilter('always')\n    warnings.warn('careful')",
    "logging": "import logging\nlogging.getLogger('user').warning('logged')",
    "thread printing": "import threading\nth = threading.Thread(target=lambda: print('from a thread'))\nth.start(); th.join()",
    "thread raising": "th = threading.Thread(target=lambda: 1 / 0, name='raiser')\nth.start(); th.join()",
    "fork": "import os\npid = os.fork()\nif pid == 0:\n    os._exit(5)\nos.waitpid(pid, 0)[1] >> 8",
    "wait for any child": "import subprocess\np = subprocess.Popen(['true'])\nos.wait()[0] == p.pid",
    "no child is left": "try:\n    os.waitpid(-1, os.WNOHANG)\nexcept ChildProcessError as e:\n    print(e)",
    "no children seen": "import psutil\npsutil.Process().children()",
    "subprocess": "subprocess.run(['echo', 'out'], capture_output=True).stdout",
    "process pool": "from concurrent.futures import ProcessPoolExecutor\nimport multiprocessing\nwith ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('fork')) as pool:\n    squares = list(pool.map(abs, [-1, -2]))\nsquares",
    "signal handlers": "import signal\nsignal.getsignal(signal.SIGCHLD), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT).__name__",
    "alarm": "def ring(*a): print('ring')\nold = signal.signal(signal.SIGALRM, ring)\nsignal.setitimer(signal.ITIMER_REAL, 0.02)\nimport time; time.sleep(0.05)\nsignal.signal(signal.SIGALRM, old)",
    "change directory": "here = os.getcwd()\nos.chdir('/')\nprint(os.getcwd())\nos.chdir(here)",
    "stdout replaced": "import io\nreal = sys.stdout\nsys.stdout = io.StringIO()\nprint('hidden')\nhidden = sys.stdout.getvalue()\nsys.stdout = real\nhidden",
    "environment": "[k for k in os.environ if 'OMNI' in k and k != 'OMNI_PERF_BINARY']",
    "random is not drawn from": "import random\nrandom.seed(1)\nrandom.random()",
    "random goes on": "random.random()",
    "nested run_cell": "r = get_ipython().run_cell('y = 5\\ny + 1')\nr.result, r.success",
    "nested failing run_cell": "r = get_ipython().run_cell('1 / 0')\ntype(r.error_in_exec).__name__",
    "run_line_magic": "get_ipython().run_line_magic('pwd', '') == os.getcwd()",
    "cell function of ipython": "get_ipython().execution_count",
    "exec of code": "exec(compile('z = 1\\nraise ValueError(z)', '<made up>', 'exec'))",
    "generator": "def numbers():\n    try:\n        yield 1\n    finally:\n        print('closed')\nn = numbers(); next(n)\ndel n",
    "object finalised": "class F:\n    def __del__(self): print('finalised')\no = F()\ndel o",
    "del of a missing name": "del no_such_name",
    "global and nonlocal": "count = 0\ndef up():\n    global count\n    count += 1\nup(); count",
    "class body": "class K:\n    a = 1\n    b = a + 1\nK.b",
    "walrus at top": "(w := 5)\nw",
    "magic in the middle": "before = 1\n%who_ls int\nafter = 2",
    "question mark in a string": "'?'",
    "percent line continues": "10 \\\n% 3",
    "names": "sorted(n for n in globals() if not n.startswith('_') and n not in ('In', 'Out'))",
    "history": "[c for c in In if c][-2]",
    "raw history": "%history -n 4-6",
    "last input": "_i",
    "last exception": "sys.last_type.__name__",
}


def below_the_magic(cell: str) -> str:
    return "%%omni_perf --quiet\n" + cell


def below_the_live_magic(cell: str) -> str:
    return "%%omni_perf --live\n" + cell


def below_a_comment(cell: str) -> str:
    """What the magic's line becomes: tracebacks quote it, and line numbers count it."""
    return cell if cell.startswith("%%") else "# %%omni_perf --quiet\n" + cell


LOGGING = {
    "as usual": "pass",
    "with everything logged": "__import__('logging').basicConfig(level=1, format='%(name)s: %(message)s')",
}


@pytest.fixture(scope="module", params=LOGGING)
def kernels(request: pytest.FixtureRequest) -> Iterator[dict[str, Kernel]]:
    with (
        Kernel(load=False) as bare,
        Kernel(load=False) as commented,
        Kernel() as magic,
        Kernel() as live,
        Kernel() as on,
    ):
        assert "Every cell is profiled" in on.run("%omni_perf on -t 0").text("stdout")
        on.run("%omni_perf on -t 0")
        WRITTEN.touch()
        # Equal execution counts, and the same names, everywhere.
        for kernel, filler in ((bare, 3), (commented, 3), (magic, 2), (live, 2), (on, 0)):
            for _ in range(filler):
                kernel.run("pass")
            assert seen(kernel.run(LOGGING[request.param]))[0] == []
        yield {"bare": bare, "commented": commented, "magic": magic, "live": live, "on": on}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_does_the_same(kernels: dict[str, Kernel], name: str) -> None:
    cell = CELLS[name]
    with_comment = seen(kernels["commented"].run(below_a_comment(cell)))
    with_magic = seen(kernels["magic"].run(below_the_magic(cell)))
    while_live = seen(kernels["live"].run(below_the_live_magic(cell)))
    without = seen(kernels["bare"].run(cell))
    with_on = seen(kernels["on"].run(cell))
    assert with_magic == with_comment
    assert while_live == with_comment
    assert with_on == without


def seen(ran: Ran) -> list[Any]:
    """What is compared: outputs without our chart and sentences, made independent of time."""
    found: list[Any] = []
    for output in ran.outputs:
        if is_chart(output) or is_live(output):
            continue
        if output["type"] == "stream":
            text = without_ours(output["text"])
            last = found[-1] if found else None
            if text and isinstance(last, list) and last[0] == output["name"]:  # our output was in between
                last[1] += steady(text)
            elif text:
                found.append([output["name"], steady(text)])
        else:
            found.append(steadied({key: value for key, value in output.items() if key != "arrived"}))
    reply = {key: value for key, value in ran.reply.items() if key not in ("engine_info", "started")}
    return [found, steadied(reply)]


def is_live(output: dict[str, Any]) -> bool:
    """Whether it belongs to the display of a cell that is shown live."""
    return str(output.get("transient", {}).get("display_id", "")).startswith("omni_perf-")


def without_ours(text: str) -> str:
    """Drop the line for a cell that is too short for its rate."""
    return re.sub(r"^The cell ran .* Too short to profile: .*\n", "", text, flags=re.MULTILINE)


def steadied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: steadied(each) for key, each in value.items()}
    if isinstance(value, list):
        return [steadied(each) for each in value]
    return steady(value) if isinstance(value, str) else value


def steady(text: str) -> str:
    """Take out what differs from run to run: durations, ids, paths with the kernel's pid."""
    text = text.replace("%%omni_perf --live", "%%omni_perf --quiet")
    text = re.sub(r"\d+(\.\d+)? (ns|[µμ]s|us|ms|s|min)\b", "TIME", text)
    text = re.sub(r"(ipykernel_\d+/)?\d+\.py", "CELL.py", text)
    text = text.replace("# %%omni_perf", "%%omni_perf")  # in the history, as typed
    text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)
    text = re.sub(r"Thread-\d+|\(pid[ =]\d+\)", "THREAD", text)
    return re.sub(r"^(CPU times|Wall time).*$", r"\1", text, flags=re.MULTILINE)
