package scene

import (
	"strings"
	"unicode"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Face is a font as far as its width goes.
type Face uint8

const (
	Sans Face = iota
	Bold
	Mono
)

// MonoAdvance bounds DejaVu Sans Mono and Menlo (0.602), Liberation Mono (0.600),
// SF Mono (0.618) and Cascadia Code (0.586), in em.
const MonoAdvance = 0.62

// advances bounds the width of ' ' … '~' in thousandths of an em. Which font a
// page uses is not known here; each figure is the largest of DejaVu Sans, Verdana
// and Arial, which are the widest common ones.
var advances = [2][95]uint16{
	Sans: {
		352, 401, 460, 838, 636, 1076, 780, 275, 454, 454, 636, 838, 364, 454, 364, 454, // space … /
		636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 454, 454, 838, 838, 838, 556, // 0 … ?
		1015, 684, 686, 722, 771, 667, 611, 778, 752, 421, 500, 693, 557, 863, 748, 787, // @ … O
		667, 787, 722, 684, 616, 732, 684, 989, 685, 667, 685, 454, 454, 454, 838, 636, // P … _
		636, 613, 635, 550, 635, 615, 352, 635, 634, 278, 344, 592, 278, 974, 634, 612, // ` … o
		635, 635, 427, 521, 394, 634, 592, 818, 592, 592, 525, 636, 454, 636, 838, // p … ~
	},
	Bold: {
		348, 456, 587, 867, 711, 1272, 872, 332, 543, 543, 711, 867, 380, 480, 380, 689,
		711, 711, 711, 711, 711, 711, 711, 711, 711, 711, 402, 402, 867, 867, 867, 617,
		1000, 776, 762, 734, 830, 683, 683, 821, 837, 546, 556, 775, 637, 995, 847, 850,
		733, 850, 782, 720, 682, 812, 774, 1128, 771, 737, 725, 543, 689, 543, 867, 711,
		711, 675, 716, 593, 716, 678, 435, 716, 712, 343, 403, 671, 343, 1058, 712, 687,
		716, 716, 497, 595, 478, 712, 652, 979, 669, 652, 597, 712, 543, 712, 867,
	},
}

// advance bounds a character's width in em.
func advance(r rune, f Face) float64 {
	switch {
	case r >= ' ' && r <= '~':
		if f == Mono {
			return MonoAdvance
		}
		return float64(advances[f][r-' ']) / 1000
	case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r):
		return 0
	case r == '…':
		return 1
	case r == '·' || r == '°':
		return 0.65
	case r == '–' || r == 'µ' || r == '×' || r == '±':
		return 0.87
	case r < 0x250:
		return 1.1
	case r == '‱' || r >= 0x2200 && r < 0x2B00:
		return 1.75
	}
	return 1.35 // emoji are the widest of the usual rest
}

// WidthOf bounds the width of text in pixels.
func WidthOf(s string, size float64, f Face) float64 {
	em := 0.0
	for _, r := range s {
		em += advance(r, f)
	}
	return em * size
}

// Fit returns s, or as much of its beginning as is sure to fit with an ellipsis
// behind it; empty when fewer than two characters would be left.
func Fit(s string, room, size float64, f Face) string {
	if size <= 0 || room <= 0 {
		return ""
	}
	room /= size
	em, cut, kept := 0.0, 0, 0
	for i, r := range s {
		if kept >= 2 && em+1 <= room { // 1: the ellipsis
			cut = i
		}
		em += advance(r, f)
		kept++
		if em > room+1e-6 { // a width that was measured must fit itself
			if cut == 0 {
				return ""
			}
			return strings.TrimRight(s[:cut], " ") + "…"
		}
	}
	return s
}

// FitMiddle is fit for names that differ at their end: "ThreadPool…_12".
func FitMiddle(s string, room, size float64, f Face) string {
	if WidthOf(s, size, f) <= room {
		return s
	}
	runes := []rune(s)
	tail := string(runes[max(len(runes)-4, 0):])
	head := Fit(s, room-WidthOf(tail, size, f), size, f)
	if head == "" {
		return Fit(s, room, size, f)
	}
	return head + tail
}

// Wrap breaks s at spaces into lines of at most room pixels, at most limit of
// them; what is left over ends in an ellipsis.
func Wrap(s string, room, size float64, f Face, limit int) []string {
	var lines []string
	list := words.Unbroken(s)
	for len(list) > 0 {
		if len(lines) == limit-1 {
			return append(lines, Fit(strings.Join(list, " "), room, size, f))
		}
		n, line := 1, list[0]
		for n < len(list) && WidthOf(line+" "+list[n], size, f) <= room {
			line += " " + list[n]
			n++
		}
		lines = append(lines, Fit(line, room, size, f))
		list = list[n:]
	}
	return lines
}
