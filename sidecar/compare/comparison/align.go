package comparison

import "strings"

// numbered is a line of a text that is known and not blank, or another text of a list.
type numbered struct {
	number int
	text   string
}

// linesOf are the known lines of a file of a report.
func linesOf(lines []*string) []numbered {
	var out []numbered
	for i, l := range lines {
		if l != nil && strings.TrimSpace(*l) != "" {
			out = append(out, numbered{i + 1, strings.TrimRight(*l, " ")})
		}
	}
	return out
}

// alignment is which lines of one text are which of another, by their numbers.
type alignment struct {
	to     map[int]int
	edited map[int]bool // of those in to: the text changed
	equal  int          // how many are the same
}

// maxCells bounds the table of the diff: 16 MB.
const maxCells = 4 << 20

// align finds the longest list of lines that two texts have in common, and among what
// lies between these the lines that were edited.
func align(a, b []numbered) alignment {
	al := alignment{to: make(map[int]int), edited: make(map[int]bool)}
	same := func(x, y numbered) {
		al.to[x.number] = y.number
		al.equal++
	}
	for len(a) > 0 && len(b) > 0 && a[0].text == b[0].text {
		same(a[0], b[0])
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1].text == b[len(b)-1].text {
		same(a[len(a)-1], b[len(b)-1])
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 || len(b) == 0 || len(a) > maxCells/len(b) {
		al.edit(a[:min(len(a), maxHunk)], b[:min(len(b), maxHunk)])
		return al
	}
	length := commonLengths(a, b)
	i, j, fromI, fromJ := 0, 0, 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i].text == b[j].text:
			al.edit(a[fromI:i], b[fromJ:j])
			same(a[i], b[j])
			i, j = i+1, j+1
			fromI, fromJ = i, j
		case length.of(i+1, j) >= length.of(i, j+1):
			i++
		default:
			j++
		}
	}
	al.edit(a[fromI:], b[fromJ:])
	return al
}

// lengths are those of the longest common lists of what is behind each line of two texts.
type lengths struct {
	known []int32
	wide  int
}

// of is the length for a[i:] and b[j:].
func (l *lengths) of(i, j int) int32 { return l.known[i*l.wide+j] }

func commonLengths(a, b []numbered) *lengths {
	l := &lengths{make([]int32, (len(a)+1)*(len(b)+1)), len(b) + 1}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i].text == b[j].text {
				l.known[i*l.wide+j] = l.of(i+1, j+1) + 1
			} else {
				l.known[i*l.wide+j] = max(l.of(i+1, j), l.of(i, j+1))
			}
		}
	}
	return l
}

// Pair is which texts of one list are which of another, by their indices: the longest list that both have in common,
// and between these those that were edited.
func Pair(a, b []string) map[int]int {
	number := func(list []string) (out []numbered) {
		for i, text := range list {
			out = append(out, numbered{i, text})
		}
		return out
	}
	return align(number(a), number(b)).to
}

const (
	// maxHunk bounds the changed lines in one place that are searched for edited ones.
	maxHunk = 200
	// alike is the likeness from which on two lines in one place are one that was edited: a
	// call that got arguments still is, lines that only begin alike are not.
	alike = 0.4
	// alikeFiles is the same for files, of which all lines are equal or not.
	alikeFiles = 0.5
)

// edit pairs lines that were replaced by such as are like them, in order.
func (al *alignment) edit(a, b []numbered) {
	if len(a) > maxHunk || len(b) > maxHunk {
		return
	}
	next := 0
	for _, x := range a {
		best, likeness := -1, alike
		for j := next; j < len(b); j++ {
			if l := likenessOf(x.text, b[j].text); l > likeness {
				best, likeness = j, l
			}
		}
		if best >= 0 {
			al.to[x.number], al.edited[x.number] = b[best].number, true
			next = best + 1
		}
	}
}

// likenessOf is the Sørensen–Dice coefficient of two lines' pairs of characters: 0 to 1.
func likenessOf(a, b string) float64 {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	pairs := make(map[[2]byte]int)
	for i := range len(a) - 1 {
		pairs[[2]byte{a[i], a[i+1]}]++
	}
	common := 0
	for i := range len(b) - 1 {
		if p := [2]byte{b[i], b[i+1]}; pairs[p] > 0 {
			pairs[p]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b)-2)
}
