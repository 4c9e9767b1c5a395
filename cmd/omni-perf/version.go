package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "print the version", Args: noArguments, RunE: func(*cobra.Command, []string) error {
		fmt.Printf("omni-perf %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return nil
	}}
}
