package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/doors/doctor"
	"github.com/omni-perf/omni-perf/sidecar/doors/profiler"
	"github.com/omni-perf/omni-perf/sidecar/doors/server"
)

func doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor [options]",
		Short: "check every prerequisite; exit status 0 when stacks can be read from outside",
		Args:  noArguments,
	}
	asJSON := c.Flags().Bool("json", false, "print JSON")
	interpreter := c.Flags().String("interpreter", "", "the `PYTHON` to try with")
	c.RunE = func(*cobra.Command, []string) error {
		checks := examine(context.Background(), *interpreter)
		if *asJSON {
			out := json.NewEncoder(os.Stdout)
			out.SetIndent("", "  ")
			if err := out.Encode(map[string]any{"ok": doctor.Passed(checks), "version": version, "checks": checks}); err != nil {
				return err
			}
		} else {
			printChecks(checks)
		}
		if !doctor.Passed(checks) {
			return exitStatus(exitFailed)
		}
		return nil
	}
	return c
}

func printChecks(checks []doctor.Check) {
	for _, c := range checks {
		mark := "ok     "
		if !c.OK && c.Required {
			mark = "FAILED "
		} else if !c.OK {
			mark = "missing"
		}
		fmt.Printf("%s  %-22s %s\n", mark, c.Name, plain(c.Sentence))
	}
}

func examine(ctx context.Context, interpreter string) []doctor.Check {
	return doctor.Examine(ctx, doctor.Options{Interpreter: interpreter, Folder: server.TryFolder, GPUs: openGPUs, Read: profiler.Attempt})
}

// sessionDoctor is the same for a kernel, in the protocol's form.
func sessionDoctor(ctx context.Context, interpreter string) []*api.Check {
	var out []*api.Check
	for _, c := range examine(ctx, interpreter) {
		out = append(out, &api.Check{Name: c.Name, Ok: c.OK, Sentence: c.Sentence, Required: c.Required})
	}
	return out
}
