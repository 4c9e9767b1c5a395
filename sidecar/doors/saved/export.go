package saved

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/show/tables"
	"github.com/omni-perf/omni-perf/sidecar/traces/addtrace"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// CSV is the one format that is a folder of files.
const CSV = "csv"

// Export is asked for of one report.
type Export struct {
	Report  string
	File    string // the one result, or the folder of CSV; empty: Name counts
	Name    string // of the results, without extension
	Trace   string // of torch.profiler, to be merged into it; empty: none
	Formats []string
	Most    int // bytes of the report's JSON, compressed; 0: no bound
	Known   []program.Format
	Push    func(context.Context, *report.View) error // sends it to a server, and says so; nil: it is not sent
}

// Check says what of the request makes no sense: a fragment for the one who asked.
func (q Export) Check() error {
	if q.onlySent() {
		if len(q.Formats) > 0 {
			return errors.New("--format goes with -o FILE or --name NAME")
		}
		return nil
	}
	if (q.File == "") == (q.Name == "") {
		return errors.New("name the result by either -o FILE or --name NAME")
	}
	if q.folder() && (len(q.Formats) > 1 || q.File == "") {
		return errors.New("--format csv goes alone, with -o FOLDER")
	}
	return nil
}

// onlySent reports whether no file is asked for.
func (q Export) onlySent() bool { return q.Push != nil && q.File == "" && q.Name == "" }

func (q Export) folder() bool { return slices.Contains(q.Formats, CSV) }

// Run reads, merges, writes and sends; results says what became of each file.
func (q Export) Run(ctx context.Context, results *output.Results) error {
	write, err := q.writer(results)
	if err != nil {
		return err
	}
	r, err := q.read(ctx)
	if err != nil {
		return err
	}
	write(r)
	err = results.Err()
	if q.Push != nil {
		err = errors.Join(err, q.Push(ctx, r))
	}
	return err
}

// writer checks where the results go, and returns what writes them.
func (q Export) writer(results *output.Results) (func(*report.View), error) {
	if q.onlySent() {
		return func(*report.View) {}, nil
	}
	if q.folder() {
		return func(r *report.View) {
			results.Put(q.File, func(folder string) error { return tables.WriteFolder(r, folder) })
		}, output.CheckFolder(q.File)
	}
	files, err := q.files()
	if err != nil {
		return nil, err
	}
	return func(r *report.View) { program.Write(r, files, results) }, program.Check(files)
}

// read reads the report, merges the trace into it, and thins it.
func (q Export) read(ctx context.Context) (*report.View, error) {
	r, err := Read(q.Report)
	if err == nil && q.Trace != "" {
		r, err = addtrace.File(ctx, r, q.Trace)
	}
	if err != nil || q.Most <= 0 {
		return r, err
	}
	thin, err := r.Thin(q.Most)
	if err != nil {
		return nil, err
	}
	return report.Check(thin.Document)
}

func (q Export) files() ([]program.File, error) {
	if q.File == "" {
		naming, err := program.Name(q.Known, q.Name, q.Formats)
		if err != nil {
			return nil, err
		}
		return naming.Files(""), nil
	}
	if len(q.Formats) > 1 {
		return nil, errors.New("-o FILE takes one format; --name NAME takes several")
	}
	file, err := program.Exactly(q.Known, q.File, strings.Join(q.Formats, ""))
	return []program.File{file}, err
}

// WriteResults writes as JSON, a line, what became of the files of an Export: the extension reads it.
func WriteResults(w io.Writer, results *output.Results, err error) {
	done := struct {
		Written []string `json:"written"`         // the files asked for
		Saved   []string `json:"saved"`           // those that are in a temporary folder instead
		Error   string   `json:"error,omitempty"` // a sentence; empty: all is well
	}{Written: append([]string{}, results.Written...), Saved: []string{}}
	for _, f := range results.Failed {
		if f.Saved != "" {
			done.Saved = append(done.Saved, f.Saved)
		}
	}
	if err != nil {
		done.Error = words.Sentence(err.Error())
	}
	_ = json.NewEncoder(w).Encode(done) // nobody reads it if it is closed
}
