package origin

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func notebook() *timeline.Recording {
	return &timeline.Recording{
		Target:  timeline.Target{Cell: &timeline.Cell{ExecutionCount: 7, File: "/tmp/ipykernel_1/222.py"}},
		Sources: []timeline.Source{{File: "<stdin of cell 3>", ExecutionCount: 3}},
		Installation: timeline.Installation{
			Prefixes:  []string{"/home/u/project/.venv", "/usr"},
			Standard:  []string{"/opt/odd/stdlib"},
			Extension: "/home/u/project/magics/omni_perf",
		},
		CodeFiles: []timeline.CodeFile{{Name: "/build/cython/loop.pyx", Missing: true}, {Name: "/home/u/project/model.py"}},
	}
}

func TestInANotebook(t *testing.T) {
	for file, want := range map[string]Origin{
		"/tmp/ipykernel_1/222.py":               {Owner: Cell},
		"/tmp/ipykernel_1/999.py":               {Owner: Cell}, // not sent, but only cells are called so
		"<stdin of cell 3>":                     {Owner: Cell},
		"<ipython-input-3-0f1a>":                {Owner: Cell},
		"/home/u/project/model.py":              {Owner: Module},
		"/home/u/learn-pytorch/train.py":        {Owner: Module},
		"/home/u/lib/python3_projects/train.py": {Owner: Module},
		"/usr/src/app/train.py":                 {Owner: Module}, // a container's usual folder
		"/home/u/project/.venv/train.py":        {Owner: Module}, // an environment made around a program
		"/home/u/project/.venv/lib/helpers.py":  {Owner: Module},
		"/home/u/project/.venv/lib/odd/x.py":    {Library, "odd"},
		"helpers.py":                            {Owner: Module},
		"/build/cython/loop.pyx":                {Owner: Generated},
		"<string>":                              {Owner: Generated},
		"<__array_function__ internals>":        {Owner: Generated},
		"":                                      {Owner: Generated},
		"/home/u/project/.venv/lib/python3.12/site-packages/torch/_tensor.py":      {Library, "torch"},
		"/home/u/.local/lib/python3.12/site-packages/sklearn/base.py":              {Library, "sklearn"},
		"/home/u/project/.venv/lib/python3.12/site-packages/six.py":                {Library, "six"},
		"/x/site-packages/old-1.0-py3.12.egg/old/thing.py":                         {Library, "old"},
		"/usr/lib/python3/dist-packages/yaml/__init__.py":                          {Library, "yaml"},
		"/home/u/project/.venv/bin/torchrun":                                       {Library, "torchrun"},
		"/usr/share/thing/main.py":                                                 {Library, "thing"},
		"/usr/lib/python3.12/asyncio/base_events.py":                               {Standard, "asyncio"},
		"/usr/lib64/python3.13t/json/decoder.py":                                   {Standard, "json"},
		"/opt/odd/stdlib/queue.py":                                                 {Standard, "queue"},
		"<frozen importlib._bootstrap>":                                            {Interpreter, "importlib"},
		"<frozen runpy>":                                                           {Interpreter, "runpy"},
		"/home/u/project/.venv/lib/python3.12/site-packages/ipykernel/ipkernel.py": {Machinery, "ipykernel"},
		"/x/site-packages/IPython/core/interactiveshell.py":                        {Machinery, "IPython"},
		"/x/site-packages/ipykernel_launcher.py":                                   {Machinery, "ipykernel_launcher"},
		"/usr/local/lib/python3.12/dist-packages/google/colab/_shell.py":           {Machinery, "google.colab"},
		"/usr/local/lib/python3.12/dist-packages/google/cloud/storage.py":          {Library, "google"},
		"/home/u/project/magics/omni_perf/session.py":                              {Ours, "omni_perf"},
		"/x/site-packages/omni_perf/session.py":                                    {Ours, "omni_perf"},
	} {
		if got := New(notebook()).Of(file); got != want {
			t.Errorf("%q is %v %q, want %v %q", file, got.Owner, got.Package, want.Owner, want.Package)
		}
	}
}

