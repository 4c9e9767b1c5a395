import re
from pathlib import Path

import pytest
from omni_perf import contract

PROTO = Path(__file__).parents[2] / "sidecar" / "api" / "omni_perf.proto"

FIELD = re.compile(r"(repeated\s+)?([\w.]+)\s+(\w+)\s*=\s*\d+\s*;")

TYPES = {
    "string": "str",
    "bytes": "str",
    "int32": "int",
    "uint32": "int",
    "int64": "str",
    "uint64": "str",
    "double": "float",
    "bool": "bool",
}
"""As protojson writes them."""


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def messages(text: str) -> dict[str, dict[str, str]]:
    """Read message name to field name to type in Python; nested messages by their own name."""
    found: dict[str, dict[str, str]] = {}
    text = re.sub(r"//.*", "", text)
    open_messages: list[str] = []
    for token in re.finditer(r"message\s+(\w+)\s*\{|\}|" + FIELD.pattern, text):
        if token[1]:
            open_messages.append(token[1])
            found[token[1]] = {}
        elif token[0] == "}":
            if open_messages:
                open_messages.pop()
        elif open_messages:
            kind = TYPES.get(token[3], token[3].rpartition(".")[2])
            found[open_messages[-1]][camel(token[4])] = f"list[{kind}]" if token[2] else kind
    return found


def test_the_messages_are_those_of_the_proto() -> None:
    in_proto = messages(PROTO.read_text())
    in_python: dict[str, dict[str, str]] = {}
    for name, thing in vars(contract).items():
        if hasattr(thing, "__total__"):
            in_python[name] = {
                field: kind.__forward_arg__.replace("Int64", "str") for field, kind in thing.__annotations__.items()
            }
    assert in_python == in_proto


def test_the_service_is_that_of_the_proto() -> None:
    text = PROTO.read_text()
    package = re.search(r"package ([\w.]+);", text)
    service = re.search(r"service (\w+)", text)
    assert package
    assert service
    assert f"/{package[1]}.{service[1]}/" == contract.SERVICE


INTERVALS = Path(__file__).parents[2] / "sidecar" / "measure" / "timeline" / "intervals.go"

KERNEL_WAIT = Path(__file__).parents[2] / "sidecar" / "understand" / "gpuidle" / "device.go"

SECONDS = {"time.Microsecond": 1e-6, "time.Millisecond": 1e-3, "time.Second": 1, "time.Minute": 60, "time.Hour": 3600}


def test_intervals_are_those_of_the_sidecar() -> None:
    found = {
        name: float(count or 1) * SECONDS[unit]
        for name, count, unit in re.findall(r"(\w+)\s+= (?:(\d+) \* )?(time\.\w+)", INTERVALS.read_text())
    }
    assert found["DefaultInterval"] == contract.DEFAULT_INTERVAL_S
    assert found["DefaultFigureInterval"] == contract.DEFAULT_SYSTEM_INTERVAL_S
    assert found["MaxInterval"] == contract.LONGEST_INTERVAL_S
    kernel_wait = re.search(r"const KernelWait = (\d+) \* (time\.\w+)", KERNEL_WAIT.read_text())
    assert kernel_wait
    assert int(kernel_wait[1]) * SECONDS[kernel_wait[2]] == pytest.approx(contract.DEFAULT_KERNEL_WAIT_S)
