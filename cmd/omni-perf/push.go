package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/doors/profilestore"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// pushing is the option --push.
type pushing struct{ place *profilestore.Place }

func pushFlag(c *cobra.Command) *pushing {
	p := &pushing{}
	parse := func(text string) (*profilestore.Place, error) {
		place, err := profilestore.Parse(text)
		return &place, err
	}
	c.Flags().Var(parsedValue[*profilestore.Place]{&p.place, parse, "url"}, "push", "send the stacks to the Pyroscope at `URL`, http://HOST:4040, or to a Parca, parca+http://HOST:7070; ?name=NAME&LABEL=VALUE names them")
	return p
}

func (p *pushing) asked() bool { return p.place != nil }

// to is where a report is sent to; nil: nowhere.
func (p *pushing) to() func(context.Context, *report.View) error {
	if !p.asked() {
		return nil
	}
	return func(ctx context.Context, r *report.View) error {
		sent, err := profilestore.Push(ctx, r, *p.place)
		if err == nil {
			fmt.Fprintf(messages, "omni-perf: sent %s to %s\n", profiles(sent), p.place)
		}
		return err
	}
}

func profiles(n int) string {
	if n == 1 {
		return "the profile"
	}
	return fmt.Sprintf("the profiles of %d processes", n)
}

// send sends the report of a program whose exit code is its own, whatever becomes of that; nil: nobody asked for it.
func (p *pushing) send() func(*report.View, []string) {
	to := p.to()
	if to == nil {
		return nil
	}
	return func(r *report.View, written []string) {
		err := to(context.Background(), r)
		if err == nil {
			return
		}
		kept := "--format json keeps a report that omni-perf export FILE.json --push URL sends"
		if at := slices.IndexFunc(written, func(path string) bool { return strings.HasSuffix(path, ".json") }); at >= 0 {
			kept = fmt.Sprintf("omni-perf export %s --push URL sends it later", written[at])
		}
		complain(fmt.Errorf("%w; %s", err, kept))
	}
}
