# Everything happens inside the checkout: .venv holds Python and the binary, .cache the tools.
#   make build generate demo test lint vulnerabilities bench fuzz soak truth wheels lab clean test-gpu
# What the viewer (sidecar/show/viewer) is built of is committed: make generate brings it up to date.
# PYTHON=/path/to/python3.13 chooses the interpreter of .venv;
# TEST_PYTHONS="python3.12 …" are those of test-pythons, each with an environment in .cache.

PYTHON      ?= $(shell tools/python)
GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
VERSION     := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' magics/omni_perf/_version.py)

VENV     ?= $(CURDIR)/.venv
BIN      := $(VENV)/bin
BINARY   := $(BIN)/omni-perf
GO_FILES := $(shell find cmd sidecar jupyter -name '*.go' -not -name '*_test.go' 2>/dev/null) \
            $(shell find sidecar -type f -path '*/assets/*' 2>/dev/null) go.mod go.sum

# go-nvml's headers are full of deprecation marks; its symbols are bound at run time.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations
LDFLAGS := -s -w -X main.version=$(VERSION) -extldflags=-Wl,-z,lazy

.PHONY: build generate demo test test-go test-go-race test-go-alone test-go-concurrency test-viewer test-python test-web test-truth truth truth-realcode test-pythons test-oldest test-wheel wheels test-gpu lint vulnerabilities bench bench-viewer fuzz soak lab clean prerequisites
.DELETE_ON_ERROR:

build: prerequisites $(VENV)/.complete $(VENV)/.labextension $(BINARY)

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

$(BINARY): $(GO_FILES) magics/omni_perf/_version.py $(VENV)/.complete
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/omni-perf

# Executes the example notebooks in a real kernel; the results are in build/demo.
demo: build
	$(BIN)/python tools/demo.py

test: test-go test-viewer test-python test-web test-truth

# The tests of pystack and gpu live beside real programs in real time: packages run one by one. The
# race detector slows the sampler tenfold, so its accuracy is judged without, its concurrency with.
# diagnose starts no goroutine and simulates hours of recordings: without it, too, as chart, which
# draws such, specimen, which diagnoses recordings of hundreds of programs and runs some of them, and
# what analyses whole traces; the goroutines of that are tried with the small ones.
# PACKAGES="./sidecar/measure/host ./sidecar/measure/gpu" tests only those.
PACKAGES ?= ./...
ALONE    := /sidecar/(measure/pystack|understand/diagnose|show/chart|testkit/specimen|traces(/page|/synth)?)$$
test-go: test-go-race test-go-alone test-go-concurrency
test-go-race: prerequisites
	$(GO) test -race -run '^$$' ./... > /dev/null
	@packages=$$($(GO) list $(PACKAGES) | grep -Ev '$(ALONE)'); \
	test -z "$$packages" || { set -x; $(GO) test -race -p 1 $$packages; }
test-go-alone: prerequisites
	@packages=$$($(GO) list $(PACKAGES) | grep -E '$(ALONE)'); \
	test -z "$$packages" || { set -x; $(GO) test -p 1 -timeout 30m $$packages; }
test-go-concurrency: prerequisites
	$(GO) test -race -run 'Image|Second|Gone|Contended|Budget' ./sidecar/measure/pystack
	$(GO) test -race -run 'Damaged|Parity|Run' ./sidecar/traces

PYTEST ?=
# On how many cores tests run side by side: where that matters, as to those that watch programs in real time,
# one by one, but on a build server, which runs alone what failed.
WORKERS ?= 2
test-python: WORKERS := 0
# each in a run of its own
NOT_HERE := --ignore=magics/tests/browser --ignore=magics/tests/truth
# The viewer's types and its modules, where Node and its packages are; the modules run in Chromium too (test-web).
# Not npm ci: that refuses a registry without the optional packages of other systems. --no-save leaves the lock file.
VIEWER := sidecar/show/viewer
test-viewer:
	@command -v npm > /dev/null || { echo "test-viewer: skipped, Node is not here (apt-get install nodejs npm)"; exit 0; }; \
	    cd $(VIEWER) && { npm install --no-save --silent || { echo "test-viewer: skipped, the packages cannot be had here"; exit 0; }; } && \
	    npm run --silent check && npm run --silent test

# The viewer's script and style sheet, of its sources; no Node is needed.
generate:
	$(GO) generate ./$(VIEWER)

test-python: build
	PATH="$(BIN):$$PATH" $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(NOT_HERE) $(PYTEST)

