package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

const maxStartLine = 64 << 10

// startMessage is the line the launcher writes; see the package's page.
type startMessage struct {
	Token       string `json:"token"`
	KernelPID   int    `json:"kernel_pid"`
	KernelStart uint64 `json:"kernel_start"`
	Version     string `json:"version"`
}

// startAnswer is the line the launcher reads.
type startAnswer struct {
	Socket  string `json:"socket,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Version string `json:"version,omitempty"`
	API     int    `json:"api,omitempty"`
	Error   string `json:"error,omitempty"`
}

var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]{32,512}$`)

// readStart reads and checks the start message. Its errors are sentences.
func readStart(stdin io.Reader) (startMessage, error) {
	line, err := bufio.NewReader(io.LimitReader(stdin, maxStartLine)).ReadBytes('\n')
	if err != nil && !(errors.Is(err, io.EOF) && len(line) > 0) {
		return startMessage{}, errors.New("the sidecar got no start message on stdin; it is started by %load_ext omni_perf, not by hand")
	}
	return parseStart(line)
}

func parseStart(line []byte) (startMessage, error) {
	var m startMessage
	if err := json.Unmarshal(line, &m); err != nil {
		return startMessage{}, fmt.Errorf("the sidecar could not read the start message: %w", err)
	}
	if !tokenForm.MatchString(m.Token) {
		return startMessage{}, errors.New("the start message holds no token of 32 or more letters, digits, - and _")
	}
	if m.KernelPID <= 0 || m.KernelPID > 1<<30 {
		return startMessage{}, errors.New("the start message names no kernel_pid")
	}
	return m, nil
}

func writeAnswer(stdout io.Writer, a startAnswer) error {
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = stdout.Write(append(line, '\n'))
	return err
}
