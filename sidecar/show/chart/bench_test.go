package chart

import "testing"

// BenchmarkHTML is the time between a cell's end and its chart: laying out
// and drawing a minute with 140,000 spans.
func BenchmarkHTML(b *testing.B) {
	r := aMinute()
	b.ResetTimer()
	for range b.N {
		if _, err := HTML(r, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFolded(b *testing.B) {
	r := aMinute()
	b.ResetTimer()
	for range b.N {
		if _, err := Folded(r, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
