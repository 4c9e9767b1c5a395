package origin

import (
	"io/fs"
	"math/bits"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/magics"
)

func TestLibrariesAreRead(t *testing.T) {
	known, err := parseLibraries(librariesText)
	if err != nil {
		t.Fatal(err)
	}
	var all Meanings
	for word, m := range words {
		if bits.OnesCount64(uint64(m)) != 1 || all&m != 0 {
			t.Errorf("%q is no meaning of its own: %b", word, m)
		}
		all |= m
	}
	for module, lines := range known.exact {
		for _, l := range lines {
			all &^= l.adds
			for _, f := range l.functions {
				if strings.Contains(strings.TrimSuffix(f, "_*"), "*") {
					t.Errorf("%s: %s has a star elsewhere than in _* at its end", module, f)
				}
			}
		}
	}
	for _, lines := range known.begin {
		for _, b := range lines {
			all &^= b.line.adds
		}
	}
	for word, m := range words {
		if all&m != 0 {
			t.Errorf("nothing in libraries.txt means %q", word)
		}
	}
}

func TestLibrariesThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"torch framework":                           "a line is MODULE = WORD",
		"\n= framework\n":                           "libraries.txt:2",
		"torch = framwork":                          `"framwork"`,
		"torch : f = framework":                     "only modules",
		"torch.optim = -picture":                    `"-picture"`,
		"omni_perf : f = ours":                      "only modules",
		"torch = framework # yes":                   "",
		"torch :  # of them\n  f\n  g = sync # yes": "",
		"torch :\n f":                               "libraries.txt:1",
	} {
		_, err := parseLibraries(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

// What a line of a whole package lists is not a module's own.
func TestMentions(t *testing.T) {
	for file, want := range map[string]bool{
		"/v/site-packages/torch/autograd/graph.py": true, "/v/site-packages/torch/distributed/distributed_c10d.py": true,
		"/v/site-packages/torch/nn/modules/linear.py": false, "/v/site-packages/torch/multiprocessing/spawn.py": false,
		"/v/site-packages/torch/optim/adam.py": false, "/home/u/train.py": false, "": false,
	} {
		if got := KnownByName(file).Mentions(Communicates | RunsBackward); got != want {
			t.Errorf("%q: %v, want %v", file, got, want)
		}
	}
}

func TestMeans(t *testing.T) {
	for _, c := range []struct {
		module, function string
		has, hasNot      Meanings
	}{
		{"torch.utils.data.dataloader", "_SingleProcessDataLoaderIter._next_data", Loads | LoadsHere | RunsModels, LoadsElsewhere},
		{"torch.utils.data.dataloader", "_MultiProcessingDataLoaderIter._get_data", Loads | LoadsElsewhere, LoadsHere},
		{"torch.utils.data.dataloader", "_MultiProcessingDataLoaderIter._shutdown_workers", 0, Loads | LoadsElsewhere},
		{"torch.utils.data.dataloader", "_BaseDataLoaderIter._next_index", Loads | Samples, LoadsHere | LoadsElsewhere},
		{"torch.utils.data.dataset", "x", Loads, LoadsHere | Transports},
		{"torch.utils.data._utils.worker", "_worker_loop", LoaderLoop | Transports, PoolLoop},
		{"torch.optim.adam", "Adam.step", OptimizerStep | Optimizes | Launches, 0},
		{"torch.optim.adam", "_single_tensor_step", Optimizes, OptimizerStep},
		{"torch.optim.lr_scheduler", "StepLR.step", Optimizes, OptimizerStep},
		{"torch._dynamo.eval_frame", "_fn", RunsModels, Compiles},
		{"torch._dynamo.convert_frame", "_compile", Compiles, 0},
		{"multiprocessing.popen_spawn_posix", "Popen.__init__", WaitsForChild | WaitsForPool | Transports, PassesResults},
		{"multiprocessing.pool", "worker", PoolLoop, 0},
		{"multiprocessing.pool", "Pool._maintain_worker", 0, PoolLoop},
		{"multiprocessing.connection", "Connection._recv", Receives, 0},
		{"multiprocessing.connection", "Connection._recv_bytes", 0, Receives},
		{"multiprocessing.queues", "SimpleQueue.get", TakesTask, 0},
		{"multiprocessing.queues", "Queue.get_nowait", 0, TakesTask},
		{"threading", "Thread.join", Joins | Locks, 0},
		{"threading", "Condition.wait", Locks, Joins},
		{"pip._vendor.urllib3.connectionpool", "urlopen", UsesNetwork, 0},
		{"requests.sessions", "Session.get", UsesNetwork | KeepsConnections, 0},
		{"requests.api", "get", UsesNetwork, KeepsConnections},
		{"httpx._client", "AsyncClient.get", KeepsConnections, 0},
		{"httpx._api", "get", UsesNetwork, KeepsConnections},
		{"aiohttp.client", "ClientSession._request", KeepsConnections, 0},
		{"torch.distributed.distributed_c10d", "all_gather_object", Collective | Communicates, SetsUp},
		{"torch.nn.parallel.distributed", "DistributedDataParallel.forward", Replicates, Collective},
		{"torch.nn.parallel.distributed", "DistributedDataParallel._sync_params_and_buffers", Replicates | SetsUp, 0},
		{"torch.nn.parallel.distributed", "<module>", 0, Replicates},
		{"seaborn.relational", "scatterplot", Draws, 0},
		{"seaborn.utils", "load_dataset", 0, Draws},
		{"seaborn._statistics", "KDE.__call__", Computes, 0},
		{"scipy.stats._kde", "gaussian_kde.evaluate", Computes, Draws},
		{"torchmetrics.metric", "Metric.forward", 0, ^Meanings(0)},
		{"nobody.knows", "it", 0, ^Meanings(0)},
		{"", "", 0, ^Meanings(0)},
	} {
		if got := knownOf(c.module).Means(c.function); got&c.has != c.has || got&c.hasNot != 0 {
			t.Errorf("%s.%s means %v, want %v and not %v", c.module, c.function, named(got), named(c.has), named(c.hasNot))
		}
	}
	if got := knownOf("torch.distributed.distributed_c10d").Listed(Collective, "all_gather_object"); got != "all_gather" {
		t.Errorf("all_gather_object is listed as %q", got)
	}
}

func TestKind(t *testing.T) {
	for module, want := range map[string]Kind{
		"torch.nn.functional": Framework, "torch.utils.data.dataset": Data, "torch.cuda.amp.grad_scaler": Device, "torch.serialization": IO,
		"matplotlib.figure": Picture, "json.decoder": Other, "asyncio.streams": IO, "asyncio.events": Other, "": Other,
	} {
		if got := knownOf(module).Kind(); got != want {
			t.Errorf("%s is of kind %d, want %d", module, got, want)
		}
	}
}

// omni_perf's own files are known wherever they lie, so each of them has to be in the list.
func TestOurFilesAreListed(t *testing.T) {
	want, got := []string{"omni_perf.zip.sitecustomize"}, []string(nil)
	err := fs.WalkDir(os.DirFS("../../../magics"), "omni_perf", func(path string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(path, ".py"); ok {
			want = append(want, strings.ReplaceAll(name, "/", "."))
		}
		return err
	})
	if err != nil {
		t.Skip("the extension's sources are not here: ", err)
	}
	for _, placed := range magics.HookModules {
		want = append(want, "_omni_perf."+strings.TrimSuffix(placed, ".py"))
	}
	for module, lines := range libraries().exact {
		if slices.ContainsFunc(lines, func(l *line) bool { return l.traits&anywhere != 0 }) {
			got = append(got, module)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("libraries.txt has the files %v of omni_perf, its folder %v", got, want)
	}
}

func named(m Meanings) (names []string) {
	for word, one := range words {
		if m&one != 0 {
			names = append(names, word)
		}
	}
	slices.Sort(names)
	return names
}
