// Command harness writes pages that host the viewer over made-up recordings, for
// developing, testing and measuring it:
//
//	go run ./sidecar/testkit/harness -o FOLDER              a page per sample and theme, payloads beside them
//	go run ./sidecar/testkit/harness -o FOLDER -spans N     one page with N random spans of 5 threads
//
//	go run ./sidecar/testkit/harness -o FOLDER -report FILE   a notebook's outputs of a saved report: cell.html,
//	                                                               cell.json and folded.json, their data by media type
//
//	go run ./sidecar/testkit/harness -style FILE   the style sheet that the JupyterLab extension has for pictures
//
//	go run ./sidecar/testkit/harness -enumerations FILE   the report's enumerations, as the viewer has them
//
//	go run ./sidecar/testkit/harness -answers N   N random documents with what Go makes of them, a line of JSON each:
//	                                              viewer/test/differential.nodetest.ts holds the viewer to them
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/doors/display"
	"github.com/omni-perf/omni-perf/sidecar/show/chart"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/testkit/documents"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

func main() {
	folder := flag.String("o", "build/viewer", "`folder` to write to")
	spans := flag.Int("spans", 0, "write one page of so many random spans")
	saved := flag.String("report", "", "write a notebook's output of the report in this `file`")
	style := flag.String("style", "", "write the pictures' style sheet to this `file`, no page")
	enumerations := flag.String("enumerations", "", "write the report's enumerations in TypeScript to this `file`, no page")
	answers := flag.Int("answers", 0, "write so many random documents, with Go's figures of them, to the standard output")
	flag.Parse()
	if err := write(*folder, *spans, *saved, *style, *enumerations, *answers); err != nil {
		fmt.Fprintln(os.Stderr, "harness:", err)
		os.Exit(1)
	}
}

func write(folder string, spans int, saved, style, enumerations string, answers int) error {
	switch {
	case answers > 0:
		return writeAnswers(answers)
	case style != "":
		return os.WriteFile(style, []byte(scene.StyleSheet(viewer.PictureClass)), 0o644)
	case enumerations != "":
		return os.WriteFile(enumerations, []byte(documents.Enumerations()), 0o644)
	case saved != "":
		return writeOutput(folder, saved)
	}
	return run(folder, spans)
}

func run(folder string, spans int) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	samples := documents.Samples()
	if spans > 0 {
		samples = map[string]func() *documents.Document{
			"random": func() *documents.Document { return documents.Random(spans, 5, 60, 30) },
		}
	}
	var all []string
	for name, sample := range samples {
		d := sample()
		output, err := documents.Output(d, viewer.Script, viewer.Style)
		if err != nil {
			return err
		}
		payload, err := documents.Payload(d)
		if err != nil {
			return err
		}
		files := map[string]string{
			name + ".html":      documents.Page("light", output),
			name + "-dark.html": documents.Page("dark", output),
			name + ".payload":   payload,
		}
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
				return err
			}
		}
		if name == "training" || name == "cpu" {
			all = append(all, output)
		}
	}
	if len(all) == 0 {
		return nil
	}
	comparison, err := documents.ComparisonOutput(documents.Compared(), viewer.Script, viewer.Style)
	if err != nil {
		return err
	}
	for theme, file := range map[string]string{"light": "comparison.html", "dark": "comparison-dark.html"} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(documents.Page(theme, comparison)), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "several.html"), []byte(documents.Page("light", append(all, all[0])...)), 0o644)
}

// writeAnswers writes random documents, of the seeds 1 to n.
func writeAnswers(n int) error {
	out := bufio.NewWriter(os.Stdout)
	lines := json.NewEncoder(out)
	for seed := range uint64(n) {
		answer, err := documents.Answer(seed + 1)
		if err != nil {
			return fmt.Errorf("document %d: %w", seed+1, err)
		}
		if err := lines.Encode(answer); err != nil {
			return err
		}
	}
	return out.Flush()
}

// writeOutput makes of a saved report what a notebook shows.
func writeOutput(folder, saved string) error {
	text, err := os.ReadFile(saved)
	if err != nil {
		return err
	}
	r, err := report.Read(text)
	if err != nil {
		return err
	}
	for name, at := range map[string]jupyter.Place{"cell": {}, "folded": {Folded: true}} {
		b, err := display.Charts{}.Bundle(r, at)
		if err != nil {
			return err
		}
		data, _, _, err := b.Parts()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name+".json"), []byte(data), 0o644); err != nil {
			return err
		}
	}
	html, err := chart.HTML(r, scene.Options{})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "cell.html"), html, 0o644)
}
