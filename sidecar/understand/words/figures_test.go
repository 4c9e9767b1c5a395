package words

import (
	"encoding/json"
	"flag"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the random cases of the viewer's testdata/figures.json")

const figuresFile = "../../show/viewer/testdata/figures.json"

// figureCases are figures and their words. Those under "edges" were written by hand, those under
// "random" by -update, for the viewer to come to the same.
type figureCases struct {
	Edges  figureSet `json:"edges"`
	Random figureSet `json:"random"`
}

type figureSet struct {
	Seconds []figureCase `json:"seconds"`
	Percent []figureCase `json:"percent"`
	Figure  []figureCase `json:"figure"`
}

// figureCase is [value, words], and [value, unit, words] of figures.
type figureCase []any

func (c figureCase) value() float64 { return c[0].(float64) }
func (c figureCase) want() string   { return c[len(c)-1].(string) }

func (s figureSet) check(t *testing.T, name string) {
	t.Helper()
	for kind, list := range map[string][]figureCase{"seconds": s.Seconds, "percent": s.Percent, "figure": s.Figure} {
		if len(list) < 10 {
			t.Errorf("%s: %d cases of %s", name, len(list), kind)
		}
		for _, c := range list {
			got := ""
			switch kind {
			case "seconds":
				got = Seconds(c.value())
			case "percent":
				got = Percent(c.value())
			case "figure":
				got = Quantity(c.value(), c[1].(string))
			}
			if got != c.want() {
				t.Errorf("%s %v: got %q, want %q", kind, c[:len(c)-1], got, c.want())
			}
		}
	}
}

// One rule for figures in both languages: viewer/test/words.test.ts reads the same file.
func TestFiguresOfBothLanguages(t *testing.T) {
	text, err := os.ReadFile(figuresFile)
	if err != nil {
		t.Fatal(err)
	}
	var cases figureCases
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if *update {
		cases.Random = randomFigures()
		var lines []byte
		if lines, err = json.Marshal(cases); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(figuresFile, append(lines, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cases.Edges.check(t, "edges")
	cases.Random.check(t, "random")
}

// randomFigures are numbers of all magnitudes, many of them with few digits and a 5 at the end, where
// rounding is decided.
func randomFigures() figureSet {
	rnd := rand.New(rand.NewPCG(22, 1))
	number := func(low, high int) float64 {
		v := math.Pow(10, float64(low)+rnd.Float64()*float64(high-low))
		if rnd.IntN(3) > 0 {
			v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'e', 1+rnd.IntN(4), 64), 64)
			v += 5 * math.Pow(10, math.Floor(math.Log10(v))-float64(1+rnd.IntN(4)))
		}
		if rnd.IntN(8) == 0 {
			v = -v
		}
		return v
	}
	var s figureSet
	units := []string{"B", "B/s", "%", "cores", "W", "MHz", ""}
	for range 400 {
		v := number(-10, 13)
		s.Seconds = append(s.Seconds, figureCase{v, Seconds(v)})
		ns := math.Round(math.Abs(number(0, 13))) / 1e9 // as reports have it
		s.Seconds = append(s.Seconds, figureCase{ns, Seconds(ns)})
		v = number(-5, 6)
		s.Percent = append(s.Percent, figureCase{v, Percent(v)})
		v, unit := number(-3, 18), units[rnd.IntN(len(units))]
		s.Figure = append(s.Figure, figureCase{v, unit, Quantity(v, unit)})
	}
	return s
}

// Against arithmetic without binary fractions.
func TestFixedRoundsHalfAwayFromZero(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		digits, shift, decimals := rnd.Int64N(1e9), rnd.IntN(12), rnd.IntN(4)
		v, _ := strconv.ParseFloat(strconv.FormatInt(digits, 10)+"e-"+strconv.Itoa(shift), 64)
		// FloatString rounds half away from zero.
		want := new(big.Rat).SetFrac(big.NewInt(digits), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(shift)), nil)).FloatString(decimals)
		if got := Fixed(v, decimals); got != want {
			t.Fatalf("Fixed(%v, %d) = %s, want %s", v, decimals, got, want)
		}
		if strings.Trim(want, "0.") != "" { // zero has no sign
			want = "-" + want
		}
		if got := Fixed(-v, decimals); got != want {
			t.Fatalf("Fixed(%v, %d) = %s, want %s", -v, decimals, got, want)
		}
	}
}
