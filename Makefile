# Everything happens inside the checkout: .venv holds Python and the binary, .cache the tools.
#   make build generate summaries demo test flaky lint vulnerabilities bench notebooks notebooks-aa tasks memory fuzz soak truth wheels lab clean test-gpu
#   make test-SECTION runs one section of the tests: tools/suite.py --list has them.
# What the viewer (sidecar/show/viewer) is built of is committed: make generate brings it up to date.
# PYTHON=/path/to/python3.13 chooses the interpreter of .venv.

PYTHON      ?= $(shell tools/python)
GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
VERSION     := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' magics/omni_perf/_version.py)

VENV     ?= $(CURDIR)/.venv
BIN      := $(VENV)/bin
BINARY   := $(BIN)/omni-perf
EXACT    := $(VENV)/lib/omni_perf/exact.so
GO_FILES := $(shell find cmd sidecar jupyter -name '*.go' -not -name '*_test.go' 2>/dev/null) \
            $(shell find sidecar -type f -path '*/assets/*' 2>/dev/null) go.mod go.sum

# go-nvml's headers are full of deprecation marks; its symbols are bound at run time.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations
LDFLAGS := -s -w -X main.version=$(VERSION) -extldflags=-Wl,-z,lazy

.PHONY: build generate summaries demo trace-pictures test flaky truth truth-realcode wheels test-gpu lint vulnerabilities bench bench-viewer notebooks notebooks-aa trainings trainings-peers test-torches tasks memory fuzz soak lab clean prerequisites
.DELETE_ON_ERROR:

build: prerequisites $(VENV)/.complete $(VENV)/.labextension $(BINARY) $(EXACT)

prerequisites:
	@tools/prerequisites "$(PYTHON)" "$(GO)"

$(VENV)/.complete: pyproject.toml hatch_build.py
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable .
	touch $@ $(VENV)/.labextension

