package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

const (
	// memoryLimit is where the garbage collector begins to work harder; 64 MB
	// resident is the promise.
	memoryLimit = 48 << 20
	// startPatience is how long a start may take; the launcher waits 3 s.
	startPatience = 5 * time.Second
	// A cell's text and a report may be large; beyond this is a mistake.
	maxMessage = 256 << 20
)

// Config is what a sidecar is made of besides the start message.
type Config struct {
	Version string
	Stdin   io.Reader // the start message
	Stdout  io.Writer // the answer
	LogFile string    // empty: in the sidecar's folder
	// Session makes the one session. It only allocates: what takes time is done
	// when the kernel calls, for the socket is to accept first.
	Session func(Start) Session
	// Detach lets go of the process's standard streams and folder once the launcher
	// has its answer. False in tests, whose they are.
	Detach bool
}

// Start is what a session is given at its sidecar's start.
type Start struct {
	KernelPID int
	Log       *slog.Logger
	LogFile   string
	Notes     []string // what the user is to read, as sentences
	Folder    string   // the sidecar's own, where the kernel may leave what its GPUs did
}

// Session answers the kernel's calls.
type Session interface {
	api.OmniPerfServer
	// KernelEnded ends recordings in progress when the kernel has ended, and keeps a last report beside folder.
	KernelEnded(exit Exit, folder *Folder)
	Announced(Announcement) // in the order in which they were sent
	Close()                 // ends recordings in progress
}

// Serve runs a sidecar until its kernel ends, SIGTERM arrives or ctx is done. An
// error was reported to the launcher as a sentence.
func Serve(ctx context.Context, c Config) error {
	// GODEBUG=http2debug=2, meant for another program of the user, would write every
	// header to our log, the token among them.
	http2.VerboseLogs = false
	signal.Ignore(unix.SIGINT, unix.SIGHUP, unix.SIGPIPE)
	_, _ = unix.Setsid() // refused where the launcher has done it
	debug.SetMemoryLimit(memoryLimit)
	debug.SetGCPercent(50)

	// A start that hangs, on a file system that does not answer, leaves no orphan: the
	// launcher has given up by then.
	hangs := time.AfterFunc(startPatience, func() { os.Exit(1) })
	s, err := prepare(c)
	hangs.Stop()
	if err != nil {
		return errors.Join(err, writeAnswer(c.Stdout, startAnswer{Error: Sentence(err)}))
	}
	defer s.remove()
	ctx, stop := signal.NotifyContext(ctx, unix.SIGTERM)
	defer stop()
	if c.Detach {
		s.settle()
	}
	err = writeAnswer(c.Stdout, startAnswer{Socket: s.folder.Socket(), PID: os.Getpid(), Version: c.Version, API: api.Number})
	if err != nil {
		return fmt.Errorf("answer the launcher: %w", err)
	}
	if c.Detach {
		closeStreams()
	}
	go func() { // what others left is no reason to be late
		s.folder.Sweep()
		sweepLast(filepath.Dir(s.folder.Path), time.Now())
		select {
		case <-ctx.Done():
		case <-time.After(endingFor): // the one before us may have been about to end, which is why we were started
			s.folder.Sweep()
		}
	}()
	s.log.Info("ready", "version", c.Version, "kernel", s.kernel.pid, "extension", s.start.Version)
	return s.serve(ctx)
}

// endingFor is how long a process that was killed may take to end on a busy machine, generously: it has its locks until then.
const endingFor = 5 * time.Second

// sidecar is a started sidecar: everything that has to be taken down again.
type sidecar struct {
	start    startMessage
	kernel   *kernel
	folder   *Folder
	listener *listener
	cells    *net.UnixConn // takes announcements
	logFile  *os.File
	log      *slog.Logger
	notes    []string // for the user
	grpc     *grpc.Server
	session  Session
}

// prepare does everything up to the socket that accepts, in a few milliseconds.
func prepare(c Config) (s *sidecar, err error) {
	s = &sidecar{}
	defer func() {
		if err != nil {
			s.remove()
		}
	}()
	if s.start, err = readStart(c.Stdin); err != nil {
		return s, err
	}
	if s.kernel, err = openKernel(s.start.KernelPID, s.start.KernelStart); err != nil {
		return s, err
	}
	if s.folder, err = NewFolder(); err != nil {
		return s, err
	}
	if err = s.openLog(c.LogFile); err != nil {
		return s, err
	}
	if s.listener, err = listen(s.folder.Socket(), s.log); err != nil {
		return s, err
	}
	if s.cells, err = listenForCells(s.folder.Cells()); err != nil {
		return s, err
	}
	s.session = c.Session(Start{s.start.KernelPID, s.log, s.logFile.Name(), s.notes, s.folder.Path})
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.InTapHandle(authorize(s.start.Token, s.log)), grpc.UnaryInterceptor(logCalls(s.log)),
	)
	api.RegisterOmniPerfServer(s.grpc, s.session)
	return s, nil
}

