package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/database"
)

func open(t *testing.T, content []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// rows are those of a table as text.
func rows(t *testing.T, f *File, table string, columns ...string) (list []string) {
	t.Helper()
	err := f.Each(table, columns, func(v []Value) bool {
		list = append(list, fmt.Sprint(texts(v)))
		return true
	})
	if err != nil {
		t.Error(err)
	}
	return list
}

func texts(v []Value) (list []string) {
	for _, value := range v {
		n, ok := value.Int()
		switch {
		case value.IsText():
			list = append(list, value.Text())
		case ok:
			list = append(list, fmt.Sprint(n))
		default:
			list = append(list, fmt.Sprintf("kind %d", value.kind))
		}
	}
	return list
}

// TestValues: each way in which SQLite stores a value.
func TestValues(t *testing.T) {
	f := open(t, database.Make(t, `
	CREATE TABLE "odd ""name" (id INTEGER PRIMARY KEY, -- the row's id, it's said
	 "a,b" TEXT NOT NULL DEFAULT 'x,)', /* ( */ [n] NUMERIC(10,2), `+"`last`"+` BLOB, CHECK (id > 0));
	INSERT INTO "odd ""name" VALUES (7, 'é', 0, x'00'), (8, '', 1, NULL), (300, 'c', -1, NULL), (70000, 'd', 32767, 1.5),
	 (2147483647, 'e', -8388608, 2.0), (9007199254740993, 'f', 2147483648, NULL), (9223372036854775807, 'g', -9223372036854775808, 140737488355328);
	ALTER TABLE "odd ""name" ADD COLUMN later INT;
	CREATE TABLE second (a INT, b INTEGER, PRIMARY KEY (b));
	INSERT INTO second VALUES (1, 5), (2, 6);
	CREATE TABLE other (k TEXT PRIMARY KEY, v INT) WITHOUT ROWID;
	CREATE VIEW v AS SELECT 1; CREATE INDEX i ON second (a);`))
	if got := fmt.Sprint(f.Tables()); got != `[odd "name second]` {
		t.Errorf("got tables %s", got)
	}
	got := strings.Join(rows(t, f, `ODD "name`, "id", "A,B", "n", "last", "later", "none"), "\n")
	want := `[7 é 0 kind 4 kind 0 kind 0]
[8  1 kind 0 kind 0 kind 0]
[300 c -1 kind 0 kind 0 kind 0]
[70000 d 32767 kind 2 kind 0 kind 0]
[2147483647 e -8388608 2 kind 0 kind 0]
[9007199254740993 f 2147483648 kind 0 kind 0 kind 0]
[9223372036854775807 g -9223372036854775808 140737488355328 kind 0 kind 0]`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := fmt.Sprint(rows(t, f, "second", "b", "a")); got != "[[5 1] [6 2]]" {
		t.Errorf("the key of a constraint: got %s", got)
	}
	if rows(t, f, "nothing", "a") != nil || f.Has("nothing") || !f.Has("SECOND") {
		t.Error("tables are not told apart")
	}
}

// TestLargeTables: many pages, rows longer than a page, holes of deleted rows; for the smallest and the largest pages.
func TestLargeTables(t *testing.T) {
	for _, page := range []int{512, 4096, 65536} {
		statements := fmt.Sprintf(`PRAGMA page_size = %d; CREATE TABLE t (n INT, s TEXT);
		WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i < 2999)
		INSERT INTO t SELECT i, CASE WHEN i %% 100 = 0 THEN printf('%%.*c', 10 * i, 'x') ELSE 's' || i END FROM c;
		DELETE FROM t WHERE n %% 7 = 3;`, page)
		f := open(t, database.Make(t, statements))
		want := int64(0)
		err := f.Each("t", []string{"s", "n"}, func(v []Value) bool {
			for want%7 == 3 {
				want++
			}
			n, _ := v[1].Int()
			text := fmt.Sprint("s", n)
			if n%100 == 0 {
				text = strings.Repeat("x", max(1, int(10*n))) // printf writes one at least
			}
			if n != want || v[0].Text() != text {
				t.Fatalf("pages of %d bytes: got row %d with %d bytes, want %d with %d", page, n, len(v[0].Text()), want, len(text))
			}
			want++
			return true
		})
		if err != nil || want < 2999 {
			t.Errorf("pages of %d bytes: %d rows, %v", page, want, err)
		}
		n := 0
		f.Each("t", []string{"n"}, func([]Value) bool { n++; return n < 5 })
		if n != 5 {
			t.Errorf("a visit cannot end the walk: %d rows", n)
		}
	}
}

// TestDamageCostsAPage: the rows of the others are visited.
func TestDamageCostsAPage(t *testing.T) {
	whole := database.Make(t, `CREATE TABLE t (n INT); WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i < 9999) INSERT INTO t SELECT i FROM c;`)
	cut := whole[:len(whole)/2]
	zeroed := bytes.Clone(whole)
	clear(zeroed[5*4096 : 6*4096])
	for name, content := range map[string][]byte{"cut": cut, "zeroed": zeroed} {
		n := 0
		err := open(t, content).Each("t", []string{"n"}, func([]Value) bool { n++; return true })
		if !errors.Is(err, ErrDamaged) || n < 3000 || n > 9900 {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
	}
	for name, change := range map[string]func(b []byte){
		"no header": func(b []byte) { b[0] = 'x' },
		"page size": func(b []byte) { b[16] = 3 },
		"reserved":  func(b []byte) { b[16], b[17], b[20] = 2, 0, 200 },
		"encoding":  func(b []byte) { b[59] = 2 },
		"no page":   func(b []byte) { b[100] = 99 },
	} {
		b := bytes.Clone(whole)
		change(b)
		if f, err := Open(bytes.NewReader(b), int64(len(b))); err == nil || name != "no page" && f != nil {
			t.Errorf("%s: got %v, %v", name, f, err)
		}
	}
}

// TestNoFileCostsMoreThanItself: pages that point at each other, and cells that lie on each other.
func TestNoFileCostsMoreThanItself(t *testing.T) {
	b := bytes.Clone(seed(t))
	// The root of the second table becomes a page whose children are itself, thousands of times.
	page := b[4096:8192]
	clear(page)
	page[0] = interiorPage
	binary.BigEndian.PutUint16(page[3:], 1000)
	binary.BigEndian.PutUint32(page[8:], 2)
	for i := range 1000 {
		binary.BigEndian.PutUint16(page[12+2*i:], 4090)
	}
	binary.BigEndian.PutUint32(page[4090:], 2)
	n := 0
	if err := open(t, b).Each("t", []string{"n"}, func([]Value) bool { n++; return true }); !errors.Is(err, ErrDamaged) || n > 0 {
		t.Errorf("a circle: %d rows, %v", n, err)
	}
	// A leaf with two thousand cells, each the same thousand bytes.
	clear(page)
	page[0] = leafPage
	binary.BigEndian.PutUint16(page[3:], 1000)
	for i := range 1000 {
		binary.BigEndian.PutUint16(page[8+2*i:], 2100)
	}
	copy(page[2100:], []byte{0x87, 0x68, 1, 2, 8}) // 1000 bytes, row 1, a header of one column that is 0
	if err := open(t, b).Each("t", []string{"n"}, func([]Value) bool { n++; return true }); !errors.Is(err, ErrDamaged) || n > 5 {
		t.Errorf("cells on each other: %d rows, %v", n, err)
	}
}

// seed is a small database that SQLite made (testdata/small.sqlite: CREATE TABLE t (n INTEGER PRIMARY KEY, s TEXT, f
// REAL, b BLOB) with 40 rows, one of them of 6,000 bytes).
func seed(t testing.TB) []byte {
	content, err := os.ReadFile(filepath.Join("testdata", "small.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestWhatSQLiteWrote(t *testing.T) {
	list := rows(t, open(t, seed(t)), "t", "n", "s")
	if len(list) != 40 || list[0] != "[1 row 1]" || list[39] != "[40 row 40]" || len(list[19]) != len("[20 ]")+6000 {
		t.Errorf("got %d rows, %.100s", len(list), list)
	}
}

// FuzzOpen: any bytes are a database or none; walking them ends, and gives whole rows.
func FuzzOpen(f *testing.F) {
	whole := seed(f)
	f.Add(whole)
	f.Add(whole[:9000])
	random := rand.New(rand.NewPCG(1, 1))
	for range 8 {
		b := bytes.Clone(whole)
		for range 20 {
			b[random.IntN(len(b))] = byte(random.IntN(256))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := Open(bytes.NewReader(content), int64(len(content)))
		if file == nil {
			if err == nil {
				t.Error("neither a file nor an error")
			}
			return
		}
		size := 0
		for _, table := range file.Tables() {
			file.Each(table, []string{"n", "s", "b", "none"}, func(v []Value) bool {
				if len(v) != 4 || v[3].kind != null {
					t.Fatalf("got %v", v)
				}
				size += len(v[1].Text()) + len(v[2].Text())
				return true
			})
			if limit := 4 * len(content); size > limit {
				t.Fatalf("%d bytes of rows from a file of %d", size, len(content))
			}
			size = 0
		}
	})
}
