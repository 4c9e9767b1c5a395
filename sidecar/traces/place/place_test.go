package place

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]Place{
		"train.py(12): main":                          {"train.py", 12, "main"},
		"/home/me/my (old) code/a.py(3): <lambda>":    {"/home/me/my (old) code/a.py", 3, "<lambda>"},
		"<frozen os>(767): __getitem__":               {"<frozen os>", 767, "__getitem__"},
		"<built-in method item of Tensor object>":     {"", 0, "<built-in method item of Tensor object>"},
		"nn.Module: Linear_3":                         {"", 0, "nn.Module: Linear_3"},
		"a.py(12345678901234567890): f":               {"", 0, "a.py(12345678901234567890): f"},
		"a.py(-1): f":                                 {"", 0, "a.py(-1): f"},
		"a.py(): f":                                   {"", 0, "a.py(): f"},
		"/tmp/ipykernel_7/1234.py(2): <cell line: 1>": {"/tmp/ipykernel_7/1234.py", 2, "<cell line: 1>"},
	} {
		got, ok := Parse(text)
		if got != want || ok != (want.File != "") {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, ok, want)
		}
		if got.String() != text {
			t.Errorf("%q: written as %q", text, got.String())
		}
	}
}

func TestBase(t *testing.T) {
	for text, want := range map[string]string{
		"/home/me/train.py(1): f": "train.py(1): f", `C:\me\train.py(1): f`: "train.py(1): f", "x.py(1): a/b": "x.py(1): a/b", "<built-in a/b>": "<built-in a/b>",
	} {
		p, _ := Parse(text)
		if got := p.Base(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Names as real traces have them: of scripts, notebooks, containers, conda,
// packages below sys.path and not.
func TestOwn(t *testing.T) {
	for file, want := range map[string]bool{
		"train.py":                                  true,
		"test.py":                                   true,
		"moca/training/step.py":                     true,
		"models/net.py":                             true,
		"datasets/cifar.py":                         true,
		"datasets/arrow_dataset.py":                 false,
		"/home/me/learn-pytorch/train.py":           true,
		"/home/me/torch/train.py":                   true,
		"/home/me/project/src/data.py":              true,
		"/app/xDiT/xfuser/runner.py":                true,
		"../../tmp/ipykernel_4242/1234567890.py":    true,
		"/tmp/ipykernel_4242/1234567890.py":         true,
		"<ipython-input-3-abcdef>":                  true,
		`C:\Users\me\train.py`:                      true,
		"torch/nn/modules/module.py":                false,
		"transformers/models/bert/modeling_bert.py": false,
		"multiprocessing/connection.py":             false,
		"threading.py":                              false,
		"_weakrefset.py":                            false,
		"<frozen importlib._bootstrap>":             false,
		"<string>":                                  false,
		"<eval_with_key>.50":                        false,
		"<__array_function__ internals>":            false,
		"ipykernel/kernelapp.py":                    false,
		"/opt/venv/lib/python3.12/site-packages/torch/nn/functional.py": false,
		"/usr/local/lib/python3.10/dist-packages/mylib/a.py":            false,
		"/usr/lib/python3.11/runpy.py":                                  false,
		"/opt/conda/lib/python3.11/threading.py":                        false,
		"/opt/pytorch/torch/nn/modules/linear.py":                       false,
		"/tmp/torchinductor_me/ab/cabc.py":                              false,
		"/opt/venv/bin/torchrun":                                        false,
		`C:\Python311\Lib\site-packages\numpy\core.py`:                  false,
		`C:\Python311\Lib\threading.py`:                                 false,
		"??":                                                            false,
		"":                                                              false,
	} {
		if got := Own(file); got != want {
			t.Errorf("%q: got %v, want %v", file, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("train.py(12): main")
	f.Add("a(b(3): c): d")
	f.Add("): ")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := Parse(text)
		if ok && p.File == "" && p.Line == 0 && p.Function == "" {
			return
		}
		if !ok && p.Function != text {
			t.Errorf("%q became %+v", text, p)
		}
		Own(p.File)
		p.Base()
	})
}