// openLog opens the log that was asked for, with everything in it, else the one
// in our folder. A log that cannot be written is no reason not to profile.
func (s *sidecar) openLog(asked string) error {
	level := slog.LevelInfo
	var refused error
	if asked != "" {
		if s.logFile, refused = appendTo(asked); refused == nil {
			level = slog.LevelDebug
		}
	}
	if s.logFile == nil {
		var err error
		if s.logFile, err = appendTo(s.folder.Log()); err != nil {
			return fmt.Errorf("the sidecar could not open its log: %w", err)
		}
	}
	s.log = slog.New(slog.NewTextHandler(s.logFile, &slog.HandlerOptions{Level: level})).With("sidecar", os.Getpid())
	if refused != nil {
		s.log.Warn("the log asked for cannot be written", "error", refused)
		s.notes = append(s.notes, Sentence(fmt.Errorf("the log %s (OMNI_PERF_LOG) cannot be written: %w", asked, refused)))
	}
	return nil
}

func appendTo(path string) (*os.File, error) {
	path, err := filepath.Abs(path) // for Status: we leave this folder
	if err != nil {
		return nil, err
	}
	// Not to be held up by a FIFO, at its opening or when its reader is slow.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NONBLOCK|unix.O_NOCTTY, 0o600)
	if errors.Is(err, unix.ENXIO) {
		return nil, errNoFile
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() && info.Mode()&os.ModeCharDevice == 0 {
		f.Close()
		return nil, errors.Join(err, errNoFile)
	}
	return f, nil
}

var errNoFile = errors.New("it is no file")

// settle sends what libraries and a crash print to the log, and holds no folder
// that the user may want to unmount.
func (s *sidecar) settle() {
	_ = unix.Dup3(int(s.logFile.Fd()), 2, 0)
	_ = os.Chdir("/")
}

// closeStreams gives the launcher its end of file.
func closeStreams() {
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		_ = unix.Dup3(int(null.Fd()), 0, 0)
		_ = unix.Dup3(int(null.Fd()), 1, 0)
		null.Close()
	}
}

func (s *sidecar) serve(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.grpc.Serve(s.listener) }()
	go hear(s.cells, s.start.Token, s.session.Announced)
	watched := make(chan string, 1)
	go func() { watched <- s.watch(ctx) }()

	var err error
	select {
	case err = <-served: // the listener broke
	case reason := <-watched:
		s.log.Info("ending", "reason", reason)
	case <-ctx.Done():
		s.log.Info("ending", "reason", "asked to")
	}
	s.session.Close()
	s.grpc.Stop()
	return err
}

func (s *sidecar) watch(ctx context.Context) (reason string) {
	c := callers{left: time.Now()}
	lost := func() bool {
		_, err := os.Lstat(s.folder.Socket())
		reason = c.gone(s.listener.open.Load(), !os.IsNotExist(err), time.Now())
		return reason != ""
	}
	if s.kernel.wait(ctx, lost) {
		s.session.KernelEnded(s.kernel.exit(), s.folder)
		return "the kernel has ended"
	}
	return reason
}

// callers knows whether anybody may still call. A kernel that runs another program
// in its place (exec) keeps its pid but has forgotten us.
type callers struct {
	left time.Time // when the last peer did
}

// patience is how long a sidecar waits for its kernel to connect again.
const patience = time.Minute

// gone says why nobody will call any more; empty while somebody may.
func (c *callers) gone(open int64, socket bool, now time.Time) (reason string) {
	switch {
	case open > 0:
		c.left = now
	case !socket:
		return "the socket was deleted and nobody is connected"
	case now.Sub(c.left) > patience:
		return fmt.Sprintf("nobody was connected for %v", patience)
	}
	return ""
}

// remove leaves nothing behind.
func (s *sidecar) remove() {
	if s.kernel != nil {
		s.kernel.close()
	}
	if s.listener != nil {
		s.listener.Close()
	}
	if s.cells != nil {
		s.cells.Close()
	}
	if s.folder != nil {
		if err := s.folder.Remove(); err != nil && s.log != nil {
			s.log.Warn("could not remove the folder", "error", err)
		}
	}
	if s.logFile != nil {
		s.logFile.Close()
	}
}

// Sentence makes an error's text one: capital letter, full stop.
func Sentence(err error) string {
	text := err.Error()
	if st, ok := status.FromError(err); ok {
		text = st.Message()
	}
	return words.Sentence(text)
}
