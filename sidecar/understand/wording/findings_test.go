package wording

import "testing"

func TestFunctionsAreNamedAsTheLineHasThem(t *testing.T) {
	for function, want := range map[string]string{
		"DataFrame.apply":      "apply",
		"Indexing.__getitem__": "indexing",
		"Indexing.__setitem__": "item assignment",
		"ArrayImpl.__float__":  "float()",
		"Tensor.__len__":       "len()",
		"Popen.__init__":       "Popen",
		"float":                "float",
	} {
		if got := displayName(function); got != want {
			t.Errorf("%s: %q, want %q", function, got, want)
		}
	}
}
