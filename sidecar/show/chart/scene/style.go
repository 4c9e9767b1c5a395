package scene

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// palette is the colours by Paint or Tone. Light and dark agree in hue; in each,
// neighbours that mean different things differ in lightness, too (palette_test).
var palette = []struct {
	class       string
	property    string
	light, dark string
}{
	{string(PaintCell), "color", "#f4bd66", "#b1660b"},
	{string(PaintUser), "color", "#f6e387", "#7c6737"},
	{string(PaintData), "color", "#e37b62", "#bb3800"},
	{string(PaintFramework), "color", "#8fb1ea", "#37609f"},
	{string(PaintPicture), "color", "#c27fc0", "#6b2a6e"},
	{string(PaintDevice), "color", "#b1d3a4", "#3e7852"},
	{string(PaintIO), "color", "#5fb3a3", "#2c6a55"},
	{string(PaintOther), "color", "#c3c8d2", "#4e545d"},

	{string(PaintGPU), "color", "#43a572", "#3ba671"},
	{string(PaintGPUMemory), "color", "#86c9a4", "#2f6a4b"},
	{string(PaintCPU), "color", "#5a8fdd", "#5487cf"},
	{string(PaintMemory), "color", "#a184d8", "#9478c8"},
	{string(PaintTraffic), "color", "#76a0ac", "#6a93a0"},
	{string(PaintGIL), "color", "#d0679d", "#b85c8c"},

	{string(PaintPython), "color", "#4f87da", "#4c82cf"},
	{string(PaintNative), "color", "#a9c6f2", "#2f4f80"},
	{string(PaintWait), "color", "#c3c8d2", "#4e545d"},

	{string(PaintLineMuch), "color", "#f4b95e", "#a06c18"},
	{string(PaintLineSome), "color", "#f9d49a", "#7d5a20"},
	{string(PaintLineRare), "color", "#fce6c6", "#543f1e"},

	{string(PaintAlike), "color", "#dbe4f0", "#26313f"},
	{string(PaintLonger), "color", "#f3cd8c", "#74561f"},
	{string(PaintLong), "color", "#e58e3f", "#c0701f"},
	{string(PaintLongest), "color", "#ad2a1c", "#ff7a5c"},

	{string(PaintBar), "color", "#f2a93b", "#d39428"},
	{string(PaintIdle), "color", "#fdf0dc", "#30241a"},

	{string(Plain), "fill", "#17181b", "#ececee"},
	{string(Muted), "fill", "#6a6d75", "#9c9fa7"},
	{string(Good), "fill", "#24804f", "#45bd83"},
	{string(Warn), "fill", "#a8530a", "#f2b230"},
	{string(Bad), "fill", "#b3261e", "#ff8a80"},
	{string(OnBox), "fill", "#1e1f22", "#f4f4f5"},

	{ground, "fill", "#ffffff", "#111113"}, // the page's own where it shows
	{rule, "color", "#dddfe3", "#303238"},
	{base, "color", "#f0f1f3", "#1e1f23"},
}

// Classes of what carries no meaning.
const (
	ground = "bg"
	rule   = "ru"
	base   = "ba" // of a folded thread's lane

	several = "se" // of a box that stands for several, beside its paint
)

// classOf is the class all rules of a theme's style sheet hang on. Styles of
// inline pictures hold for the whole page: a class made from their content keeps
// charts of different themes or versions apart.
func classOf(theme Theme) string {
	h := fnv.New32a()
	h.Write([]byte(rules("", theme)))
	return fmt.Sprintf("op-%08x", h.Sum32())
}

// StyleSheet is that of pictures whose root has the given class, whatever their own
// says: for the JupyterLab extension, which takes no style sheet from a notebook. It
// shows what older versions drew, too: classes are not taken back or given another
// meaning as long as viewer.Version stays.
func StyleSheet(class string) string { return rules("."+class, Auto) }

func styleSheet(theme Theme) string { return rules("."+classOf(theme), theme) }

// rules is a style sheet below the given selector.
func rules(root string, theme Theme) string {
	var b strings.Builder
	b.WriteString(root + `{max-width:100%;height:auto;font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}` + "\n")
	b.WriteString(root + ` .mo{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace}` + "\n")
	b.WriteString(root + ` .bo{font-weight:700}` + root + ` .mi{text-anchor:middle}` + root + ` .ri{text-anchor:end}` + "\n")
	b.WriteString(root + ` text{pointer-events:none}` + root + ` .f *{fill:currentColor}` + root + ` .b rect{rx:1.5px}` + "\n")
	b.WriteString(root + ` .s path{fill:none;stroke:currentColor}` + root + ` .h path{stroke-width:2.4;stroke-opacity:.5}` + root + ` .` + several + `{opacity:.65}` + "\n")
	for _, c := range palette {
		// The plain colour is for viewers that know no variables.
		plain := c.light
		if theme == Dark {
			plain = c.dark
		}
		fmt.Fprintf(&b, "%s .%s{%s:%s;%[3]s:var(--%[2]s)}", root, c.class, c.property, plain)
	}
	fmt.Fprintf(&b, "%s .h path{stroke:var(--bg)}\n", root)
	b.WriteString(Themed(root, theme))
	return b.String()
}

// Themed sets the colours of a theme.
func Themed(root string, theme Theme) string {
	if theme == Light || theme == Dark {
		return variables(root, theme == Dark, false)
	}
	// What the page says counts more than what the system prefers; an image sees only
	// the latter.
	return variables(root, false, true) +
		"@media (prefers-color-scheme:dark){" + variables(root, true, true) + "}\n" +
		variables(":is([data-jp-theme-light=true],.vscode-light,[theme=light]) "+root, false, true) +
		variables(":is([data-jp-theme-light=false],.vscode-dark,.vscode-high-contrast,[theme=dark]) "+root, true, true)
}

// variables sets a theme's colours; the ground may be the page's own.
func variables(selector string, dark, blend bool) string {
	var b strings.Builder
	b.WriteString(selector + "{")
	for _, c := range palette {
		colour := c.light
		if dark {
			colour = c.dark
		}
		if blend && c.class == ground {
			colour = "var(--jp-layout-color0,var(--vscode-editor-background," + colour + "))"
		}
		fmt.Fprintf(&b, "--%s:%s;", c.class, colour)
	}
	b.WriteString("}\n")
	return b.String()
}
