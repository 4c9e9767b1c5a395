package pystack

import (
	"os"
	"strings"
	"testing"
)

const tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1001 1 0000000000000000 100 0 0 10 0
   1: 0500000A:D2F0 0600000A:1538 01 00000000:00000000 00:00000000 00000000  1000        0 1002 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:1F90 0100007F:D2F2 01 00000000:00000000 00:00000000 00000000     0        0 1003 1 0000000000000000 20 4 30 10 -1
`

const tcp6Table = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:C350 00000000000000000000000001000000:18EB 01 00000000:00000000 00:00000000 00000000  1000        0 2001 1 0000000000000000 20 4 0 10 -1
   1: 0000000000000000FFFF00000100007F:C351 0000000000000000FFFF00000200007F:01BB 01 00000000:00000000 00:00000000 00000000  1000        0 2002 1 0000000000000000 20 4 0 10 -1
`

const unixTable = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 3001 /run/docker.sock
0000000000000000: 00000003 00000000 00000000 0001 03 3002
`

func TestEndpoints(t *testing.T) {
	for _, test := range []struct {
		table, inode, name string
		found              bool
	}{
		{tcpTable, "1001", ":8080", true}, {tcpTable, "1002", "10.0.0.6:5432 (PostgreSQL)", true}, {tcpTable, "1003", "127.0.0.1:54002", true},
		{tcpTable, "100", "", false}, {tcpTable, "", "", false}, {tcpTable, "9999", "", false},
		{tcp6Table, "2001", "[::1]:6379 (Redis)", true}, {tcp6Table, "2002", "127.0.0.2:443 (https)", true},
		{unixTable, "3001", "/run/docker.sock", true}, {unixTable, "3002", "", true}, {"", "1", "", false},
	} {
		if name, found := endpoint([]byte(test.table), test.inode); name != test.name || found != test.found {
			t.Errorf("inode %s: %q, %v, want %q, %v", test.inode, name, found, test.name, test.found)
		}
	}
}

func FuzzEndpoint(f *testing.F) {
	for _, table := range []string{tcpTable, tcp6Table, unixTable} {
		f.Add([]byte(table), "1002")
	}
	if own, err := os.ReadFile("/proc/self/net/tcp"); err == nil {
		f.Add(own, "0")
	}
	f.Fuzz(func(t *testing.T, table []byte, inode string) {
		if name, found := endpoint(table, inode); !found && name != "" || found && !strings.Contains(string(table), inode) {
			t.Errorf("%q, %v", name, found)
		}
	})
}
