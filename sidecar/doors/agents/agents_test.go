package agents_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/omni-perf/omni-perf/sidecar/doors/agents"
	"github.com/omni-perf/omni-perf/sidecar/show/answers"
)

const (
	script = "../../understand/report/testdata/script.json"
	cell   = "../../understand/report/testdata/cell.json"
)

// connected is a client of the server, over pipes.
func connected(t *testing.T) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	served, err := agents.New("test").Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), served.Close() })
	return client
}

type arguments = map[string]any

func call(t *testing.T, c *mcp.ClientSession, tool string, in arguments) (text string, failed bool) {
	t.Helper()
	result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		return err.Error(), true
	}
	if len(result.Content) != 1 {
		t.Fatalf("%s: %d contents", tool, len(result.Content))
	}
	text = result.Content[0].(*mcp.TextContent).Text
	if len(text) > answers.MaxBytes {
		t.Errorf("%s: an answer of %d bytes", tool, len(text))
	}
	return text, result.IsError
}

func TestTheToolsAreDescribedAndOnlyRead(t *testing.T) {
	tools, err := connected(t).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		if tool.Description == "" || !tool.Annotations.ReadOnlyHint || *tool.Annotations.OpenWorldHint {
			t.Errorf("%s: %q, %+v", tool.Name, tool.Description, tool.Annotations)
		}
	}
	want := append(answers.Names(), "recordings", "kernels", "compare", "trace")
	slices.Sort(want)
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v", names, want)
	}
}

func TestAnswersHaveLinesAndSeconds(t *testing.T) {
	c := connected(t)
	for _, test := range []struct {
		tool string
		in   arguments
		want []string
	}{
		{"headline", arguments{"report": script}, []string{"~/project/script.py:2", "0.24 of 0.40 s", "num_workers"}},
		{"findings", arguments{"report": script}, []string{"dataloader-bound", "0.24 s", "60 %"}},
		{"lines", arguments{"report": script}, []string{"~/project/train.py:3  60 ms  15 %", "self.model(x).backward()"}},
		{"idle", arguments{"report": script}, []string{"data loading in this thread  0.24 s  92 %", "launching GPU work  20 ms"}},
		{"functions", arguments{"report": cell}, []string{"Tensor.item  80 ms  20 %"}},
		{"devices", arguments{"report": cell}, []string{"GPU 0", "0.14 s  35 %", "idle 0.26 s"}},
		{"steps", arguments{"report": cell}, []string{"4 training steps", "median step  0.10 s"}},
		{"stretch", arguments{"report": cell, "from": 0.1, "to": 0.2}, []string{"from 0.10 s to 0.20 s", "Cell [7]:2  60 ms  60 %", "GPU 0 idle  65 ms  65 %"}},
		{"compare", arguments{"before": script, "after": script}, []string{"0.40 s"}},
		{"recordings", arguments{"folder": filepath.Dir(script)}, []string{"4 recordings in", "script.json", "The GPU waited 0.24 of 0.40 s for data"}},
	} {
		text, failed := call(t, c, test.tool, test.in)
		if again, _ := call(t, c, test.tool, test.in); failed || again != text {
			t.Errorf("%s: failed %v, twice the same: %v", test.tool, failed, again == text)
		}
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", test.tool, want, text)
			}
		}
	}
}

func TestNonsenseIsAnErrorAndTheServerGoesOn(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"cut.json": `{"document":"omni_perf.report","version":2,`, "other.json": `{"a":1}`, "list.json": "[[[[", "text.json.gz": "no gzip",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := connected(t)
	for _, in := range []struct {
		tool string
		arguments
	}{
		{"headline", arguments{"report": ""}}, {"headline", arguments{"report": folder}}, {"headline", arguments{"report": "/dev/zero"}},
		{"headline", arguments{"report": folder + "/none.json"}}, {"headline", arguments{"report": folder + "/cut.json"}}, {"lines", arguments{"report": folder + "/other.json"}},
		{"headline", arguments{}}, {"headline", arguments{"report": 7}}, {"headline", arguments{"report": script, "more": "x"}},
		{"stretch", arguments{"report": script, "from": 3, "to": 2}}, {"stretch", arguments{"report": script, "from": "a", "to": 2}},
		{"compare", arguments{"before": script, "after": folder + "/list.json"}}, {"compare", arguments{"before": script}},
		{"trace", arguments{"path": script, "table": "cost"}}, {"trace", arguments{"path": folder + "/none"}}, {"trace", arguments{"path": ""}},
		{"recordings", arguments{"folder": folder + "/none"}}, {"delete", arguments{}},
	} {
		if text, failed := call(t, c, in.tool, in.arguments); !failed || text == "" {
			t.Errorf("%s of %v is answered: %q", in.tool, in.arguments, text)
		}
	}
	if text, failed := call(t, c, "recordings", arguments{"folder": folder}); failed || !strings.HasPrefix(text, "0 recordings in ") {
		t.Errorf("recordings of a folder without: %q", text)
	}
	if _, failed := call(t, c, "headline", arguments{"report": script}); failed {
		t.Error("after nonsense the server does not answer")
	}
}

// What was read once is read anew when the file has changed.
func TestAnswersFollowTheFile(t *testing.T) {
	c, path := connected(t), filepath.Join(t.TempDir(), "r.json.gz")
	write := func(from string) {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z := gzip.NewWriter(f)
		if _, err := z.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(script)
	before, _ := call(t, c, "lines", arguments{"report": path})
	write(cell)
	after, _ := call(t, c, "lines", arguments{"report": path})
	if !strings.HasPrefix(before, "script.py, ") || !strings.HasPrefix(after, "Cell [7], ") {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
}

func TestServeEndsWithItsClient(t *testing.T) {
	in, client := io.Pipe()
	client.Close()
	if err := agents.Serve(t.Context(), "test", in, discard{}); err != nil {
		t.Errorf("the client has left: %v", err)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	in, client := io.Pipe()
	defer client.Close()
	if err := agents.Serve(ctx, "test", in, discard{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the context is over: %v", err)
	}
}

// discard is an output that nobody reads.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
