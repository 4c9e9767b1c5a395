package tables_test

import (
	"fmt"
	"os"

	"github.com/omni-perf/omni-perf/sidecar/show/tables"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

func ExampleOf() {
	text, err := os.ReadFile("../../understand/report/testdata/script.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	view, err := report.Read(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range tables.Of(view) {
		if t.Name == "processes" {
			err = t.WriteCSV(os.Stdout)
		}
	}
	fmt.Println(err)
	// Output:
	// pid,parent,role,command,rank,start_s,end_s,end_reason,exit_code,cpu_s,stacks,peak_memory_bytes,peak_at_least_bytes,kept_bytes,own_bytes,pss_bytes,exception,message,file,line
	// 100,,script,python,,-2,,,,0.24,read,,1076887552,,,,,,,
	// 140,100,child,nvidia-smi,,0.03,0.06,exit,0,0.004,nobody tried to read its stacks,,,,,,,,,
	// <nil>
}
