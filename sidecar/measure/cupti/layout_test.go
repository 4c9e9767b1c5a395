package cupti

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
)

// compiled is what a C program prints.
func compiled(t *testing.T, program string, flags ...string) []string {
	t.Helper()
	folder := t.TempDir()
	source, binary := filepath.Join(folder, "program.c"), filepath.Join(folder, "program")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	command := append([]string{"-c", `exec ${CC:-cc} -w -o "$@"`, "sh", binary, source}, flags...)
	if out, err := exec.Command("sh", command...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// prints is a program that prints these numbers.
func prints(includes string, numbers ...string) string {
	var b strings.Builder
	b.WriteString(includes + "#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n")
	for _, n := range numbers {
		fmt.Fprintf(&b, "printf(\"%%llu\\n\", (unsigned long long)(%s));\n", n)
	}
	return b.String() + "return 0; }\n"
}

// The layout in Go is that of ring.h.
func TestLayoutOfTheRing(t *testing.T) {
	plain.folder(t)
	shim, err := filepath.Abs("shim")
	if err != nil {
		t.Fatal(err)
	}
	var numbers, want []string
	for _, c := range []struct {
		c    string
		want uint64
	}{
		{"RING_MAGIC", magic}, {"RING_HEADER", headerSize}, {"sizeof(struct record)", recordSize}, {"RING_RECORDS", capacity},
		{"RING_NAMES", namesSize}, {"RING_SIZE", ringSize}, {"sizeof(struct ring) <= RING_HEADER", 1},
		{"offsetof(struct ring, record_size)", atRecordSize}, {"offsetof(struct ring, pid)", atPID}, {"offsetof(struct ring, records)", atRecords},
		{"offsetof(struct ring, names)", atNames}, {"offsetof(struct ring, api)", atAPI}, {"offsetof(struct ring, head)", atHead},
		{"offsetof(struct ring, tail)", atTail}, {"offsetof(struct ring, lost)", atLost}, {"offsetof(struct ring, dropped)", atDropped},
		{"offsetof(struct ring, unknown)", atUnknown}, {"offsetof(struct ring, pending_since)", atPending}, {"offsetof(struct ring, blind)", atBlind},
		{"offsetof(struct ring, taken)", atTaken}, {"offsetof(struct ring, callback_ns)", atCallback},
		{"offsetof(struct ring, overhead_ns)", atOverhead}, {"offsetof(struct ring, rests)", atRests}, {"offsetof(struct ring, halt)", atHalt},
		{"offsetof(struct ring, first)", atFirst}, {"sizeof ((struct ring *)0)->first", firstSize},
		{"offsetof(struct record, end)", 8}, {"offsetof(struct record, number)", 16}, {"offsetof(struct record, name)", 24},
		{"offsetof(struct record, device)", 28}, {"offsetof(struct record, stream)", 32}, {"offsetof(struct record, kind)", 36},
		{"offsetof(struct record, copy)", 38},
		{"MEMCPY", uint64(memcpyKind)}, {"MEMSET", uint64(memsetKind)}, {"KERNEL", uint64(kernelKind)}, {"CLOCK", uint64(clockKind)},
		{"OPEN", uint64(openKind)}, {"SHUT", uint64(shutKind)}, {"LOST", uint64(lostKind)}, {"MISSED", uint64(missedKind)}, {"WHY", uint64(whyKind)},
		{"NO_LIBRARY", uint64(noLibrary)}, {"NO_SYMBOL", uint64(noSymbol)}, {"VERSION_REFUSED", uint64(versionRefused)}, {"OCCUPIED", uint64(occupied)},
		{"CUPTI_FAILED", uint64(cuptiFailed)}, {"BAD_TIMES", uint64(badTimes)}, {"MOST_RECORDS", uint64(mostRecords)}, {"MOST_SECONDS", uint64(mostSeconds)},
		{"OTHERWISE", uint64(otherwise)}, {"DEVICE_MEMORY", uint64(deviceMemory)},
	} {
		numbers, want = append(numbers, c.c), append(want, fmt.Sprintf("%s = %d", c.c, c.want))
	}
	got := compiled(t, prints("#include \"ring.h\"\n", numbers...), "-I"+shim)
	for i := range got {
		got[i] = numbers[i] + " = " + got[i]
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The library is small enough to be read by whoever lets it into a process: its headers only declare.
func TestTheLibraryIsSmall(t *testing.T) {
	lines := 0
	for _, name := range []string{"shim/shim.c", "shim/ring.h", "shim/interface.h"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".h") {
			if strings.Contains(string(text), ") {") {
				t.Errorf("%s does more than declare", name)
			}
			continue
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
	}
	if lines > 500 {
		t.Errorf("it has %d lines of C beside comments, more than 500", lines)
	}
}

// stubs are CUDA's types that CUPTI's headers name, none of which matters to the activity records.
const stubs = `#include <stdint.h>
#include <stddef.h>
#pragma once
typedef int CUdevice, CUresult, CUdevice_attribute, CUstreamAttrID, CUstreamAttrValue, CUgraphNodeType;
typedef struct CUctx_st *CUcontext; typedef struct CUstream_st *CUstream; typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction; typedef unsigned long long CUdeviceptr; typedef struct { char bytes[16]; } CUuuid;
typedef struct CUgraph_st *CUgraph; typedef struct CUgraphNode_st *CUgraphNode; typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUevent_st *CUevent; typedef struct { void *p[4]; } CUaccessPolicyWindow; typedef struct { unsigned x, y, z; } dim3;
`

// The offsets in interface.h are those of NVIDIA's headers, of the newest struct in each.
func TestOffsetsOfNVIDIA(t *testing.T) {
	headers, _ := filepath.Glob("../../../.cache/cupti/*/nvidia/*/include/cupti_activity.h")
	if len(headers) == 0 {
		requirement.Missing(t, requirement.Cupti, "no headers of CUPTI; tools/cupti fetches them")
	}
	text, err := os.ReadFile("shim/interface.h")
	if err != nil {
		t.Fatal(err)
	}
	shim, err := filepath.Abs("shim")
	if err != nil {
		t.Fatal(err)
	}
	stub := t.TempDir()
	for _, name := range []string{"cuda.h", "builtin_types.h"} {
		if err := os.WriteFile(filepath.Join(stub, name), []byte(stubs), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	number := func(name string) string {
		match := regexp.MustCompile(`\b` + name + ` = ([0-9]+(?: << 16)?)\b`).FindSubmatch(text)
		if match == nil {
			t.Fatalf("interface.h has no %s", name)
		}
		return string(match[1])
	}
	for _, header := range headers {
		folder := filepath.Dir(header)
		content, err := os.ReadFile(header)
		if err != nil {
			t.Fatal(err)
		}
		newest := func(name string) string { // CUpti_ActivityKernel9 of Kernel, …
			found, most := "", -1
			for _, m := range regexp.MustCompile(`\bCUpti_Activity`+name+`([0-9]*)\b`).FindAllSubmatch(content, -1) {
				n := 0
				_, _ = fmt.Sscan(string(m[1]), &n)
				if n > most {
					found, most = string(m[0]), n
				}
			}
			return found
		}
		kernel, copied, filled, overhead := newest("Kernel"), newest("Memcpy"), newest("Memset"), newest("Overhead")
		var checks []string
		for _, c := range [][3]string{
			{kernel, "start", "START"}, {kernel, "end", "END"}, {kernel, "deviceId", "KERNEL_DEVICE"}, {kernel, "streamId", "KERNEL_STREAM"}, {kernel, "name", "KERNEL_NAME"},
			{copied, "start", "START"}, {copied, "end", "END"}, {copied, "deviceId", "COPY_DEVICE"}, {copied, "streamId", "COPY_STREAM"}, {copied, "copyKind", "COPY_KIND"},
			{filled, "start", "START"}, {filled, "end", "END"}, {filled, "deviceId", "COPY_DEVICE"}, {filled, "streamId", "COPY_STREAM"},
			{overhead, "start", "OVERHEAD_START"}, {overhead, "end", "OVERHEAD_END"}, {overhead, "overheadKind", "OVERHEAD_KIND"},
		} {
			checks = append(checks, fmt.Sprintf("offsetof(%s, %s) == %s", c[0], c[1], number(c[2])))
		}
		checks = append(checks,
			"CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL == 10", "CUPTI_ACTIVITY_KIND_MEMCPY == 1", "CUPTI_ACTIVITY_KIND_MEMSET == 2", "CUPTI_ACTIVITY_KIND_OVERHEAD == 17",
			"CUPTI_ERROR_MAX_LIMIT_REACHED == "+number("MAX_LIMIT_REACHED"), "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED == "+number("ONE_SUBSCRIBER"),
			"CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH == "+number("BUFFER_FLUSH"), "CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION == "+number("INSTRUMENTATION"),
			"CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE == "+number("RESOURCE"), "CUPTI_ACTIVITY_MEMCPY_KIND_HTOD == 1", "CUPTI_ACTIVITY_MEMCPY_KIND_PTOP == 10")
		if strings.Contains(string(content), "cuptiGetTimestamp_v2") { // for one of several users
			checks = append(checks,
				"CUPTI_ACTIVITY_ATTR_ENABLE_HES == "+number("EVENTS_IN_HARDWARE"), "CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE == "+number("GRAPHS_AS_A_WHOLE"),
				"sizeof(CUpti_SubscriberParams) == sizeof(struct parameters)", "CUpti_SubscriberParams_STRUCT_SIZE == sizeof(struct parameters)",
				"offsetof(CUpti_SubscriberParams, subscriberName) == offsetof(struct parameters, name)", "offsetof(CUpti_SubscriberParams, oldSubscriberName) == offsetof(struct parameters, first)",
				"offsetof(CUpti_SubscriberParams, oldSubscriberSize) == offsetof(struct parameters, first_size)",
				"offsetof(CUpti_SubscriberParams, allowMultipleSubscribers) == offsetof(struct parameters, several)")
		}
		includes := "#include \"cupti_version.h\"\n#include \"cupti_result.h\"\n#include \"cupti_activity.h\"\n#include \"interface.h\"\n"
		for i, holds := range compiled(t, prints(includes, checks...), "-I"+stub, "-I"+folder, "-I"+shim) {
			if holds != "1" {
				t.Errorf("%s: not so: %s", folder, checks[i])
			}
		}
	}
}
