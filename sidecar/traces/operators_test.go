package traces

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// rankOperator names a row of the operator table.
type rankOperator struct {
	rank int64
	name string
}

// readOperators reads what testdata/make_operators.py wrote: µs on the device by rank and operator.
func readOperators(t *testing.T, file string) map[rankOperator]float64 {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	times := map[rankOperator]float64{}
	for _, line := range lines[1:] {
		rank, err1 := strconv.ParseInt(line[0], 10, 64)
		ns, err2 := strconv.ParseInt(line[2], 10, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("%s: %q", file, line)
		}
		times[rankOperator{rank, line[1]}] = float64(ns) / 1e3
	}
	return times
}

// compareOperators compares the device time of every operator of the traces below root with the one that
// the launching calls give. The External ids of rtx2080ti-linear-nostep and a100-alexnet-sync are correlations.
func compareOperators(t *testing.T, root string) {
	references, _ := filepath.Glob(filepath.Join("testdata", "operators", "*.csv"))
	compared := 0
	for _, reference := range references {
		name := filepath.Base(reference[:len(reference)-len(".csv")])
		dir := filepath.Join(root, name)
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		compared++
		t.Run(name, func(t *testing.T) {
			want := readOperators(t, reference)
			got := map[rankOperator]float64{}
			a := Analyze(loadShared(t, dir, kineto.Options{}), analyses.Options{IncludeLastStep: true})
			operators := a.Table(analyses.TableOperators)
			for r := range operators.Len() {
				if us := operators.FloatAt("self_device_us", r); us > 0 {
					got[rankOperator{operators.IntAt("rank", r), operators.TextAt("name", r)}] = us
				}
			}
			for op, us := range want {
				if us > 0 && math.Abs(got[op]-us) > 1e-3 {
					t.Errorf("rank %d, %s: %.3f µs on the device, want %.3f", op.rank, op.name, got[op], us)
				}
			}
			for op, us := range got {
				if want[op] == 0 {
					t.Errorf("rank %d, %s: %.3f µs on the device, want none", op.rank, op.name, us)
				}
			}
		})
	}
	if compared == 0 {
		t.Fatal("no traces to compare")
	}
}

func TestOperatorsParity(t *testing.T) { compareOperators(t, filepath.Join("testdata", "parity")) }

func TestOperatorsGolden(t *testing.T) { compareOperators(t, sharedTraces(t)) }
