package truth

import (
	"bufio"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed linetables.py
var lineTableProgram []byte

// A LineTable is one code object's location table and what it means.
type LineTable struct {
	Function  string // qualified name
	FirstLine int
	Table     []byte // co_linetable
	Lines     []int  // of each code unit (2 bytes) by co_positions(); -1 for none
}

// DumpLineTables has python write the line tables of its whole standard library to a file in folder,
// which must be among the temporary files. It takes some seconds to half a minute.
func DumpLineTables(python, folder string) (string, error) {
	program := filepath.Join(folder, "linetables.py")
	if err := os.WriteFile(program, lineTableProgram, 0o600); err != nil {
		return "", err
	}
	file := filepath.Join(folder, "linetables")
	if output, err := exec.Command(python, program, file).CombinedOutput(); err != nil {
		return "", fmt.Errorf("dump line tables of %s: %w: %s", python, err, output)
	}
	return file, nil
}

// LineTables reads what DumpLineTables wrote: for each code object, little-endian, four uint32 (length
// of the name, first line, length of the table, number of runs), the name, the table, and the runs, each
// a uint32 count of code units and an int32 line. An error ends the sequence.
func LineTables(r io.Reader) iter.Seq2[LineTable, error] {
	in := bufio.NewReader(r)
	return func(yield func(LineTable, error) bool) {
		for {
			table, err := readLineTable(in)
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(table, err) || err != nil {
				return
			}
		}
	}
}

// readLineTable returns io.EOF between two code objects only.
func readLineTable(in io.Reader) (LineTable, error) {
	var head [16]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return LineTable{}, err
	}
	name := make([]byte, binary.LittleEndian.Uint32(head[0:]))
	table := make([]byte, binary.LittleEndian.Uint32(head[8:]))
	runs := make([]byte, 8*binary.LittleEndian.Uint32(head[12:]))
	for _, part := range [][]byte{name, table, runs} {
		if _, err := io.ReadFull(in, part); err != nil {
			return LineTable{}, fmt.Errorf("line table of %q is cut short: %v", name, err)
		}
	}
	t := LineTable{
		Function:  string(name),
		FirstLine: int(binary.LittleEndian.Uint32(head[4:])),
		Table:     table,
	}
	for ; len(runs) > 0; runs = runs[8:] {
		line := int(int32(binary.LittleEndian.Uint32(runs[4:])))
		for range binary.LittleEndian.Uint32(runs) {
			t.Lines = append(t.Lines, line)
		}
	}
	return t, nil
}
