package doctor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// startTimeout is how long a Python may take to start: from a cold network disk
// it is slow.
const startTimeout = 20 * time.Second

// process is a running target.
type process struct {
	pid                     int
	version, implementation string
	in                      io.WriteCloser // its end ends the target
	out                     *bufio.Reader
	pipe                    *os.File
}

func startTarget(ctx context.Context, python string) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, python, "-I", "-S", "-c", target, strconv.Itoa(os.Getpid()))
	cmd.Stdout = theirs
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	theirs.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	p := &process{in: in, out: bufio.NewReader(out), pipe: out}
	_ = out.SetReadDeadline(time.Now().Add(startTimeout))
	line, err := p.out.ReadString('\n')
	fields := strings.Fields(line)
	if err != nil || len(fields) != 3 {
		p.end()
		_ = cmd.Wait()
		return nil, fmt.Errorf("it answered %q", line)
	}
	p.pid, p.version, p.implementation = number(fields[0]), fields[1], fields[2]
	// The first fork's parent has left; Wait would close the pipe of stdin, which is
	// the target's too.
	go func() { _, _ = cmd.Process.Wait() }()
	return p, nil
}

// grant asks the target to permit us to read it.
func (p *process) grant() error {
	if _, err := io.WriteString(p.in, "grant\n"); err != nil {
		return err
	}
	_, err := p.out.ReadString('\n')
	return err
}

func (p *process) end() {
	p.in.Close()
	p.pipe.Close()
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
