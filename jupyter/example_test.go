package jupyter_test

import (
	"fmt"

	"github.com/omni-perf/omni-perf/jupyter"
)

// A display has a form for each kind of front end.
func ExampleNewBundle() {
	b := jupyter.NewBundle([]byte("<b>2 s</b>"), []byte("2 s"), "")
	data, _, _, err := b.Parts()
	fmt.Println(data, err)
	// Output: {"text/html":"\u003cb\u003e2 s\u003c/b\u003e","text/plain":"2 s"} <nil>
}
