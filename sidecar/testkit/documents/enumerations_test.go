package documents

import (
	"os"
	"testing"
)

// The viewer has the report's enumerations; make generate brings them up to date.
func TestTheViewerHasTheReportsEnumerations(t *testing.T) {
	const file = "../../show/viewer/src/generated.ts"
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != Enumerations() {
		t.Errorf("%s is not what package report has: go generate ./sidecar/show/viewer", file)
	}
}
