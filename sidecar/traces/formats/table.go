package formats

import (
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/rocprof"
	"github.com/omni-perf/omni-perf/sidecar/traces/sqlite"
	"github.com/omni-perf/omni-perf/sidecar/traces/xplane"
)

// format is a kind of file, and how it is recognised.
type format struct {
	is func(beginning) bool
	kineto.Foreign
}

// table has the formats. The first that recognises a file is it: what is certain by its bytes comes before what
// only its name says.
var table = []format{
	// JSON, by its members
	{hasKeys(rocprof.Key), kineto.Foreign{What: "the JSON of rocprofv3", Read: rocprof.Read}},
	{hasKeys("nodes", "schema"), refused("a Chakra execution graph, not a trace", "it has operators without times: analyse the trace that torch.profiler wrote beside it")},
	{hasKeys("nodes", "startTime", "endTime"), refused("a CPU profile of Chrome or Node.js", "it has no times of a device")},
	{hasKeys("$schema", "profiles"), refused("a speedscope profile", "it has samples of stacks and no device: open it in speedscope")},
	{hasKeys("nbformat", "cells"), refused("a notebook", "name the trace that it wrote")},
	{hasKeys("document", "version", "generator"), refused("a report of omni-perf", "see it with omni-perf show")},
	{elementsHave("frame", "metrics", "children"), refused("a tree of Triton's Proton", `it has sums and no times: record with data="trace" and analyse the .chrome_trace`)},

	// other bytes, by their first ones
	{begins(sqlite.Magic), kineto.Foreign{What: "an SQLite database", Read: readDatabase}},
	{begins("PK\x03\x04"), refused("a zip archive", "unpack it and name the trace in it")},
	{begins("\x28\xb5\x2f\xfd"), refused("a file compressed by zstd", "decompress it: zstd -d")},
	{begins("BZh"), refused("a file compressed by bzip2", "decompress it: bunzip2")},
	{begins("\xfd7zXZ\x00"), refused("a file compressed by xz", "decompress it: unxz")},
	{at(257, "ustar"), refused("a tar archive", "unpack it and name the trace in it")},
	{begins("\x7fELF"), refused("a program or a library", "name the trace that it wrote")},
	{begins("PERFILE2"), refused("a recording of perf", "it has samples of stacks and no device: perf report")},
	{begins("NVR\x00"), refused("a report of Nsight Compute", "it has counters of single kernels and no timeline: open it in ncu-ui, or record with torch.profiler or nsys")},
	{isPickle, refused("a Python pickle", "a memory snapshot of torch is read with --memory-snapshot FILE")},
	{begins("<"), refused("an HTML or XML page", "name the trace itself")},
	{isXPlane, kineto.Foreign{What: "a profile of JAX or TensorFlow", Read: xplane.Read}},
	{isPprof, refused("a profile in pprof's format", "it has samples of stacks and no device: go tool pprof")},
	{isPerfetto, refused("a Perfetto trace", "convert it to JSON: traceconv json FILE trace.json")},

	// by the name alone
	{named(".xplane.pb"), kineto.Foreign{What: "a profile of JAX or TensorFlow", Read: xplane.Read}},
	{named(".nsys-rep", ".qdrep"), refused("a report of Nsight Systems", "export it with nsys export --type sqlite, and analyse the .sqlite")},
	{named(".qdstrm"), refused("a recording of Nsight Systems that was not imported", "import it with QdstrmImporter, then nsys export --type sqlite, and analyse the .sqlite")},
	{named(".ncu-rep"), refused("a report of Nsight Compute", "it has counters of single kernels and no timeline: open it in ncu-ui, or record with torch.profiler or nsys")},
	{named(".pftrace", ".perfetto-trace"), refused("a Perfetto trace", "convert it to JSON: traceconv json FILE trace.json")},
	{named(".csv"), refused("a table in CSV", "it has sums or no threads: of rocprofv3 write JSON (--output-format json), of nsys export SQLite (nsys export --type sqlite)")},
}

// refused is a format that is not read.
func refused(what, advice string) kineto.Foreign { return kineto.Foreign{What: what, Advice: advice} }
