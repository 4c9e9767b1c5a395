package table

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func sample() *Table {
	t := New("t", "", &Column{Name: "name", Kind: Text}, &Column{Name: "us", HTAName: "time", Kind: Micros}, &Column{Name: "n", Kind: Int})
	t.Add("b", 2.0, 1)
	t.Add("a", math.NaN(), 3)
	t.Add("c", 5.25, int64(2))
	return t
}

func TestSortBy(t *testing.T) {
	for _, c := range []struct {
		by         string
		descending bool
		want       string
	}{
		{"name", false, "a b c"}, {"time", true, "c b a"}, {"us", false, "b c a"}, {"n", true, "a c b"}, {"unknown", true, "b a c"},
	} {
		if got := strings.Join(sample().SortBy(c.by, c.descending).Column("name").Text, " "); got != c.want {
			t.Errorf("by %s: got %s, want %s", c.by, got, c.want)
		}
	}
}

func TestWriteCSV(t *testing.T) {
	var out bytes.Buffer
	if err := sample().WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "name,us,n\nb,2,1\na,,3\nc,5.25,2\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNoTextIsAFormulaInASpreadsheet(t *testing.T) {
	var out bytes.Buffer
	table := &Table{Name: "t", Columns: []*Column{
		{Name: "name", Kind: Text, Text: []string{"=HYPERLINK(1)"}},
		{Name: "change", Kind: Float, Floats: []float64{-1.5}},
	}}
	if err := table.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "name,change\n'=HYPERLINK(1),-1.5\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWriteJSON(t *testing.T) {
	table := sample()
	table.Columns[0].Text[0] = "b \"q\"\n\x00 é"
	var out bytes.Buffer
	if err := table.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Name string
		US   *float64
		N    int
	}
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if len(rows) != 3 || rows[0].Name != "b \"q\"\n\x00 é" || rows[1].US != nil || *rows[2].US != 5.25 || rows[2].N != 2 {
		t.Errorf("got %+v from %s", rows, out.String())
	}
}

func TestWriteJSONOfNoRows(t *testing.T) {
	var out bytes.Buffer
	if err := New("t", "").WriteJSON(&out); err != nil || out.String() != "[]" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}
