package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/mem"
	"github.com/shirou/gopsutil/v3/net"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Machine is the machine that this process runs on.
func Machine() timeline.Host {
	h := timeline.Host{Cores: int(cores())}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		h.BootID = strings.TrimSpace(string(id))
	}
	if name, err := os.Hostname(); err == nil {
		h.Name = name
	}
	if v, err := mem.VirtualMemory(); err == nil {
		h.Memory = int64(v.Total)
	}
	return h
}

// machineWide are the tracks that are not of the target.
var machineWide = map[string]bool{
	"cpu.system": true, "mem.system": true, "swap": true, "net.recv": true, "net.sent": true,
}

// machine reads what all processes share.
type machine struct {
	s     *sampler
	total float64 // cores of the machine
	off   map[string]bool
}

func newMachine(s *sampler) *machine {
	total := cores()
	if n, err := cpu.CountsWithContext(s.fs.ctx, true); err == nil && n > 0 {
		total = float64(n)
	}
	return &machine{s: s, total: total, off: make(map[string]bool)}
}

func (m *machine) read(at timeline.Nanos, everything bool) {
	m.readCPU(at)
	m.readMemory(at)
	m.readNetwork(at)
	if everything {
		m.readSwap(at)
	}
}

// refuse leaves a figure out from now on.
func (m *machine) refuse(what, reason string) {
	m.off[what] = true
	m.s.sink.Note(timeline.NoteUnavailable, what, reason)
}

func (m *machine) readCPU(at timeline.Nanos) {
	if m.off["cpu.system"] {
		return
	}
	times, err := cpu.TimesWithContext(m.s.fs.ctx, false)
	if err != nil || len(times) == 0 {
		m.refuse("cpu.system", "/proc/stat could not be read")
		return
	}
	t := times[0]
	busy := t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal // guests are within user
	m.s.countOver(at, minTickWindow, "cpu.system", "/proc/stat", "cores", m.total, busy)
	m.s.c.spare.look(at, m.s.family.used().Seconds(), m.s.limits.Cores, busy, m.total)
}

func (m *machine) readMemory(at timeline.Nanos) {
	if m.off["mem.system"] {
		return
	}
	v, err := mem.VirtualMemoryWithContext(m.s.fs.ctx)
	if err != nil || v.Total == 0 {
		m.refuse("mem.system", "/proc/meminfo could not be read")
		return
	}
	m.s.gauge(at, "mem.system", "/proc/meminfo, total less available", "B", float64(v.Total), float64(v.Total-min(v.Available, v.Total)))
}

func (m *machine) readSwap(at timeline.Nanos) {
	v, err := mem.SwapMemoryWithContext(m.s.fs.ctx)
	if err != nil || v.Total == 0 {
		return // a machine without swap has no such figure
	}
	m.s.gauge(at, "swap", "sysinfo(2)", "B", float64(v.Total), float64(v.Used))
}

func (m *machine) readNetwork(at timeline.Nanos) {
	const what = "net.recv, net.sent"
	if m.off[what] {
		return
	}
	counters, err := net.IOCountersByFileWithContext(m.s.fs.ctx, true, filepath.Join(m.s.fs.Root, strconv.Itoa(m.s.c.pid), "net/dev"))
	if err != nil {
		if !m.s.ending() { // a dead process has no network
			m.refuse(what, err.Error())
		}
		return
	}
	var received, sent uint64
	for _, c := range counters {
		if countsTwice(c.Name) {
			continue
		}
		received += c.BytesRecv
		sent += c.BytesSent
	}
	const source = "/proc/PID/net/dev, the process's network namespace without loopback"
	m.s.count(at, "net.recv", source, "B/s", 0, float64(received))
	m.s.count(at, "net.sent", source, "B/s", 0, float64(sent))
}

// countsTwice names interfaces whose bytes never leave the machine or pass
// another interface as well.
func countsTwice(name string) bool {
	for _, prefix := range []string{"lo", "veth", "docker", "br-", "virbr", "cni", "flannel"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
