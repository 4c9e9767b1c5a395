package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// listener accepts peers of our own uid and hangs up on all others.
type listener struct {
	*net.UnixListener
	log  *slog.Logger
	open *atomic.Int64 // connections
}

// listen makes the socket, 0600 from its first moment: it is made in a folder
// that nobody else may enter.
func listen(path string, log *slog.Logger) (*listener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("the sidecar could not make its socket: %w", err)
	}
	return &listener{UnixListener: l, log: log, open: new(atomic.Int64)}, protect(path, l)
}

// protect makes a socket 0600, or closes it.
func protect(path string, socket io.Closer) error {
	if err := os.Chmod(path, 0o600); err != nil {
		socket.Close()
		return fmt.Errorf("the sidecar could not protect its socket: %w", err)
	}
	return nil
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		peer, err := credentials(c)
		if err == nil && peer.Uid == uint32(os.Geteuid()) {
			l.log.Info("peer connected", "pid", peer.Pid)
			l.open.Add(1)
			return &conn{Conn: c, open: l.open}, nil
		}
		l.log.Warn("peer refused", "peer", peer, "error", err)
		c.Close()
	}
}

func credentials(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(err, credErr)
}

// conn counts itself out when it is closed.
type conn struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *conn) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}
