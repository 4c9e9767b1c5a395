package page

import (
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
)

// TestNamesOfOneTemplateAreDistinguished: what is cut off the end of a kernel's name is what distinguishes it from another.
func TestNamesOfOneTemplateAreDistinguished(t *testing.T) {
	names := []string{
		"cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>",
		"cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>",
		"cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>",
		"cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>", // on another stream
		"short",
	}
	rooms := []float64{260, 262, 258, 260, 260}
	got := distinguished(names, rooms)
	for i, name := range got {
		if scene.WidthOf(name, textSize, scene.Sans) > rooms[i] {
			t.Errorf("%q has no room", name)
		}
	}
	for i, part := range []string{"cutlass::Kernel2", "…bf16_256x128", "…relu_bf16_64x64", "…relu_bf16_64x64", "short"} {
		if !strings.Contains(got[i], part) {
			t.Errorf("%q does not contain %q", got[i], part)
		}
	}
	if got[1] == got[2] || got[0] == got[1] {
		t.Errorf("different kernels read the same: %q", got)
	}
}