# The JupyterLab extension is installed with the package, as copies.
$(VENV)/.labextension: $(VENV)/.complete $(wildcard sidecar/show/viewer/labextension/* sidecar/show/viewer/assets/*)
	$(BIN)/python tools/labextension.py
	touch $@

$(BINARY): $(GO_FILES) $(wildcard magics/placed/*.py) $(patsubst %,magics/omni_perf/%.py,_version placed raised runmarks torchsteps torchwatch) $(VENV)/.complete
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/omni-perf

# The library that records GPUs within a process, beside the program.
$(EXACT): $(wildcard sidecar/measure/cupti/shim/*) $(VENV)/.complete
	mkdir -p $(@D)
	sidecar/measure/cupti/shim/build.sh $@

# Executes the example notebooks in a real kernel; the results are in build/demo.
demo: build
	$(BIN)/python tools/demo.py

# The pictures of docs/torch-traces.md that real traces of ../shared/traces are drawn of.
TRACES ?= $(CURDIR)/../shared/traces
trace-pictures: build
	rm -rf build/trace-pictures && mkdir -p build/trace-pictures && cd build/trace-pictures && \
	  ln -s "$(TRACES)/h100-qwen05b" h100 && ln -s "$(TRACES)/mi300x-qwen05b" mi300x && \
	  $(BINARY) analyze h100 --against mi300x --quiet --svg svg && \
	  cp svg/difference.svg svg/roofline.svg "$(CURDIR)/docs/torch-traces/"

# Every section of the tests that a contributor runs, or one of them. PACKAGES="./sidecar/measure/host ./jupyter"
# tests only these Go packages, PYTEST="-k name" is handed to pytest, WORKERS is how many Python tests
# run side by side.
test: build
	$(BIN)/python tools/suite.py

test-%: build
	$(BIN)/python tools/suite.py $*

# The tests that judge time, TIMES times each: what fails more than once is mended, not repeated. build/flaky.tsv has
# how often each failed.
TIMES ?= 20
flaky: build
	$(BIN)/python tools/suite.py --flaky $(TIMES)

# The viewer's script and style sheet, of its sources; no Node is needed.
generate:
	$(GO) generate ./sidecar/show/viewer

# The text beside each recording of sidecar/testkit/specimen, of what is in it.
summaries:
	$(GO) test ./sidecar/testkit/specimen -run '^TestSummaries$$' -update

# Thirty times each and 10,000 samples at least, cells and scripts, with a table of how far profile and truth
# are apart, and 200 cells that chance makes. Then all programs and trainings of sidecar/testkit/specimen, run live by
# the interpreters that have what they need: .venv, .cache/torch and those in SPECIMEN_PYTHONS; and short computing
# between short sleeps, on all CPUs and on one. What was interrupted goes on where it stopped, for the same build.
REPEAT ?= 30
SAMPLES ?= 10000
TRUTH := $(BIN)/python -m truth --repeat $(REPEAT) --samples $(SAMPLES) --keep $(CURDIR)/build/truth
truth: build
	tools/interpreters > /dev/null
	tools/kernels
	cd magics/tests && $(TRUTH) && $(TRUTH) --scripts && $(BIN)/python -m truth --invented 200
	OMNI_PERF_TRUTH=1 $(GO) test -timeout 4h -count 1 ./sidecar/testkit/specimen
	OMNI_PERF_TRUTH=1 $(GO) test -timeout 1h -count 1 -v -run '^(TestTruthProgramsAsChildren|TestSharesOfForkedWorkers|TestAccuracy|TestCodeThatComesAndGoes|TestDeepRecursionKeepsItsEnds)$$' ./sidecar/measure/pystack
	OMNI_PERF_NAPS=20 $(GO) test -timeout 2h -count 1 -v -run '^(TestTableOfNaps|TestComputingIsTheThreadsCPUTime)$$' ./sidecar/measure/pystack
	OMNI_PERF_NAPS=20 taskset -c 0 $(GO) test -timeout 2h -count 1 -v -run '^(TestTableOfNaps|TestComputingIsTheThreadsCPUTime)$$' ./sidecar/measure/pystack
	OMNI_PERF_TRUTH=1 $(BIN)/python -m pytest -s magics/tests/test_agreement.py
	OMNI_PERF_DOCUMENTS=2000 $(MAKE) test-viewer

# The wheels of a release, x86-64 and arm64, in dist; each is tried (docs/releasing.md).
wheels: build
	$(BIN)/python tools/wheels.py

# Stacks of real packages' tests and imports against the interpreter's own tracing, at least
# REAL_SAMPLES on each version: some ten minutes a version.
REAL_SAMPLES ?= 100000
truth-realcode: build
	tools/interpreters > /dev/null
	tools/realcode
	$(GO) test ./sidecar/measure/pystack -count=1 -timeout 6h -run '^TestRealCode$$' -v -realcode $(CURDIR)/.cache/realcode -realcode-samples $(REAL_SAMPLES)
truth: truth-realcode

# With a real NVIDIA GPU, and PyTorch in .cache/torch; without, what is skipped says so. Reports stay in
# build/gpu; OMNI_PERF_RECORD_GPU=FOLDER keeps what the device answered (docs/gpu-idle.md).
test-gpu: build
	@tools/torch --if-gpu
	$(GO) test -count=1 -run RealGPU -v ./sidecar/measure/gpu
	PATH="$(BIN):$$PATH" $(BIN)/python -m pytest magics/tests/gpu -m gpu -vv -rsP

lint: build
	$(GO) vet ./...
	cd tools/bundle && $(GO) vet ./...
	GOBIN=$(CURDIR)/.cache/bin $(GO) install $(STATICCHECK)
	.cache/bin/staticcheck ./...
	cd tools/bundle && $(CURDIR)/.cache/bin/staticcheck ./...
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python

# Go's vulnerability database about what the program links; skipped, with the reason, where it cannot be reached.
vulnerabilities:
	tools/vulnerabilities

# Figures beside baselines and peers; the long forms are described at the top of each program.
bench: build
	$(BIN)/python bench/notebook/bench.py
	$(GO) test -run '^$$' -bench 'LongCell|End|Resident' -benchtime 1x ./sidecar/measure/recorder ./sidecar/doors/server
	$(GO) test -run '^$$' -bench Record -benchtime 1x ./sidecar/measure/cupti
	tools/interpreters > /dev/null
	$(GO) run ./bench/sampler -quick
	$(BIN)/python bench/children/bench.py --rounds 3
	$(BIN)/python bench/children/slices.py
	$(BIN)/python bench/children/slices.py --training 4 --seconds 300 --slice 2
	$(BIN)/python bench/children/slices.py --tasks 1000 --seconds 90
	$(BIN)/python bench/tasks/peers.py --rounds 1
	tools/engines && .cache/engines/bin/python bench/engines/bench.py
	$(BIN)/python bench/torchcell/bench.py
	$(GO) run ./bench/torchtrace -python $(BIN)/python
	$(BIN)/python bench/snapshot/bench.py
	$(BIN)/python bench/viewer/bench.py
	OMNI_PERF_REPORTS=1000 $(GO) test -count 1 -v -run '^TestMemoryOfManyReports$$' ./sidecar/compare/mergereports

# What the viewer costs in a page; part of bench. Then beside what other profilers show, which takes ten minutes.
bench-viewer: build
	$(BIN)/python bench/viewer/bench.py
	$(BIN)/python bench/viewer/peers.py

# Real notebooks, of a folder that is no part of the project: outputs with and without the profiler, and every
# headline beside the cell's own clocks (docs/notebooks.md). OPTIONS="--headlines --limit 20" is handed on.
notebooks: build
	@[ -n "$(NOTEBOOKS)" ] || { echo "usage: make notebooks NOTEBOOKS=FOLDER"; exit 2; }
	tools/notebooks
	$(BIN)/python bench/headlines/notebooks.py $(NOTEBOOKS) $(OPTIONS)

# Unchanged notebooks, each executed several times by omni-perf run and by nbclient alone: in how many comparisons of two
# executions omni-perf compare sees a difference, and whether it sees a cell that was made slower (docs/notebooks.md).
notebooks-aa: build
	@[ -n "$(NOTEBOOKS)" ] || { echo "usage: make notebooks-aa NOTEBOOKS=FOLDER"; exit 2; }
	tools/notebooks
	$(BIN)/python bench/headlines/unchanged.py --edit $(NOTEBOOKS) $(OPTIONS)

# Trainings as people write them, each beside the clock that it keeps of itself (docs/training.md). NAMES="Trainer
# torchrun" runs those with a part of these in their names. trainings-peers: what others say of three of them.
trainings: build
	tools/torch
	tools/jax
	$(BIN)/python bench/trainings $(NAMES)

# The tests with real torch by older ones, each in an environment of its own: TORCHES="2.1.2" runs these (docs/torch.md).
# And Composer's adapter, with the torch that Composer needs.
TORCHES ?= 2.1.2 2.6.0
test-torches: build
	@for version in $(TORCHES); do \
		tools/torch $$version; \
		echo "torch $$version"; \
		OMNI_PERF_TORCH=.cache/torch-$$version $(BIN)/python -m pytest -q magics/tests/test_analyze_torch.py magics/tests/test_torch_cell.py \
			magics/tests/test_run_torch.py magics/tests/test_out_of_memory.py || exit 1; \
	done
	tools/torch composer
	$(BIN)/python -m pytest -q -k composer magics/tests/test_adapters.py

# Programs of asyncio that keep their own clocks, on each interpreter (docs/async.md). NAMES="gather tree" runs these.
# What others say of some of them is in bench.
tasks: build
	tools/interpreters > /dev/null
	$(BIN)/python bench/tasks $(NAMES)

# Growth of resident memory by line, of programs that read their own, and the peak; then what Scalene and memray say of
# them (docs/memory.md). NAMES="blocks objects --alone" runs these, without peers.
memory: build
	$(BIN)/python bench/memory $(NAMES)

trainings-peers: build
	tools/torch
	$(BIN)/python bench/trainings/peers.py

# Every decoder of foreign bytes on made-up ones, half an hour in all; the counts are in build/fuzz.tsv.
FUZZ ?= 50
fuzz: prerequisites
	tools/fuzz $(FUZZ)
	$(GO) test -count=1 -run DamagedDocuments ./sidecar/understand/report -documents 1000000
	OMNI_PERF_PAYLOADS=100000 $(MAKE) test-viewer

# Half an hour of two kernels under load, sidecars killed meanwhile: does anything grow, is anything left?
SOAK ?= --minutes 30 --cells 10000 --kills 5
soak: build
	PATH="$(BIN):$$PATH" $(BIN)/python tools/soak.py $(SOAK)

# JupyterLab with the examples.
lab: build
	JUPYTER_PREFER_ENV_PATH=1 $(BIN)/jupyter-lab --notebook-dir=examples

clean:
	rm -rf $(VENV) build dist .cache/bin .ruff_cache .pytest_cache