func TestOfAScript(t *testing.T) {
	for _, c := range []struct {
		argv []string
		file string
		want Origin
	}{
		{[]string{"python", "train.py", "--lr", "1"}, "/home/u/train.py", Origin{Owner: Script}},
		{[]string{"python", "-X", "dev", "-u", "./train.py"}, "train.py", Origin{Owner: Script}},
		{[]string{"python", "train.py"}, "/home/u/other/retrain.py", Origin{Owner: Module}},
		{[]string{"python", "pool.py"}, "/usr/lib/python3.12/multiprocessing/pool.py", Origin{Standard, "multiprocessing"}},
		{[]string{"python", "-m", "project.train"}, "/home/u/project/train.py", Origin{Owner: Module}},
		{[]string{"python", "-c", "work()"}, "<string>", Origin{Owner: Script}},
		{[]string{"python", "-"}, "<stdin>", Origin{Owner: Script}},
		{[]string{"python", "train.py"}, "<string>", Origin{Owner: Generated}},
		{[]string{"python", "train.py"}, "/x/site-packages/tornado/web.py", Origin{Library, "tornado"}}, // no notebook
	} {
		rec := &timeline.Recording{Target: timeline.Target{Argv: c.argv}}
		if got := New(rec).Of(c.file); got != c.want {
			t.Errorf("%v: %q is %v %q, want %v %q", c.argv, c.file, got.Owner, got.Package, c.want.Owner, c.want.Package)
		}
	}
}

// Nobody says where the extension is in a program that "omni-perf run" starts.
func TestAnEditableInstallOfOursIsNotTheUsers(t *testing.T) {
	files := New(&timeline.Recording{Target: timeline.Target{Argv: []string{"python", "train.py"}}})
	for file, want := range map[string]Owner{
		"/home/u/src/omni-perf/magics/omni_perf/marks.py":    Ours,
		"/home/u/src/omni-perf/magics/omni_perf/__init__.py": Ours,
		"/home/u/src/omni-perf/magics/tests/conftest.py":     Module,
		"/home/u/omni_perf/train.py":                         Script,
		"/tmp/torchinductor_u/ab/cabc.py":                    Generated,
	} {
		if got := files.Of(file); got.Owner != want {
			t.Errorf("%q is %v, want %v", file, got.Owner, want)
		}
	}
}

func TestAScriptWithinAPrefixIsTheScript(t *testing.T) {
	rec := &timeline.Recording{
		Target:       timeline.Target{Argv: []string{"python", "/usr/bin/report"}},
		Installation: timeline.Installation{Prefixes: []string{"/usr"}},
	}
	if got := New(rec).Of("/usr/bin/report"); got.Owner != Script {
		t.Errorf("the program that was started is %v", got.Owner)
	}
}

func TestByName(t *testing.T) {
	for file, want := range map[string]Origin{
		"torch/nn/modules/module.py":                 {Library, "torch"},
		"threading.py":                               {Standard, "threading"},
		"multiprocessing/queues.py":                  {Standard, "multiprocessing"},
		"train.py":                                   {Owner: Unknown},
		"learn-pytorch/train.py":                     {Owner: Unknown},
		"~/learn-pytorch/train.py":                   {Owner: Module},
		"~/torch/train.py":                           {Owner: Module},
		"/home/u/torch/train.py":                     {Owner: Module},
		"models/unet.py":                             {Owner: Unknown},
		"/v/lib/python3.12/site-packages/PIL/x.py":   {Library, "PIL"},
		`C:\venv\Lib\site-packages\a.py`:             {Library, "a"},
		"/opt/conda/lib/python3.11/contextlib.py":    {Standard, "contextlib"},
		"<frozen runpy>":                             {Interpreter, "runpy"},
		"<string>":                                   {Owner: Generated},
		"/tmp/ipykernel_12/3456.py":                  {Owner: Cell},
		"/x/my-site-packages/a.py":                   {Owner: Module},
		"/x/site-packages/ipykernel/kernelbase.py":   {Library, "ipykernel"},
		"/x/site-packages/torch/utils/data/fetch.py": {Library, "torch"},
	} {
		if got := ByName(file); got != want {
			t.Errorf("%q is %v %q, want %v %q", file, got.Owner, got.Package, want.Owner, want.Package)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("/x/lib/python3.12/site-packages/torch/_tensor.py")
	f.Add("<frozen importlib._bootstrap>")
	f.Add("site-packages/")
	f.Add("<frozen ")
	f.Fuzz(func(t *testing.T, file string) {
		files := New(notebook())
		if first, again := files.Of(file), files.Of(file); first != again {
			t.Errorf("%q is %v and then %v", file, first, again)
		}
		_ = ByName(file).Owner.String()
		KnownByName(file).Means("f")
	})
}

// The extension's own functions have their meanings wherever it is installed.
func TestMeaningsOfTheExtension(t *testing.T) {
	files := New(&timeline.Recording{Installation: timeline.Installation{Extension: "/home/u/project/magics/omni_perf"}})
	for _, folder := range []string{"/home/u/project/magics/omni_perf", "/usr/lib/python3/dist-packages/omni_perf"} {
		frame := timeline.Frame{Function: "TorchProfile._run_profiler", File: folder + "/torchprofile.py"}
		if owner := files.Of(frame.File).Owner; owner != Ours || files.Means(frame)&RunsTorchProfiler == 0 {
			t.Errorf("%s is %v's and means %b", frame.File, owner, files.Means(frame))
		}
	}
}
