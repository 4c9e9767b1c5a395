package scene

import "testing"

// Where there is no room for all, the largest share is left.
func TestPhrasesThatAreLeftOut(t *testing.T) {
	ps := []Phrase{
		{Text: "app.py"}, {Text: "1.2 s"}, {Text: "ended by ValueError"}, {Text: "only partial data"},
		{Text: "computing 2 %", Share: 0.02}, {Text: "no free CPU 10 %", Share: 0.1}, {Text: "waiting 88 %", Share: 0.88},
	}
	for _, want := range []string{
		"app.py|1.2 s|ended by ValueError|only partial data|no free CPU 10 %|waiting 88 %",
		"app.py|1.2 s|ended by ValueError|only partial data|waiting 88 %",
		"app.py|1.2 s|ended by ValueError|waiting 88 %",
		"app.py|1.2 s|waiting 88 %",
		"app.py|1.2 s",
		"app.py|1.2 s",
	} {
		ps = Shorter(ps)
		if got := Join(ps, "|"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
