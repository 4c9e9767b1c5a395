"""Time json.loads on a plain JSON file read before: `json_run.py FILE`, prints seconds."""

import json
import sys
import time
from pathlib import Path


def main() -> None:
    text = Path(sys.argv[1]).read_bytes()
    start = time.perf_counter()
    json.loads(text)
    print(f"seconds {time.perf_counter() - start:.4f}")


if __name__ == "__main__":
    main()
