package jupyter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
)

// ErrCurve is returned for kernels that encrypt their sockets: zmq4 has no
// CurveZMQ.
var ErrCurve = errors.New("the kernel's sockets are encrypted (CurveZMQ), which omni_perf cannot speak")

// maxConnectionFile is far above any real connection file, which has 300 bytes.
const maxConnectionFile = 64 << 10

// Connection is a kernel's connection file.
type Connection struct {
	Transport       string `json:"transport"` // "tcp" or "ipc"
	IP              string `json:"ip"`        // an address, or the path prefix of the ipc sockets
	ShellPort       int    `json:"shell_port"`
	IOPubPort       int    `json:"iopub_port"`
	StdinPort       int    `json:"stdin_port"`
	ControlPort     int    `json:"control_port"`
	HBPort          int    `json:"hb_port"`
	Key             string `json:"key"` // of the signatures; empty = unsigned
	SignatureScheme string `json:"signature_scheme"`
	KernelName      string `json:"kernel_name"`
}

// ConnectionFile is a connection file as it was read.
type ConnectionFile struct {
	Connection
	Path string
	Info fs.FileInfo // of the very file whose content Connection is
}

// ReadConnection reads a connection file.
func ReadConnection(path string) (ConnectionFile, error) {
	c, err := readConnection(path)
	if err != nil {
		return c, fmt.Errorf("connection file %s: %w", path, err)
	}
	return c, nil
}

func readConnection(path string) (c ConnectionFile, err error) {
	f, err := targetfs.OpenRegular(path) // whoever made the file need not be the one who names it
	if err != nil {
		return c, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConnectionFile))
	if err != nil {
		return c, err
	}
	c.Path = path
	if c.Info, err = f.Stat(); err == nil {
		c.Connection, err = ParseConnection(text)
	}
	return c, err
}

// ParseConnection reads the text of a connection file.
func ParseConnection(text []byte) (Connection, error) {
	var file struct {
		Connection
		CurvePublicKey string `json:"curve_publickey"`
		CurveServerKey string `json:"curve_serverkey"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return Connection{}, fmt.Errorf("not a connection file: %w", err)
	}
	c := file.Connection
	if file.CurvePublicKey != "" || file.CurveServerKey != "" {
		return c, ErrCurve
	}
	if c.Transport == "" {
		c.Transport = "tcp"
	}
	if c.SignatureScheme == "" {
		c.SignatureScheme = "hmac-sha256"
	}
	if c.Transport != "tcp" && c.Transport != "ipc" {
		return c, fmt.Errorf("transport %q is neither tcp nor ipc", c.Transport)
	}
	if c.IP == "" {
		return c, errors.New("no ip in it")
	}
	for _, p := range []int{c.IOPubPort, c.ControlPort} {
		if p <= 0 || p > 65535 {
			return c, fmt.Errorf("port %d is out of range", p)
		}
	}
	if _, err := newSigner(c); err != nil {
		return c, err
	}
	return c, nil
}

// endpoint is where a channel's socket is found.
func (c Connection) endpoint(port int) string {
	if c.Transport == "ipc" {
		return boundedPrefix + "ipc://" + c.IP + "-" + strconv.Itoa(port)
	}
	return boundedPrefix + "tcp://" + net.JoinHostPort(c.IP, strconv.Itoa(port))
}

// RuntimeFolder is where Jupyter keeps connection files, as jupyter_core has it.
func RuntimeFolder() string {
	if dir := os.Getenv("JUPYTER_RUNTIME_DIR"); dir != "" {
		return dir
	}
	if dir := os.Getenv("JUPYTER_DATA_DIR"); dir != "" {
		return filepath.Join(dir, "runtime")
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "jupyter", "runtime")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "share", "jupyter", "runtime")
}

// FindConnection resolves what a user may name a kernel by: the path of its
// connection file, or its id as "jupyter server list" and the file name show it.
func FindConnection(name string) (path string, err error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		return name, nil
	}
	folder := RuntimeFolder()
	if folder != "" && name == filepath.Base(name) {
		whole := filepath.Join(folder, "kernel-"+name+".json")
		if _, err := os.Stat(whole); err == nil {
			return whole, nil // which may be the beginning of another's id
		}
		matches, _ := filepath.Glob(filepath.Join(folder, "kernel-"+escapeGlob(name)+"*.json"))
		switch len(matches) {
		case 1:
			return matches[0], nil
		case 0:
		default:
			return "", fmt.Errorf("%d kernels in %s begin with %q; give more of the id", len(matches), folder, name)
		}
	}
	return "", fmt.Errorf("no connection file %q, and no kernel of that id in %s", name, folder)
}

func escapeGlob(s string) string {
	var out []rune
	for _, r := range s {
		if r == '*' || r == '?' || r == '[' || r == '\\' {
			out = append(out, '\\')
		}
		out = append(out, r)
	}
	return string(out)
}
