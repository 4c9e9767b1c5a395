package analyses

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// run is an operator that ran one kernel of 10 µs on an H100.
func (s *script) run(name, kernel, args string) {
	at := float64(100 * s.next)
	s.opWith(name, at, 50, args)
	s.launch(at+5, 7, kernel, at+10, 10, "")
}

func onDevice(name string) *script {
	return &script{head: fmt.Sprintf(`"deviceProperties":[{"id":0,"name":%q}],`, name)}
}

const h100 = "NVIDIA H100 80GB HBM3"

// TestModels: operations and bytes worked out by hand, two bytes an element unless said.
func TestModels(t *testing.T) {
	bf16 := func(n int) string {
		return `"Input type":[` + strings.TrimSuffix(strings.Repeat(`"c10::BFloat16",`, n), ",") + `]`
	}
	for _, c := range []struct {
		op, kernel, args, kind, dtype string
		flops, bytes                  float64 // 0: not known
	}{
		{"aten::mm", "gemm", `"Input Dims":[[8,32],[32,10]],` + bf16(2), "gemm", "bf16", 2 * 8 * 32 * 10, 2 * (8*32 + 32*10 + 8*10)},
		{"aten::addmm", "gemm", `"Input Dims":[[10],[8,32],[32,10],[],[]],` + bf16(3), "gemm", "bf16", 2 * 8 * 32 * 10, 2 * (10 + 8*32 + 32*10 + 8*10)},
		{"aten::_scaled_mm", "nvjet", `"Input Dims":[[8,32],[32,10]],"Input type":["c10::Float8_e4m3fn","c10::Float8_e4m3fn"]`, "gemm", "fp8", 2 * 8 * 32 * 10, 8*32 + 32*10 + 2*8*10},
		{"aten::_grouped_mm", "gemm", `"Input Dims":[[8,32],[4,32,10],[4]],` + bf16(2), "gemm", "bf16", 2 * 8 * 32 * 10, 2 * (8*32 + 4*32*10 + 8*10)},
		{"aten::mm", "ampere_sgemm_tf32_128", `"Input Dims":[[8,32],[32,10]],"Input type":["float","float"]`, "gemm", "tf32", 2 * 8 * 32 * 10, 4 * (8*32 + 32*10 + 8*10)},
		{"aten::_flash_attention_forward", "flash_fwd", `"Input Dims":[[2,64,4,16],[2,80,4,16],[2,80,4,16],[],[]],` + bf16(3), "attention", "bf16", 4 * 2 * 4 * 64 * 80 * 16, 2 * 2 * 4 * 16 * (64 + 80 + 80 + 64)},
		{"aten::_convolution", "fprop", `"Input Dims":[[8,3,32,32],[16,3,3,3]],"Concrete Inputs":["","","","[1, 1]","[1, 1]","[1, 1]","False","[0, 0]","1"],` + bf16(2), "convolution", "bf16",
			2 * 8 * 32 * 32 * 16 * 27, 2 * (8*3*32*32 + 16*27 + 8*16*32*32)},
		{"aten::native_layer_norm", "norm", `"Input Dims":[[8,32],[],[32],[32],[]],` + bf16(1), "norm", "bf16", 0, 2 * 2 * 8 * 32},
		{"aten::add", "elementwise", `"Input Dims":[[8,32],[32],[]],` + bf16(2), "elementwise", "bf16", 8 * 32, 2 * (8*32 + 32 + 8*32)},
		{"aten::mul", "elementwise", `"Input Dims":[[8,32],[]],"Input type":["float","double"]`, "elementwise", "fp32", 8 * 32, 4 * 2 * 8 * 32},
		{"aten::eq", "elementwise", `"Input Dims":[[8,32],[8,32]],` + bf16(2), "elementwise", "bf16", 8 * 32, (2*2 + 1) * 8 * 32},
		{"aten::sum", "reduce", `"Input Dims":[[8,32]],` + bf16(1), "reduction", "bf16", 8 * 32, 2 * 8 * 32},
		{"aten::copy_", "copy", `"Input Dims":[[8,32],[8,32]],"Input type":["float","c10::BFloat16"]`, "copy", "fp32", 0, (4 + 2) * 8 * 32},
		{"aten::cat", "CatArrayBatchedCopy<at::native::OpaqueType<2u>, 4>", `"Input Dims":[[[8,32],[8,16]],[]],"Input type":["TensorList","Scalar"]`, "copy", "", 0, 2 * 2 * 8 * 48},
		{"aten::embedding", "gather", `"Input Dims":[[1000,32],[8]],"Input type":["c10::BFloat16","long int"]`, "index", "bf16", 0, 2*2*8*32 + 8*8},
		{"aten::_fused_adam_", "multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>", `"Input Dims":[[[10]],[[10]],[[10]],[[10]],[[]],[[1]]],"Input type":["TensorList","TensorList"]`, "optimizer", "", 0, 4 * 7 * 10},
		// What cannot be known has no figure; the kernel's name still shows the kind.
		{"aten::mm", "gemm", `"Input Dims":[[8,32],[31,10]],` + bf16(2), "gemm", "", 0, 0},
		{"aten::mm", "gemm", `"Input Dims":[[-8,32],[32,10]],` + bf16(2), "gemm", "", 0, 0},
		{"aten::mm", "gemm", `"Input Dims":[[8,32],[32,10]],"Input type":"float"`, "gemm", "", 2 * 8 * 32 * 10, 0},
		{"aten::add", "elementwise", `"Input Dims":[[8,32],[31]],` + bf16(2), "elementwise", "", 0, 0},
		{"aten::_flash_attention_forward", "flash_fwd", `"Input Dims":[[1,640,4,16],[1,640,4,16],[1,640,4,16],[11],[11]],` + bf16(3), "attention", "", 0, 0},
		{"mine::fused", "cutlass_gemm", `"Input Dims":[[8,32]],` + bf16(1), "gemm", "", 0, 0},
		{"mine::op", "k", `"Input Dims":[[8,32]],` + bf16(1), "other", "", 0, 0},
	} {
		s := onDevice(h100)
		s.run(c.op, c.kernel, c.args)
		rows := analyze(Options{}, s.trace(t)).Table(TableEfficiency)
		value := func(column string) float64 {
			if v := rows.FloatAt(column, 0); !math.IsNaN(v) {
				return v
			}
			return 0
		}
		if rows.Len() != 1 || value("flops") != c.flops || value("bytes") != c.bytes || rows.TextAt("kind", 0) != c.kind || rows.TextAt("dtype", 0) != c.dtype {
			t.Errorf("%s with %s: %s, %d rows, %g operations, %g bytes, want %s %g %g", c.op, c.args, cells(rows, "kind", "dtype"), rows.Len(), value("flops"), value("bytes"), c.kind, c.flops, c.bytes)
		}
	}
}

