package main

import (
	"context"
	"flag"
	"os"

	"github.com/omni-perf/omni-perf/sidecar/server"
)

func serveCommand() command {
	return command{"serve", "serve a Jupyter kernel (started by the extension)", serve}
}

func serve(args []string) int {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	detach := flags.Bool("detach", false, "start the sidecar in a session of its own and exit")
	flags.SetOutput(messages)
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	if *detach {
		if err := server.StartDetached("serve"); err != nil {
			complain(err)
			return exitFailed
		}
		return exitOK
	}
	err := server.Serve(context.Background(), server.Config{
		Version: version,
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		LogFile: os.Getenv("OMNI_PERF_LOG"),
		Session: kernelSession,
		Detach:  true,
	})
	if err != nil {
		return exitFailed
	}
	return exitOK
}