# Ordinary cells in kernels of every CPython, against the clock they keep of their own lines: once each.
# tools/kernels makes the environments; without them it is skipped.
test-truth: build
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup magics/tests/truth $(PYTEST)

# Thirty times each and 10,000 samples at least, cells and scripts, with a table of how far profile and truth
# are apart, and 200 cells that chance makes. Then all programs and trainings of sidecar/testkit/specimen, run live by
# the interpreters that have what they need: .venv, .cache/torch and those in SPECIMEN_PYTHONS. What was
# interrupted goes on where it stopped, for the same build.
REPEAT ?= 30
SAMPLES ?= 10000
TRUTH := $(BIN)/python -m truth --repeat $(REPEAT) --samples $(SAMPLES) --keep $(CURDIR)/build/truth
truth: build
	tools/interpreters > /dev/null
	tools/kernels
	cd magics/tests && $(TRUTH) && $(TRUTH) --scripts && $(BIN)/python -m truth --invented 200
	OMNI_PERF_TRUTH=1 $(GO) test -timeout 4h -count 1 ./sidecar/testkit/specimen
	OMNI_PERF_TRUTH=1 $(GO) test -timeout 1h -count 1 -v -run '^(TestTruthProgramsAsChildren|TestSharesOfForkedWorkers)$$' ./sidecar/measure/pystack
	OMNI_PERF_TRUTH=1 $(BIN)/python -m pytest -s magics/tests/test_agreement.py

# A run of its own: Playwright's event loop would stand in the way of the shells above.
test-web: build
	PATH="$(BIN):$$PATH" $(BIN)/python -m pytest magics/tests/browser $(PYTEST)

# The Python tests on more interpreters: of the extension. Those of the program watch interpreters of their own.
TEST_PYTHONS ?= python3.12 python3.13
OF_THE_PROGRAM := $(addprefix --ignore=magics/tests/,gpu test_agreement.py test_analyze_torch.py test_attach_kernels.py test_trainings.py)
test-pythons:
	for python in $(TEST_PYTHONS); do \
	    $(MAKE) test-python NOT_HERE="$(NOT_HERE) $(OF_THE_PROGRAM)" WORKERS=$(WORKERS) PYTHON="$$python" VENV="$(CURDIR)/.cache/venv-$$(basename "$$python")" || exit; \
	done

# The lowest versions that pyproject.toml and the documentation promise.
OLDEST := 'ipython==8.12.*' 'ipykernel==6.17.*' 'grpclib==0.4.7'
test-oldest:
	$(MAKE) build VENV="$(CURDIR)/.cache/venv-oldest"
	.cache/venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check $(OLDEST)
	PATH="$(CURDIR)/.cache/venv-oldest/bin:$$PATH" .cache/venv-oldest/bin/python -m pytest -n $(WORKERS) --dist loadfile $(NOT_HERE) $(OF_THE_PROGRAM) $(PYTEST)

# The wheel in a clean environment: %load_ext omni_perf and the omni-perf command.
test-wheel: prerequisites
	rm -rf build/wheel-test && "$(PYTHON)" -m venv build/wheel-test
	build/wheel-test/bin/python -m pip install --quiet --disable-pip-version-check .
	build/wheel-test/bin/omni-perf version
	cd build && wheel-test/bin/python ../tools/try_wheel.py

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
	$(BIN)/ruff format --check magics hatch_build.py bench tools
	$(BIN)/ruff check magics hatch_build.py bench tools
	$(BIN)/pyright --pythonpath $(BIN)/python

# Go's vulnerability database about what the program links; skipped, with the reason, where it cannot be reached.
vulnerabilities:
	tools/vulnerabilities

# Figures beside baselines and peers; the long forms are told at the top of each program.
bench: build
	$(BIN)/python bench/notebook/bench.py
	$(GO) test -run '^$$' -bench 'LongCell|End|Resident' -benchtime 1x ./sidecar/measure/recorder ./sidecar/doors/server
	tools/interpreters > /dev/null
	$(GO) run ./bench/sampler -quick
	$(BIN)/python bench/children/bench.py --rounds 3
	$(BIN)/python bench/children/slices.py
	$(GO) run ./bench/torchtrace -python $(BIN)/python
	$(BIN)/python bench/viewer/bench.py

# What the viewer costs in a page; part of bench. Then beside what other profilers show, which takes ten minutes.
bench-viewer: build
	$(BIN)/python bench/viewer/bench.py
	$(BIN)/python bench/viewer/peers.py

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
