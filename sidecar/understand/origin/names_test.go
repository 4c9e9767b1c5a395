package origin

import "testing"

// Names as real traces have them: of scripts, notebooks, containers, conda, packages below sys.path
// and not.
func TestOwnByName(t *testing.T) {
	for file, want := range map[string]Owner{
		"train.py":                                  Unknown,
		"test.py":                                   Unknown,
		"code.py":                                   Unknown, // the standard library has one, too
		"moca/training/step.py":                     Unknown,
		"models/net.py":                             Unknown,
		"datasets/cifar.py":                         Unknown,
		"datasets/arrow_dataset.py":                 Library,
		"lightning/app.py":                          Unknown,
		"lightning/pytorch/trainer/trainer.py":      Library,
		"vllm/worker.py":                            Library,
		"polars/dataframe/frame.py":                 Library,
		"einops/einops.py":                          Library,
		"requests/api.py":                           Library,
		"composer/trainer/trainer.py":               Library,
		"yaml/loader.py":                            Library,
		"attr/_make.py":                             Library,
		"google/cloud/storage/blob.py":              Library,
		"google/sheets.py":                          Unknown,
		"omni_perf/session.py":                      Ours,
		"/home/me/learn-pytorch/train.py":           Module,
		"/home/me/torch/train.py":                   Module,
		"/home/me/project/src/data.py":              Module,
		"/app/xDiT/xfuser/runner.py":                Module,
		"../../tmp/ipykernel_4242/1234567890.py":    Cell,
		"../shared/helpers.py":                      Module,
		"/tmp/ipykernel_4242/1234567890.py":         Cell,
		"<ipython-input-3-abcdef>":                  Cell,
		`C:\Users\me\train.py`:                      Module,
		"torch/nn/modules/module.py":                Library,
		"transformers/models/bert/modeling_bert.py": Library,
		"multiprocessing/connection.py":             Standard,
		"threading.py":                              Standard,
		"_weakrefset.py":                            Standard,
		"<frozen importlib._bootstrap>":             Interpreter,
		"<string>":                                  Generated,
		"<eval_with_key>.50":                        Generated,
		"<__array_function__ internals>":            Generated,
		"ipykernel/kernelapp.py":                    Library,
		"/opt/venv/lib/python3.12/site-packages/torch/nn/functional.py": Library,
		"/usr/local/lib/python3.10/dist-packages/mylib/a.py":            Library,
		"/usr/lib/python3.11/runpy.py":                                  Standard,
		"lib/python3.11/threading.py":                                   Standard,
		"/opt/conda/lib/python3.11/threading.py":                        Standard,
		"/opt/pytorch/torch/nn/modules/linear.py":                       Library,
		"/opt/pytorch/torch/_dynamo/eval_frame.py":                      Library,
		"/tmp/torchinductor_me/ab/cabc.py":                              Generated,
		"/opt/venv/bin/torchrun":                                        Library,
		"/home/me/bin/train.py":                                         Module,
		`C:\Python311\Lib\site-packages\numpy\core.py`:                  Library,
		`C:\Python311\Lib\threading.py`:                                 Standard,
		"/home/me/src/omni-perf/magics/omni_perf/marks.py":              Ours, // an editable install
		"/home/me/src/omni-perf/magics/omni_perf/__init__.py":           Ours,
		"/home/me/omni_perf/train.py":                                   Module,
		"??":                                                            Generated,
		"":                                                              Generated,
	} {
		if got := ByName(file); got.Owner != want {
			t.Errorf("%q is %v, want %v", file, got.Owner, want)
		}
	}
}

func TestModule(t *testing.T) {
	f := New(notebook())
	for file, want := range map[string]string{
		"/v/lib/python3.12/site-packages/scipy/stats/__init__.py":              "scipy.stats",
		"/v/lib/python3.12/site-packages/six.py":                               "six",
		"/v/lib/python3.12/site-packages/old-1.0-py3.12.egg/old/thing.py":      "old.thing",
		"/usr/lib/python3.12/json/decoder.py":                                  "json.decoder",
		"/usr/lib/python3.12/threading.py":                                     "threading",
		"/usr/lib/python3.12/lib-dynload/_ssl.cpython-312-x86_64-linux-gnu.so": "lib-dynload._ssl",
		"/home/json/lib/python3.12/json/__init__.py":                           "json",
		"/opt/odd/stdlib/concurrent/futures/thread.py":                         "concurrent.futures.thread",
		"/home/u/project/.venv/lib/odd/x.py":                                   "odd.x",
		"<frozen importlib._bootstrap>":                                        "importlib._bootstrap",
		"/home/ann/work/mine.py":                                               "",
		"train.py":                                                             "",
		"<string>":                                                             "",
	} {
		if got := f.Module(file); got != want {
			t.Errorf("%s is imported as %q, want %q", file, got, want)
		}
	}
}

func TestBelow(t *testing.T) {
	for file, want := range map[string]string{
		"/v/lib/python3.12/site-packages/torch/_tensor.py": "torch/_tensor.py",
		`C:\v\Lib\site-packages\torch\_tensor.py`:          "torch/_tensor.py",
		"/usr/lib/python3.12/threading.py":                 "/usr/lib/python3.12/threading.py",
		"train.py":                                         "train.py",
	} {
		if got := Below(file); got != want {
			t.Errorf("%s is %q below its packages, want %q", file, got, want)
		}
	}
}