// The shares are of the H100's 989.5 TFLOP/s and 3,350 GB/s in 10 µs.
func TestSharesOfThePeak(t *testing.T) {
	const types = `"Input type":["c10::BFloat16","c10::BFloat16"]`
	s := onDevice(h100)
	s.run("aten::mm", "nvjet", `"Input Dims":[[1024,1024],[1024,1024]],`+types) // 2.15 GFLOP, 6.29 MB
	s.run("aten::mm", "nvjet", `"Input Dims":[[1,1024],[1024,8192]],`+types)    // 16.8 MB
	a := analyze(Options{}, s.trace(t))
	rows := a.Table(TableEfficiency)
	for r := range rows.Len() {
		of, memory, both := rows.FloatAt("flops_peak_share", r), rows.FloatAt("bandwidth_peak_share", r), rows.FloatAt("roofline_share", r)
		switch shapes := rows.TextAt("input_shapes", r); shapes {
		case "[[1024, 1024], [1024, 1024]]":
			if math.Abs(of-0.2170) > 1e-3 || math.Abs(memory-0.1878) > 1e-3 || both != of || rows.TextAt("bound", r) != "compute" {
				t.Errorf("%s: %g %g %g", shapes, of, memory, both)
			}
		case "[[1, 1024], [1024, 8192]]":
			if math.Abs(memory-0.5014) > 1e-3 || both != memory || rows.TextAt("bound", r) != "memory" {
				t.Errorf("%s: %g %g %g", shapes, of, memory, both)
			}
		default:
			t.Errorf("a row of %s", shapes)
		}
	}
	check(t, "kinds", cells(a.Table(TableEfficiencyKinds), "kind", "calls", "device_us", "known_share", "tensor_core_share"), "gemm 2 20 1 1\n")
}

