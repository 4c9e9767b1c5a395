package alarm

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

const moment = 20 * time.Millisecond

// soon reports whether an alarm goes off within a second.
func soon(a *Alarm) bool {
	select {
	case <-a.C:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// silent reports whether an alarm does not go off for a while.
func silent(a *Alarm) bool {
	select {
	case <-a.C:
		return false
	case <-time.After(5 * moment):
		return true
	}
}

func leader(t *testing.T) *Leader {
	t.Helper()
	l, err := Lead()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAnAlarmOfItsOwnIsATimer(t *testing.T) {
	a := New(0)
	defer a.Stop()
	if !soon(a) {
		t.Error("one that is due at once does not go off")
	}
	if a.Reset(moment); !soon(a) {
		t.Error("one that was set again does not go off")
	}
	if a.Reset(moment / 4); true {
		a.Stop()
	}
	if !silent(a) {
		t.Error("one that was stopped goes off")
	}
}

func TestAlarmsGoOffWhenWhoLeadsWakesUp(t *testing.T) {
	before := New(moment)
	defer before.Stop()
	l := leader(t)
	after, later := New(moment), New(time.Hour)
	defer after.Stop()
	defer later.Stop()
	if !silent(before) || !silent(after) {
		t.Error("one goes off on its own")
	}
	if !l.Sleep(t.Context(), moment) {
		t.Error("the end of a sleep is taken for that of all")
	}
	if !soon(before) || !soon(after) {
		t.Error("one that is due does not go off")
	}
	later.Reset(moment)
	if l.End(); !soon(later) {
		t.Error("one that was gathered is forgotten when nobody leads any more")
	}
}

func TestALeaderThatSleepsLongWakesUpForAlarms(t *testing.T) {
	l := leader(t)
	defer l.End()
	a := New(moment)
	defer a.Stop()
	began, rang := time.Now(), make(chan time.Duration, 1)
	go func() {
		<-a.C
		rang <- time.Since(began)
	}()
	l.Sleep(t.Context(), 10*moment)
	if slept := time.Since(began); slept < 10*moment {
		t.Errorf("it slept for %v, want %v", slept, 10*moment)
	}
	if after := <-rang; after < moment || after > 9*moment {
		t.Errorf("an alarm after %v went off after %v", moment, after)
	}
}

func TestAnAlarmThatIsSetMeanwhileIsHardlyLate(t *testing.T) {
	l := leader(t)
	defer l.End()
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan bool)
	go func() { over <- l.Sleep(ctx, time.Minute) }()
	time.Sleep(moment / 2)
	a := New(moment)
	defer a.Stop()
	began := time.Now()
	if !soon(a) || time.Since(began) > moment+5*longest {
		t.Errorf("it is late by %v, want at most %v", time.Since(began)-moment, longest)
	}
	stop()
	if <-over {
		t.Error("it sleeps on after the end")
	}
}

func TestAlarmsFollowTheLastLeader(t *testing.T) {
	first, second := leader(t), leader(t)
	a := New(moment)
	defer a.Stop()
	if first.End(); !silent(a) {
		t.Error("it goes off on its own while somebody leads")
	}
	if second.End(); !soon(a) {
		t.Error("it does not go off when nobody leads")
	}
}

// What a leader is for: where one of Go's timers wakes up the scheduler's watchdog with it, its sleeps do not.
func TestASleepWakesUpOneThread(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l := leader(t)
	defer l.End()
	const sleeps = 200
	l.Sleep(t.Context(), moment)
	before := switches(t)
	for range sleeps {
		l.Sleep(t.Context(), 2*time.Millisecond)
	}
	if woken := switches(t) - before; woken < sleeps || woken > 2*sleeps {
		t.Errorf("%d sleeps woke up %d threads", sleeps, woken)
	}
}

// switches are how often threads of this process gave up a CPU to wait.
func switches(t *testing.T) (sum int) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip("skipped: no /proc: ", err)
	}
	for _, task := range tasks {
		status, err := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(status), "\nvoluntary_ctxt_switches:\t")
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}
