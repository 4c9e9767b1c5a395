package marks

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func listen(t *testing.T, take func(pid int, m Mark) bool) (*Receiver, string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "marks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	path := filepath.Join(folder, "s")
	r, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	go r.Serve(func(pid int) func(Mark) bool { return func(m Mark) bool { return take(pid, m) } })
	return r, path
}

func TestMarksArriveWithTheirSender(t *testing.T) {
	var mu sync.Mutex
	var got []string
	r, path := listen(t, func(pid int, m Mark) bool {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprint(pid == os.Getpid(), m))
		return true
	})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, `{"begin":100}`+"\n"+`{"step":150,"samples":32,"tokens":8192}`+"\n"+`{"region":[120,140],"name":"load"}`+"\n"+`{"hook":140}`+"\n"+`{"hook":200,"called":190,"anew":true}`+"\n"+`{"step":210,"samples":32,"tokens":8192}`+"\n"+`{"region":[160,170],"name":"inc","thread":7}`+"\n"+`{"other":"Adam","at":210}`+"\n")
	other, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	fmt.Fprint(other, `{"begin":1}`+"\n"+`{"hook":900}`+"\n") // what was before its first step is no step
	time.Sleep(50 * time.Millisecond)                         // accepted
	r.Drain()                                                 // though the sender is still there
	mu.Lock()
	defer mu.Unlock()
	want := "[true {region load 120 140  0 {0 0 <nil>} false 0} true {step  140 200 optimizer 0 {0 0 <nil>} true 190} true {step  150 210 marked 0 {32 8192 <nil>} false 0} true {region inc 160 170  7 {0 0 <nil>} false 0} true {optimizer Adam 210 210  0 {0 0 <nil>} false 0}]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

// What a sender has sent ends within a line, or what it has sent is still in its memory: each mark comes once.
func TestWhatAKilledSenderHasNotSentIsInItsMemory(t *testing.T) {
	const sent, unsent = `{"begin":100}` + "\n" + `{"step":150}` + "\n" + `{"st`, `ep":170}` + "\n" + `{"step":200}` + "\n"
	for name, noted := range map[string]int{"noted": len(sent), "not noted": 10} {
		var mu sync.Mutex
		var got []int64
		r, path := listen(t, func(_ int, m Mark) bool {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, m.End)
			return true
		})
		fd, err := unix.MemfdCreate("marks", unix.MFD_CLOEXEC)
		if err != nil {
			t.Skip("there is no memory to share: ", err)
		}
		pending := (sent + unsent)[noted:]
		memory := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, uint64(noted)), uint64(len(pending)))
		if _, err := unix.Write(fd, append(memory, pending...)); err != nil {
			t.Fatal(err)
		}
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.WriteMsgUnix([]byte(sent[:5]), unix.UnixRights(fd), nil); err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		fmt.Fprint(c, sent[5:])
		c.Close()
		time.Sleep(50 * time.Millisecond) // accepted
		r.Drain()
		mu.Lock()
		if fmt.Sprint(got) != "[170 200]" {
			t.Errorf("%s: the steps end at %v, want those at 170 and 200", name, got)
		}
		mu.Unlock()
	}
}

func TestASenderOfNonsenseIsCutOff(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "hello\n", "no mark": "{}\n", "backwards": `{"region":[5,4]}` + "\n", "in the past": `{"begin":9}` + "\n" + `{"step":3}` + "\n",
		"endless": fmt.Sprintf("%*d\n", maxLine+1, 1),
	} {
		_, path := listen(t, func(int, Mark) bool { t.Errorf("%s was taken", name); return true })
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, text)
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
			t.Errorf("%s: the connection stays open: %v", name, err)
		}
		c.Close()
	}
}

func TestAStrangersMarksAreRefused(t *testing.T) {
	asked := make(chan bool, 8)
	_, path := listen(t, func(int, Mark) bool { asked <- true; return false })
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, `{"step":150}`+"\n"+`{"step":160}`+"\n")
	<-asked
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("the connection stays open: %v", err)
	}
	if len(asked) != 0 {
		t.Error("its second mark was looked at")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"begin":1}`))
	f.Add([]byte(`{"step":1,"region":[1,2],"name":"x"}`))
	f.Add([]byte(`{"region":[1]}`))
	f.Add(append([]byte{5, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0}, `{"begin":1}`+"\n"...))
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, taken := range []uint64{0, 7, 1 << 63} {
			if rest := behind(line, taken); len(rest) > max(len(line)-sharedHead, 0) {
				t.Errorf("%q has %q unsent", line, rest)
			}
		}
		var d decoder
		if m, ok, err := d.decode(line); ok && (err != nil || m.End < m.Start) {
			t.Errorf("%q is %+v, %v", line, m, err)
		}
	})
}

func TestAnExceptionIsKeptByItsSender(t *testing.T) {
	r, path := listen(t, func(int, Mark) bool { t.Error("it was taken as a mark"); return true })
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, `{"raised":"ValueError","message":"no rows","stack":[["load.py",7],["train.py",31]]}`+"\n"+`{"raised":"KeyError","message":"","stack":[["rank.py",9]],"pid":77}`+"\n")
	c.Close()
	time.Sleep(50 * time.Millisecond) // accepted
	r.Drain()
	want := "{ValueError no rows [{load.py 7} {train.py 31}]}"
	if got := r.Raised(os.Getpid()); got == nil || fmt.Sprint(*got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if got := r.Raised(77); got == nil || fmt.Sprint(*got) != "{KeyError  [{rank.py 9}]}" {
		t.Errorf("of the process that it has started: %v", got)
	}
	if got := r.Raised(1); got != nil {
		t.Errorf("of another process: %v", got)
	}
}