// Shapes that lie need more than the peak, a device that is not in the table has none: no share.
func TestNoShareOfThePeak(t *testing.T) {
	const args = `"Input Dims":[[1048576,1048576],[1048576,1048576]],"Input type":["c10::BFloat16","c10::BFloat16"]`
	for device, note := range map[string]string{
		h100:             "",
		"NVIDIA A100-PG": "the peaks of NVIDIA A100-PG are not known here",
		"":               "",
	} {
		s := onDevice(device)
		s.run("aten::mm", "nvjet", args)
		rows := analyze(Options{}, s.trace(t)).Table(TableEfficiency)
		for _, column := range []string{"flops_peak_share", "bandwidth_peak_share", "roofline_share"} {
			if v := rows.FloatAt(column, 0); !math.IsNaN(v) {
				t.Errorf("%q: %s is %g", device, column, v)
			}
		}
		if !strings.Contains(rows.Note, note) || note == "" && rows.Note != "" {
			t.Errorf("%q: note %q", device, rows.Note)
		}
	}
}

// An operator's work counts once: in the innermost one with a formula, and without operations where one in it counted them.
func TestEfficiencyCountsOnce(t *testing.T) {
	s := onDevice(h100)
	s.opWith("aten::scaled_dot_product_attention", 0, 100, `"Input Dims":[[2,4,64,16],[2,4,64,16],[2,4,64,16]],"Input type":["float","float","float"]`)
	s.opWith("aten::bmm", 10, 20, `"Input Dims":[[8,64,16],[8,16,64]],"Input type":["float","float"]`)
	s.launch(12, 7, "gemm", 20, 10, "")
	s.opWith("aten::helper", 40, 20, `"Input Dims":[[8,64,64]]`)
	s.launch(42, 7, "mask_kernel", 50, 5, "")
	s.launch(200, 7, "alone", 210, 3, "")
	check(t, "rows", cells(analyze(Options{}, s.trace(t)).Table(TableEfficiency), "operator", "kind", "calls", "device_us", "flops"), fmt.Sprintf(`
		aten::bmm gemm 1 10 %d
		aten::scaled_dot_product_attention other 1 5 
		alone other 1 3 
	`, 2*8*64*16*64))
}

// Without shapes there are kinds, and the reason.
func TestEfficiencyWithoutShapes(t *testing.T) {
	s := onDevice(h100)
	s.run("aten::mm", "sm90_xmma_gemm_bf16bf16", `"External id":1`)
	rows := analyze(Options{}, s.trace(t)).Table(TableEfficiency)
	if rows.Len() != 1 || rows.TextAt("kind", 0) != KindGEMM || !strings.Contains(rows.Note, "record_shapes=True") {
		t.Errorf("%s, note %q", cells(rows, "operator", "kind", "flops"), rows.Note)
	}
}

