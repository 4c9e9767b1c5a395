package marks

import (
	"slices"
	"testing"
)

func TestTheStepHookComesBeforeTheUsersOwnPath(t *testing.T) {
	for _, c := range []struct{ environ, want []string }{
		{[]string{"A=1"}, []string{"A=1", "PYTHONPATH=/h.zip"}},
		{[]string{"PYTHONPATH=/mine:/other", "A=1"}, []string{"A=1", "PYTHONPATH=/h.zip:/mine:/other"}},
		{[]string{"PYTHONPATH="}, []string{"PYTHONPATH=/h.zip"}}, // not the current folder
		{[]string{"PYTHONPATH=/first", "PYTHONPATH=/last"}, []string{"PYTHONPATH=/h.zip:/last"}},
		{[]string{"PYTHONPATHS=/x"}, []string{"PYTHONPATHS=/x", "PYTHONPATH=/h.zip"}},
	} {
		if got := WithStepHook(c.environ, "/h.zip"); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.environ, got, c.want)
		}
	}
}
