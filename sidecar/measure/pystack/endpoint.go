package pystack

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
)

// services are names of ports that say what somebody waits for.
var services = map[uint16]string{
	22: "ssh", 53: "DNS", 80: "http", 443: "https", 1433: "SQL Server", 1521: "Oracle", 2049: "NFS", 2379: "etcd", 3306: "MySQL", 5432: "PostgreSQL", 5672: "RabbitMQ", 6379: "Redis",
	9000: "ClickHouse or MinIO", 9042: "Cassandra", 9092: "Kafka", 9200: "Elasticsearch", 11211: "memcached", 27017: "MongoDB", 29500: "torch.distributed",
}

// Fields of the tables in /proc/PID/net: proc(5). Those of unix have other ones.
const (
	fieldLocal, fieldRemote, fieldInode = 1, 2, 9
	fieldUnixInode, fieldUnixPath       = 6, 7
)

// endpoint is the other end of the socket with an inode in a table of /proc/PID/net: "10.0.0.5:5432 (PostgreSQL)"; of one
// that listens its port, of a Unix socket its path, where it has one.
func endpoint(table []byte, inode string) (name string, found bool) {
	if inode == "" {
		return "", false
	}
	for line := range bytes.Lines(table) {
		if !bytes.Contains(line, []byte(inode)) {
			continue
		}
		fields := strings.Fields(string(line))
		switch {
		case len(fields) > fieldInode && fields[fieldInode] == inode:
			return internet(fields[fieldLocal], fields[fieldRemote]), true
		case len(fields) > fieldUnixInode && fields[fieldUnixInode] == inode:
			if len(fields) > fieldUnixPath {
				name = strings.ToValidUTF8(fields[fieldUnixPath], "\uFFFD")
			}
			return name, true
		}
	}
	return "", false
}

func internet(local, remote string) string {
	peer := address(remote)
	if peer.Port() == 0 {
		if here := address(local); here.Port() != 0 {
			return ":" + strconv.Itoa(int(here.Port()))
		}
		return ""
	}
	name := peer.String()
	if service, ok := services[peer.Port()]; ok {
		name += " (" + service + ")"
	}
	return name
}

// address reads "0100007F:1F90": words of 32 bits as they lie in memory, in hexadecimal.
func address(text string) (a netip.AddrPort) {
	host, port, _ := strings.Cut(text, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil || len(host)%8 != 0 || len(host) > 32 {
		return a
	}
	var bytes []byte
	for ; len(host) > 0; host = host[8:] {
		word, err := strconv.ParseUint(host[:8], 16, 32)
		if err != nil {
			return a
		}
		bytes = binary.NativeEndian.AppendUint32(bytes, uint32(word))
	}
	ip, _ := netip.AddrFromSlice(bytes)
	return netip.AddrPortFrom(ip.Unmap(), uint16(number))
}
