// Package agents is the door for programs that ask questions: a server of the Model Context
// Protocol on standard input and output, whose tools list recordings and kernels, answer
// questions on a recording, compare two, and analyse torch traces.
//
// In flow a client's calls, out flow answers of at most answers.MaxBytes, in words, each with
// its places and seconds. It reads what the user who started it may read, writes nothing,
// and knows nothing that the files do not say: the same call has the same answer while the
// files are the same.
package agents

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/omni-perf/omni-perf/sidecar/show/answers"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Name is what the server calls itself.
const Name = "omni-perf"

const instructions = `Recordings of Python programs and notebook cells, and torch.profiler traces.
Begin with recordings, then headline, which says where the time went and what to do.
lines, idle, functions and stretch have the figures behind it; compare says what two
recordings differ in beyond noise. Seconds are wall time where nothing else is said.`

// Serve answers what it reads until the client closes that; if ctx is over before, it
// returns its error.
func Serve(ctx context.Context, version string, in io.ReadCloser, out io.WriteCloser) error {
	return New(version).Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
}

// New makes the server.
func New(version string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: Name, Version: version}, &mcp.ServerOptions{
		Instructions: instructions, Capabilities: &mcp.ServerCapabilities{},
	})
	d := &desk{files: newShelf()}
	for _, topic := range answers.Names() {
		if t := answers.Topic(topic); t != answers.Stretch {
			add(s, topic, t.About()+", of a recording", func(_ context.Context, in ofReport) (string, error) {
				return d.ask(in.Report, answers.Question{About: t})
			})
		}
	}
	add(s, string(answers.Stretch), answers.Stretch.About(), d.stretch)
	add(s, "recordings", "the recordings in a folder, the newest first", d.recordings)
	add(s, "kernels", "the running notebook kernels of this user, and what each is doing", d.kernels)
	add(s, "compare", "what differs between two recordings, and what of it is only noise", d.compare)
	add(s, "trace", "what torch.profiler traces say: idle time of the GPUs, operators, kernels, communication", d.trace)
	return s
}

// What the tools take.
type (
	ofReport struct {
		Report string `json:"report" jsonschema:"file of the recording, NAME.json"`
	}
	ofStretch struct {
		Report string  `json:"report" jsonschema:"file of the recording, NAME.json"`
		From   float64 `json:"from" jsonschema:"seconds since the recording began"`
		To     float64 `json:"to" jsonschema:"seconds since the recording began"`
	}
	ofFolder struct {
		Folder string `json:"folder,omitempty" jsonschema:"where to look; the working directory if absent"`
	}
	ofNothing struct{}
	ofTwo     struct {
		Before string `json:"before" jsonschema:"file of the recording before a change"`
		After  string `json:"after" jsonschema:"file of the recording after it"`
	}
	ofTrace struct {
		Path  string `json:"path" jsonschema:"a trace of torch.profiler, or a folder of them"`
		Table string `json:"table,omitempty" jsonschema:"only this table, such as operators, kernels or idle; all in short if absent"`
	}
)

// add gives the server a tool. What a file says is foreign text: it is cleaned and cut.
func add[In any](s *mcp.Server, name, about string, answer func(context.Context, In) (string, error)) {
	closed := false
	mcp.AddTool(s, &mcp.Tool{
		Name: name, Description: words.Sentence(about),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed},
	}, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		ctx, stop := context.WithTimeout(ctx, patience)
		defer stop()
		text, err := answer(ctx, in)
		if err != nil {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: words.Sentence(words.Clean(err.Error(), answers.MaxBytes/4))}}}, nil, nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: brief(text)}}}, nil, nil
	})
}

// patience is how long a trace may take to be read.
const patience = 5 * time.Minute

// brief cuts a text at the end of a line, and says so.
func brief(text string) string {
	if len(text) <= answers.MaxBytes {
		return text
	}
	const rest = "The rest is left out.\n"
	text = text[:answers.MaxBytes-len(rest)]
	return text[:strings.LastIndexByte(text, '\n')+1] + rest
}
