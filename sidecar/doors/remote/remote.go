// Package remote lets commands name places that fsspec knows, s3://bucket/run, where they take files: what is
// to be read is fetched before, what was written is handed over afterwards.
//
// In flow a command's options and arguments, out flow the same with local names in place of URLs. It opens no
// connection and knows no protocol: `python -m omni_perf`, with fsspec and the libraries that it needs, does the
// copying, and has the credentials. What could not be handed over stays where it was written.
package remote

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/omni-perf/omni-perf/sidecar/doors/python"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// url recognises what fsspec takes for one, chained protocols too: simplecache::s3://bucket/name.
var url = regexp.MustCompile(`^[a-z][a-z0-9+.-]*(::[a-z][a-z0-9+.-]*)*://.`)

// IsURL recognises the name of a remote place.
func IsURL(name string) bool { return url.MatchString(name) }

// Places are the URLs of one command and where their contents are meanwhile. The zero value has none.
type Places struct {
	Messages io.Writer // for the user

	folder  string // private, of everything fetched and written; empty: there is none yet
	count   int
	results []result
}

// result is what a command writes for a URL.
type result struct{ folder, url string } // the URL ends with a slash

// Options puts local names in the place of the URLs that options have: those of results.
func (p *Places) Options(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		name := f.Value.String()
		if err != nil || f.Value.Type() != "string" || !IsURL(name) {
			return
		}
		var folder string
		if folder, err = p.next(); err != nil {
			return
		}
		at := strings.LastIndexByte(name, '/') + 1
		p.results = append(p.results, result{folder, name[:at]})
		err = f.Value.Set(filepath.Join(folder, name[at:]))
	})
	return err
}

// Arguments fetches what arguments name by a URL, and puts the local names in their place.
func (p *Places) Arguments(args []string) error {
	for i, name := range args {
		if !IsURL(name) {
			continue
		}
		folder, err := p.next()
		if err != nil {
			return err
		}
		local := filepath.Join(folder, name[strings.LastIndexByte(strings.TrimRight(name, "/"), '/')+1:])
		if err := run("get", name, local); err != nil {
			return fmt.Errorf("cannot fetch the input: %w", err)
		}
		args[i] = local
	}
	return nil
}

// Finish hands over the results and removes the local copies. Where one could not be handed over it stays, and
// the error says where.
func (p *Places) Finish() error {
	var failed []error
	for _, r := range p.results {
		written, err := os.ReadDir(r.folder)
		if err != nil || len(written) == 0 { // the command has said why
			continue
		}
		if err := run("put", r.folder, r.url); err != nil {
			failed = append(failed, fmt.Errorf("the results could not be handed over to %s: %w; they are in %s", r.url, err, r.folder))
			continue
		}
		for _, w := range written {
			fmt.Fprintf(p.Messages, "omni-perf: handed over %s%s\n", r.url, w.Name())
		}
	}
	if p.folder != "" && len(failed) == 0 {
		_ = os.RemoveAll(p.folder)
	}
	return errors.Join(failed...)
}

// next makes a folder for one URL.
func (p *Places) next() (string, error) {
	if p.folder == "" {
		folder, err := os.MkdirTemp("", "omni-perf-remote-")
		if err != nil {
			return "", err
		}
		p.folder = folder
	}
	p.count++
	folder := filepath.Join(p.folder, fmt.Sprint(p.count))
	return folder, os.Mkdir(folder, 0o700)
}

// run calls the Python module that copies; its last line is the error.
func run(what, from, to string) error {
	cmd := exec.Command(python.OfExtension(), "-m", "omni_perf", "remote-"+what, from, to)
	var said strings.Builder
	cmd.Stderr = &said
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if last := words.LastLine(said.String()); last != "" {
		return errors.New(strings.TrimSuffix(strings.TrimPrefix(last, "omni_perf: "), "."))
	}
	return fmt.Errorf("%s: %w", cmd.Path, err)
}
