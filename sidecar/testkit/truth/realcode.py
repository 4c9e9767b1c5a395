"""Runs real code, to be sampled or traced: `realcode.py run PROGRAM` or `realcode.py trace FILE PROGRAM`.

`trace` writes every pair of caller and callee that occurs to FILE, one JSON line each: for both the file,
the qualified name and the first line. `run` prints READY, waits for a byte on standard input, runs the
program, prints DONE, and ends when standard input is closed.

PROGRAM is one of

    library              much of the standard library, imported, documented, parsed and tested
    import NAME…         imports packages
    pytest PACKAGE…      their tests
"""

import importlib
import json
import os
import sys
import threading

CALLS = {}
"""(code of the caller, code of the callee) by their addresses: code of two files may be equal."""


def library():
    import argparse, ast, bisect, collections, dataclasses, difflib, doctest, email, json, pickle, pydoc, textwrap, tokenize, typing, unittest

    names = [
        "argparse",
        "asyncio.tasks",
        "configparser",
        "csv",
        "enum",
        "html.parser",
        "http.client",
        "logging",
        "mailbox",
        "plistlib",
        "sqlite3",
        "tarfile",
        "xml.etree.ElementTree",
        "wsgiref.handlers",
    ]
    for name in names:
        module = importlib.import_module(name)
        text = pydoc.render_doc(module, renderer=pydoc.plaintext)
        textwrap.wrap(text[:20_000], 60)
        with open(bisect.__file__, "rb") as file:
            source = file.read()
        tree = ast.parse(source)
        ast.unparse(tree)
        list(tokenize.tokenize(iter(source.splitlines(True)).__next__))
        pickle._loads(pickle._dumps([ast.dump(tree)[:2000], {name: collections.Counter(source[:1000])}]))
        json.dumps(json.loads(json.dumps({str(n): list(range(20)) for n in range(50)})), indent=1)
        email.message_from_string("Subject: x\nTo: a@b\n\n" + text[:1000]).as_string()
        difflib.unified_diff(text.split("\n")[:200], text.upper().split("\n")[:200])
        point = dataclasses.make_dataclass("Point", [("x", int), ("y", typing.Optional[int], None)])
        sorted([point(n % 7) for n in range(100)], key=lambda p: p.x)
        collections.namedtuple("Row", ["a", "b", "c"])(1, 2, 3)._asdict()
        parser = argparse.ArgumentParser()
        for letter in "abcdef":
            parser.add_argument("--" + letter * 3, help=letter)
        parser.parse_args(["--aaa", "1"])
        parser.format_help()
    suite = unittest.TestSuite(
        [unittest.FunctionTestCase(lambda: doctest.script_from_examples(doctest.__doc__)) for n in range(20)]
    )
    with open(os.devnull, "w") as nothing:
        unittest.TextTestRunner(stream=nothing).run(suite)


def run_program(kind, *names):
    if kind == "library":
        library()
    elif kind == "import":
        for name in names:
            importlib.import_module(name)
    else:
        import pytest

        pytest.main(["-q", "-p", "no:cacheprovider", "--pyargs", *names])


def trace_monitoring():
    monitoring, tool = sys.monitoring, sys.monitoring.PROFILER_ID
    events = monitoring.events.PY_START | monitoring.events.PY_RESUME | monitoring.events.PY_THROW

    def called(code, *_):
        caller = sys._getframe(1).f_back
        if caller is not None:
            CALLS[id(caller.f_code), id(code)] = caller.f_code, code

    monitoring.use_tool_id(tool, "calls")
    for event in (monitoring.events.PY_START, monitoring.events.PY_RESUME, monitoring.events.PY_THROW):
        monitoring.register_callback(tool, event, called)
    monitoring.set_events(tool, events)
    return lambda: monitoring.set_events(tool, 0)


def trace_profile():
    def called(frame, event, _argument):
        if event == "call" and frame.f_back is not None:
            CALLS[id(frame.f_back.f_code), id(frame.f_code)] = frame.f_back.f_code, frame.f_code

    threading.setprofile(called)
    sys.setprofile(called)
    return lambda: (sys.setprofile(None), threading.setprofile(None))


def describe(code):
    return [code.co_filename, code.co_qualname, code.co_firstlineno]


def main():
    mode, *arguments = sys.argv[1:]
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if mode == "trace":
        path, *program = arguments
        stop = trace_monitoring() if hasattr(sys, "monitoring") else trace_profile()
        try:
            run_program(*program)
        finally:
            stop()
        with open(path, "w") as file:
            for pair in {json.dumps([*describe(caller), *describe(callee)]) for caller, callee in CALLS.values()}:
                file.write(pair + "\n")
        return
    print("READY", file=out, flush=True)
    os.read(0, 1)
    run_program(*arguments)
    print("DONE", file=out, flush=True)
    os.read(0, 1)


if __name__ == "__main__":
    main()
