package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/doors/agents"
	"github.com/omni-perf/omni-perf/sidecar/doors/signals"
)

func mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "answer an agent's questions on recordings and traces, by the Model Context Protocol",
		Long: `Serves the Model Context Protocol on standard input and output: tools that list
recordings and kernels, give headline, findings, lines, idle causes and a stretch's
figures, compare two recordings and analyse torch traces. It reads files of yours and
writes none. An agent starts it; see SKILL.md for what to ask when.`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signals.Context(context.Background())
			defer stop()
			return agents.Serve(ctx, version, os.Stdin, os.Stdout)
		},
	}
}
