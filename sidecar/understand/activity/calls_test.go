package activity

import (
	"testing"
)

func TestPublicNamesLeaveOutALibrarysOwnClasses(t *testing.T) {
	for function, want := range map[string]string{
		"read_csv":                         "read_csv",
		"DataFrame.apply":                  "DataFrame.apply",
		"_BaseKMeans.fit_predict":          "fit_predict",
		"_LocationIndexer.__setitem__":     "__setitem__",
		"Outer._Inner.method":              "Outer.method",
		"_private":                         "_private",
		"Popen.communicate":                "Popen.communicate",
		"_InactiveRpcError._Code.__call__": "__call__",
	} {
		if got := publicName(function); got != want {
			t.Errorf("%s: got %q, want %q", function, got, want)
		}
	}
}