// TestPeaks: the table is readable, and no figure is a slip of a digit: a type of half the size is at most 2.2 times as fast.
func TestPeaks(t *testing.T) {
	all, err := readPeaks(devicesText)
	if err != nil {
		t.Fatal(err)
	}
	for device, p := range all {
		if p.Source == "" || p.Bandwidth < 1e11 || p.Bandwidth > 1e13 || len(p.Flops) == 0 {
			t.Errorf("%s: %+v", device, p)
		}
		if f := p.Flops; f["bf16"] > 0 && f["bf16"] != f["fp16"] || f["fp8"] > 2.2*f["bf16"] || f["tf32"] > f["bf16"] {
			t.Errorf("%s: %v", device, f)
		}
	}
	for _, text := range []string{"GPU: bandwidth=1", "[s]\nGPU bandwidth=1", "[s]\nGPU: bandwidth=x", "[s]\nGPU: bandwidth=0", "[s]\nGPU: fp16=1\nGPU: fp16=2"} {
		if _, err := readPeaks(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func FuzzModels(f *testing.F) {
	f.Add(`[[8, 3, 32, 32], [16, 3, 3, 3], []]`, `["", "", "[1, 1]", "True"]`, `["float", "c10::BFloat16", "Scalar"]`)
	f.Add(`[[[2,3],[4]], 7, null]`, `null`, `["TensorList"]`)
	f.Add(`[[9223372036854775807,9223372036854775807],[9223372036854775807,2]]`, ``, `["double","double"]`)
	f.Add(`[[0,0,0],[0,0,0],[0]]`, `[`, `[`)
	f.Fuzz(func(t *testing.T, dims, concrete, types string) {
		in := inputs{shapes: parseShapes(dims, concrete), types: parseTypes(types), element: 2}
		for name, model := range models {
			c := model.of(in)
			sums := efficiencySums{ns: 1, flops: finite(c.flops), bytes: finite(c.bytes)}
			peak, _ := PeakOf(h100)
			v := sums.rates(c.dtype, peak)
			for _, share := range []float64{v.ofFlops, v.ofBandwidth, v.of} {
				if share < 0 || share > 1 {
					t.Errorf("%s of %q, %q and %q: a share of %g", name, dims, concrete, types, share)
				}
			}
		}
	})
}

// collective of a rank: elements in and out, in a group of four.
func (s *script) collective(name, dtype string, in, out int, seq int, start, dur float64) {
	s.launch(start-1, 7, "ncclDevKernel", start, dur, fmt.Sprintf(
		`,"Collective name":%q,"dtype":%q,"In msg nelems":%d,"Out msg nelems":%d,"Group size":4,"Process Group Name":"0","Seq":%d`, name, dtype, in, out, seq))
}

// TestBandwidthOfCollectives: by NCCL's definitions; of matched ranks the last one's time counts.
func TestBandwidthOfCollectives(t *testing.T) {
	ranks := [2]script{{rank: 0}, {rank: 1}}
	for r := range ranks {
		ranks[r].collective("allreduce", "Float", 1000, 1000, 1, 100, float64(40-20*r)) // rank 1 waits for nobody: 20 µs
		ranks[r].collective("_allgather_base", "BFloat16", 500, 2000, 2, 200, 10)
		ranks[r].collective("mystery", "Float", 1000, 1000, 3, 300, 10)
		ranks[r].collective("broadcast", "Weird", 1000, 1000, 4, 400, 10)
		ranks[r].collective("broadcast", "Byte", 0, 0, 5, 500, 10)
	}
	rows := analyze(Options{}, ranks[0].trace(t), ranks[1].trace(t)).Table(TableCommunication)
	check(t, "matched", cells(rows, "collective", "group_size", "dtype", "size_bytes", "count", "waiting", "median_us", "algorithm_gbps", "bus_gbps"), `
		allreduce 4 Float 4000 1 excluded 20 0.2 0.3
		_allgather_base 4 BFloat16 4000 1 excluded 10 0.4 0.3
	`)
	alone := analyze(Options{}, ranks[0].trace(t)).Table(TableCommunication)
	check(t, "alone", cells(alone, "collective", "count", "waiting", "median_us"), `
		allreduce 1 included 40
		_allgather_base 1 included 10
	`)
}

// TestAStepIsNoOperator: what is launched in a step and in no operator is listed by itself.
func TestAStepIsNoOperator(t *testing.T) {
	var s script
	s.op("user_annotation", "ProfilerStep#4", 0, 100, 1)
	s.launch(10, 7, "spin", 20, 10, `,"External id":1`)
	rows := analyze(Options{}, s.trace(t)).Table(TableEfficiency)
	check(t, "efficiency", cells(rows, "operator", "device_us"), "spin 10\n")
}
