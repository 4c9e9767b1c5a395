package formats

import (
	"context"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/nsys"
	"github.com/omni-perf/omni-perf/sidecar/traces/sqlite"
)

// databases are the kinds of SQLite files, by a table that they have, the first that fits.
var databases = []struct {
	has func(tables []string) bool
	kineto.Foreign
}{
	{hasTable(nsys.StringTable), kineto.Foreign{What: "an export of Nsight Systems", Read: nsys.Read}},
	{hasTable("StringTable"), refused("a profile of nvprof", "record with nsys and export it with nsys export --type sqlite, or with torch.profiler")},
	{hasPrefix("rocpd_"), refused("a rocpd database of rocprofv3", "record with --output-format json")},
	{func([]string) bool { return true }, refused("an SQLite database that is no trace", "of databases the exports of Nsight Systems are read (nsys export --type sqlite)")},
}

func hasTable(name string) func([]string) bool {
	return func(tables []string) bool { return slices.Contains(tables, name) }
}

func hasPrefix(prefix string) func([]string) bool {
	return func(tables []string) bool {
		return slices.ContainsFunc(tables, func(name string) bool { return strings.HasPrefix(name, prefix) })
	}
}

// readDatabase reads an SQLite file as what its tables say that it is.
func readDatabase(ctx context.Context, in kineto.Input, opts kineto.Options) ([]*kineto.Trace, []kineto.Warning, error) {
	if in.Compressed {
		return nil, []kineto.Warning{in.Warn("a compressed SQLite database", "gunzip it")}, nil
	}
	db, err := sqlite.Open(in.At, in.Size)
	if db == nil {
		return nil, []kineto.Warning{in.Warn(err.Error(), "nothing could be read")}, nil
	}
	for _, kind := range databases {
		switch {
		case !kind.has(db.Tables()):
			continue
		case kind.Read != nil:
			return kind.Read(ctx, in, opts)
		case err != nil: // what it is may be in the damaged part
			return nil, []kineto.Warning{in.Warn(err.Error(), "nothing could be read")}, nil
		}
		return nil, []kineto.Warning{in.Note(kind.What, kind.Advice)}, nil
	}
	return nil, nil, nil // the last kind is any
}
