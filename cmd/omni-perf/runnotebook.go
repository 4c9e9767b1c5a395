package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/doors/waiter"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// notebookOptions are those of run that are for notebooks alone. Their names are nbclient's, where it has them.
var notebookOptions = []string{"allow-errors", "kernel-name", "timeout", "executed"}

// notebookFlags defines them.
func notebookFlags(c *cobra.Command) *program.Notebook {
	n := &program.Notebook{}
	c.Flags().BoolVar(&n.AllowErrors, "allow-errors", false, "of a notebook: go on behind a cell that fails")
	c.Flags().StringVar(&n.Kernel, "kernel-name", "", "of a notebook: the `KERNEL` to execute it in (default the notebook's own)")
	c.Flags().Var(secondsValue{&n.Timeout, true}, "timeout", "of a notebook: `SECONDS` that a cell may take; 0: any")
	c.Flags().StringVar(&n.Executed, "executed", "", "of a notebook: the `FILE` to write the executed notebook to")
	return n
}

// firstChanged is the first of these options that was given; empty: none was.
func firstChanged(c *cobra.Command, names []string) string {
	for _, name := range names {
		if c.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// runNotebook executes a notebook; what has its path, and the options behind it, which interpreter and open may be among.
func runNotebook(c *cobra.Command, n *program.Notebook, what []string, interpreter *string, open *bool, options func() (program.Options, error)) error {
	if err := c.Flags().Parse(what[1:]); err != nil {
		return optionError(c, err)
	}
	if rest := c.Flags().Args(); len(rest) > 0 {
		return misuse("%q is one argument too many: a notebook takes none", rest[0])
	}
	if name := firstChanged(c, []string{"fail-if", "no-step-hook", "exact", "push"}); name != "" {
		return misuse("--%s is for scripts", name)
	}
	n.Path, n.Interpreter = what[0], *interpreter
	var err error
	if n.Page, n.Document, err = resultsOf(c); err != nil {
		return err
	}
	o, err := options()
	if err != nil {
		return err
	}
	_, o.Terminal = columnsOf(os.Stderr)
	if w := waiter.Of(); w != nil {
		o.Waiter = w
	}
	if *open {
		o.Open = openPage
	}
	exit, err := program.RunNotebook(context.Background(), func(pid int) program.Tools { return programTools(timeline.RoleKernel, pid) }, *n, o)
	if err != nil {
		if why := refused(err); why != err {
			return why
		}
		complain(err)
	}
	dieAs(exit)
	return exitStatus(exit.Code)
}

// resultsOf is where the page of a notebook and its document go, by -o and --format; empty: nowhere.
func resultsOf(c *cobra.Command) (page, document string, err error) {
	wanted := map[string]bool{}
	if f := c.Flags().Lookup("format"); f.Changed {
		for _, format := range strings.Split(f.Value.String(), ",") {
			if wanted[format] = true; format != "html" && format != "json" {
				return "", "", misuse("a notebook becomes a page or its figures: --format html, json, or both")
			}
		}
	}
	name := c.Flags().Lookup("output").Value.String()
	switch lower := strings.ToLower(name); {
	case program.IsNotebook(name):
		return "", "", misuse("-o names the page; --executed %s is where the executed notebook goes", name)
	case name == "" || strings.HasSuffix(name, "/"):
		return "", "", misuse("-o takes the name of the page, such as perf_output")
	case len(wanted) == 0 && strings.HasSuffix(lower, ".json"):
		return "", name, nil
	case len(wanted) == 0 && strings.HasSuffix(lower, ".html"):
		return name, "", nil
	}
	base := strings.TrimSuffix(strings.TrimSuffix(name, ".html"), ".json")
	if len(wanted) == 0 || wanted["html"] {
		page = base + ".html"
	}
	if wanted["json"] {
		document = base + ".json"
	}
	return page, document, nil
}
