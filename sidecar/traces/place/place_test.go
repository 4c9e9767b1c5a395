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
		p.Own()
		p.Base()
	})
}
