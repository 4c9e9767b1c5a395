package main

import (
	"fmt"
	"runtime"
)

func versionCommand() command {
	return command{"version", "print the version", func([]string) int {
		fmt.Printf("omni-perf %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return exitOK
	}}
}
