package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/doors/server"
)

func serveCommand() *cobra.Command {
	c := &cobra.Command{Use: "serve [options]", Short: "serve a Jupyter kernel (started by the extension)", Args: noArguments}
	detach := c.Flags().Bool("detach", false, "start the sidecar in a session of its own and exit")
	c.RunE = func(*cobra.Command, []string) error {
		if *detach {
			return server.StartDetached("serve")
		}
		err := server.Serve(context.Background(), server.Config{
			Version: version,
			Stdin:   os.Stdin,
			Stdout:  os.Stdout,
			LogFile: os.Getenv("OMNI_PERF_LOG"),
			Session: kernelSession,
			Detach:  true,
		})
		if err != nil { // reported on standard output, or in the log
			return exitStatus(exitFailed)
		}
		return nil
	}
	return c
}
