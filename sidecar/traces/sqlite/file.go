// Package sqlite reads the rows of tables in SQLite files.
//
// In flow a file's bytes at places, out flow the values of the columns that are asked for, row by row, in the
// file's order. There is no SQL, no index, no writing: what profilers export is read table by table from begin to
// end. Damage costs the page that it is in. The form is that of https://www.sqlite.org/fileformat2.html, whose
// sections are named where they matter.
//
// No page is read twice in one walk, and the payloads of a page take no more than the page, so that whatever a file
// claims, reading a table costs no more than reading the file.
package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Magic is how a file begins.
const Magic = "SQLite format 3\x00"

var (
	// ErrDamaged is wrapped by what a file that is no sound database gives.
	ErrDamaged = errors.New("the database is damaged")
	// ErrEncoding means texts in UTF-16.
	ErrEncoding = errors.New("the database has texts in UTF-16, which are not read")
)

// File is an opened database.
type File struct {
	at       io.ReaderAt
	pageSize int
	usable   int // bytes of a page that hold data
	pages    uint32
	tables   map[string]table // by lower case name
	names    []string         // as written
}

// table is where a table is and what columns its rows have.
type table struct {
	root    uint32
	columns []column
}

const headerSize = 100

// Open reads the header and the schema of a database of size bytes. Where the schema is damaged the error comes with
// the file and the tables that could be found.
func Open(at io.ReaderAt, size int64) (*File, error) {
	header := make([]byte, headerSize)
	if _, err := at.ReadAt(header, 0); err != nil || string(header[:len(Magic)]) != Magic {
		return nil, fmt.Errorf("%w: it has no header", ErrDamaged)
	}
	f := &File{at: at, pageSize: int(binary.BigEndian.Uint16(header[16:])), tables: map[string]table{}}
	if f.pageSize == 1 {
		f.pageSize = 1 << 16
	}
	if f.pageSize < 512 || f.pageSize&(f.pageSize-1) != 0 {
		return nil, fmt.Errorf("%w: its pages have %d bytes", ErrDamaged, f.pageSize)
	}
	f.usable = f.pageSize - int(header[20])
	if f.usable < 480 { // §1.3.4
		return nil, fmt.Errorf("%w: %d bytes of a page are usable", ErrDamaged, f.usable)
	}
	f.pages = uint32(min(size/int64(f.pageSize), 1<<32-2))
	if encoding := binary.BigEndian.Uint32(header[56:]); encoding > 1 {
		return nil, ErrEncoding
	}
	return f, f.schema()
}

// schema reads sqlite_schema, the table in page 1 (§2.6).
func (f *File) schema() error {
	columns := []column{{name: "type"}, {name: "name"}, {name: "tbl_name"}, {name: "rootpage"}, {name: "sql"}}
	return f.walk(table{1, columns}, []int{0, 1, 3, 4}, func(v []Value) bool {
		if v[0].Text() != "table" {
			return true
		}
		root, _ := v[2].Int()
		if cols, ok := columnsOf(v[3].Text()); ok && root > 0 && root <= int64(f.pages) {
			f.names = append(f.names, v[1].Text())
			f.tables[strings.ToLower(v[1].Text())] = table{uint32(root), cols}
		}
		return true
	})
}

// Tables lists the tables.
func (f *File) Tables() []string { return f.names }

// Has reports whether there is a table of that name.
func (f *File) Has(name string) bool {
	_, ok := f.tables[strings.ToLower(name)]
	return ok
}

// Each visits the rows of a table with the values of some columns, in their order; a column that the table does not have
// is null. The values are valid during the visit, which ends the walk by returning false. The error is that of the first
// damaged page or of reading; the rows of the others were visited.
func (f *File) Each(name string, columns []string, visit func([]Value) bool) error {
	t, ok := f.tables[strings.ToLower(name)]
	if !ok {
		return nil
	}
	wanted := make([]int, len(columns))
	for i, column := range columns {
		wanted[i] = -1
		for at, c := range t.columns {
			if strings.EqualFold(c.name, column) {
				wanted[i] = at
			}
		}
	}
	if err := f.walk(t, wanted, visit); err != nil {
		return fmt.Errorf("table %s: %w", name, err)
	}
	return nil
}
