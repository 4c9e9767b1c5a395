package table

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/omni-perf/omni-perf/sidecar/show/output"
)

// WriteJSON writes the rows as a list of objects. Numbers are not rounded, what
// does not exist is null.
func (t *Table) WriteJSON(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16) // keeps the first error for Flush
	var row []byte
	out.WriteByte('[')
	for r := range t.Len() {
		row = row[:0]
		if r > 0 {
			row = append(row, ',')
		}
		row = append(row, "\n{"...)
		for i, c := range t.Columns {
			if i > 0 {
				row = append(row, ',')
			}
			row = strconv.AppendQuote(row, c.Name)
			row = append(row, ':')
			row = appendJSON(row, c.Value(r))
		}
		out.Write(append(row, '}'))
	}
	out.WriteByte(']')
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the table %s: %w", t.Name, err)
	}
	return nil
}

func appendJSON(b []byte, value any) []byte {
	switch v := value.(type) {
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	case string:
		text, _ := json.Marshal(v) // a string always marshals
		return append(b, text...)
	}
	return append(b, "null"...)
}

// WriteCSV writes a header of the columns' names and the rows, values not
// rounded, empty where there is none.
func (t *Table) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	row := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		row[i] = c.Name
	}
	out.Write(row) // Error below has the first failure
	for r := range t.Len() {
		for i, c := range t.Columns {
			row[i] = c.Format(r)
			if c.Kind == Text {
				row[i] = output.SpreadsheetText(row[i])
			}
		}
		out.Write(row)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing the table %s: %w", t.Name, err)
	}
	return nil
}
