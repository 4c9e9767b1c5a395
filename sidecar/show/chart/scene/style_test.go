package scene

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
)

// linear returns a colour's linear light, red green blue.
func linear(t *testing.T, hex string) (c [3]float64) {
	t.Helper()
	var rgb [3]int
	if _, err := fmt.Sscanf(hex, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2]); err != nil {
		t.Fatalf("%q: %v", hex, err)
	}
	for i, v := range rgb {
		s := float64(v) / 255
		if c[i] = s / 12.92; s > 0.04045 {
			c[i] = math.Pow((s+0.055)/1.055, 2.4)
		}
	}
	return c
}

func luminance(c [3]float64) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }

func contrast(a, b [3]float64) float64 {
	la, lb := luminance(a), luminance(b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// oklab (Ottosson 2020) measures how different two colours look.
func oklab(c [3]float64) [3]float64 {
	l := math.Cbrt(0.4122214708*c[0] + 0.5363325363*c[1] + 0.0514459929*c[2])
	m := math.Cbrt(0.2119034982*c[0] + 0.6806995451*c[1] + 0.1073969566*c[2])
	s := math.Cbrt(0.0883024619*c[0] + 0.2817188376*c[1] + 0.6299787005*c[2])
	return [3]float64{
		0.2104542553*l + 0.7936177850*m - 0.0040720468*s,
		1.9779984951*l - 2.4285922050*m + 0.4505937099*s,
		0.0259040371*l + 0.7827717662*m - 0.8086757660*s,
	}
}

// Dichromats see these mixtures (Viénot, Brettel, Mollon 1999).
var vision = map[string][3][3]float64{
	"normal":       {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.11238, 0.88762, 0}, {0.11238, 0.88762, 0}, {0.00401, -0.00401, 1}},
	"deuteranopia": {{0.29275, 0.70725, 0}, {0.29275, 0.70725, 0}, {-0.02234, 0.02234, 1}},
}

func seen(c [3]float64, m [3][3]float64) (out [3]float64) {
	for i := range out {
		out[i] = max(m[i][0]*c[0]+m[i][1]*c[1]+m[i][2]*c[2], 0)
	}
	return out
}

func colour(t *testing.T, class string, dark bool) [3]float64 {
	t.Helper()
	for _, c := range palette {
		if c.class == class {
			if dark {
				return linear(t, c.dark)
			}
			return linear(t, c.light)
		}
	}
	t.Fatalf("no colour %q", class)
	return [3]float64{}
}

// kinds are the colours of kinds of code.
var kinds = []Paint{PaintCell, PaintUser, PaintData, PaintFramework, PaintPicture, PaintDevice, PaintIO, PaintOther}

// Kinds of code are distinguished without colour vision, too.
func TestKindsLookDifferent(t *testing.T) {
	for _, dark := range []bool{false, true} {
		for name, m := range vision {
			for i, a := range kinds {
				for _, b := range kinds[:i] {
					x, y := oklab(seen(colour(t, string(a), dark), m)), oklab(seen(colour(t, string(b), dark), m))
					d := math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2])
					if d < 0.04 {
						t.Errorf("dark %v, %s: %q and %q look alike: %.3f", dark, name, a, b, d)
					}
				}
			}
		}
	}
}

// WCAG AA asks 4.5 of text; labels in boxes, of which the tooltip shows the same,
// may have 4.
func TestTextIsReadable(t *testing.T) {
	for _, dark := range []bool{false, true} {
		on := map[Tone][]string{OnBox: {string(PaintLineMuch), string(PaintLineSome), string(PaintLineRare)}}
		for _, k := range kinds {
			on[OnBox] = append(on[OnBox], string(k))
		}
		for _, tone := range []Tone{Plain, Muted, Good, Warn, Bad} {
			on[tone] = []string{ground}
		}
		for tone, grounds := range on {
			for _, g := range grounds {
				if c := contrast(colour(t, string(tone), dark), colour(t, g, dark)); c < 4.5 && !(tone == OnBox && c >= 4) {
					t.Errorf("dark %v: text %s on %s has a contrast of %.1f", dark, tone, g, c)
				}
			}
		}
	}
}

func TestThemesDoNotMeetOnAPage(t *testing.T) {
	if classOf(Light) == classOf(Dark) || classOf(Light) == classOf(Auto) {
		t.Error("two themes share a class")
	}
	for _, line := range strings.Split(styleSheet(Auto), "\n") {
		for _, rule := range strings.Split(line, "}") {
			selector, _, ok := strings.Cut(rule, "{")
			if ok && !strings.Contains(selector, "."+classOf(Auto)) && !strings.HasPrefix(selector, "@media") {
				t.Errorf("rule %q holds for the whole page", selector)
			}
		}
	}
}

// The JupyterLab extension shows pictures by a style sheet of its own.
func TestTheExtensionsStyleSheetIsThePictures(t *testing.T) {
	carried, err := os.ReadFile("../../viewer/assets/picture.css")
	if err != nil {
		t.Fatal(err)
	}
	if string(carried) != StyleSheet(viewer.PictureClass) {
		t.Error("../../viewer/assets/picture.css is not what pictures look like: go generate ./sidecar/show/viewer")
	}
}

// kernels are the colours of kinds of kernels.
var kernels = []Paint{PaintGPU, PaintGPUMemory, PaintMemory}

// Kinds of kernels are distinguished without colour vision, too.
func TestKindsOfKernelsLookDifferent(t *testing.T) {
	for _, dark := range []bool{false, true} {
		for name, m := range vision {
			for i, a := range kernels {
				for _, b := range kernels[:i] {
					x, y := oklab(seen(colour(t, string(a), dark), m)), oklab(seen(colour(t, string(b), dark), m))
					if d := math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2]); d < 0.04 {
						t.Errorf("dark %v, %s: %q and %q look alike: %.3f", dark, name, a, b, d)
					}
				}
			}
		}
	}
}
