package analyses

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// efficiencyKey names a row: an operator on inputs of these shapes, computing in this type on this device.
type efficiencyKey struct {
	operator, kind, shapes, dtype, device string
}

// efficiencySums are a row's figures.
type efficiencySums struct {
	calls        int64
	ns           int64 // on the device
	tensorCore   int64 // of it in kernels whose names say that they use tensor cores
	flops, bytes float64
}

func (s *efficiencySums) plus(o *efficiencySums) {
	s.calls, s.ns, s.tensorCore = s.calls+o.calls, s.ns+o.ns, s.tensorCore+o.tensorCore
	s.flops, s.bytes = s.flops+o.flops, s.bytes+o.bytes
}

// observeEfficiency charges each device event to the operator whose formula accounts for it: the innermost with one around what
// launched it, else what launched it itself.
func observeEfficiency(r *recording) map[efficiencyKey]*efficiencySums {
	sums := map[efficiencyKey]*efficiencySums{}
	if len(r.spans) == 0 {
		return sums
	}
	e := newEfficiency(r)
	launchers, operators := r.launchers(), r.hasOperators()
	own := make([]callCost, len(e.tree.rows))
	for i := range r.spans {
		s := &r.spans[i]
		op := launchers[i]
		if op < 0 || s.row < 0 || !operators || e.isStep(op) {
			sum := efficiencySums{calls: 1, ns: max(0, s.dur)}
			if e.usesTensorCores(s.name) {
				sum.tensorCore = max(0, s.dur)
			}
			of := e.listed(callKind{kernel: s.name, what: s.kind, device: s.device}, func() listedAs {
				name := r.t.Text(s.name)
				return listedAs{key: efficiencyKey{operator: name, kind: kindByName(name, s.kind), device: e.deviceName(s)}}
			})
			of.sums.plus(&sum)
			continue
		}
		if owner := e.owner[op]; owner >= 0 {
			op = owner
		}
		c := &own[op]
		c.ns += max(0, s.dur)
		if e.usesTensorCores(s.name) {
			c.tensorCore += max(0, s.dur)
		}
		if s.dur >= c.longest {
			c.longest, c.kernel, c.span, c.what = s.dur, s.name, i, s.kind
		}
	}
	for op := range own {
		if c := &own[op]; c.ns > 0 || c.longest > 0 {
			e.add(int32(op), c)
		}
	}
	for _, of := range e.known {
		addTo(sums, of.key, &of.sums)
	}
	return sums
}

func addTo(sums map[efficiencyKey]*efficiencySums, key efficiencyKey, sum *efficiencySums) {
	if sums[key] == nil {
		sums[key] = &efficiencySums{}
	}
	sums[key].plus(sum)
}

// kindsByName has the kind of kernels that no operator with a formula launched, by what libraries call them; the first that matches counts.
var kindsByName = []struct {
	kind string
	name *regexp.Regexp
}{
	{KindAttention, regexp.MustCompile(`(?i)flash|fmha|attn|attention`)},
	{KindConvolution, regexp.MustCompile(`(?i)conv(?:olution|\d?d|_|.*(?:fprop|dgrad|wgrad))|implicit_gemm|winograd|wrw`)},
	{KindGEMM, regexp.MustCompile(`(?i)gemm|^Cijk_|nvjet|matmul|splitk`)},
	{KindNorm, regexp.MustCompile(`(?i)norm|softmax`)},
	{KindOptimizer, regexp.MustCompile(`multi_tensor_apply|FusedAdam|FusedSgd`)},
	{KindElementwise, regexp.MustCompile(`(?i)elementwise`)},
	{KindReduction, regexp.MustCompile(`(?i)reduce`)},
	{KindCopy, regexp.MustCompile(`(?i)CatArray|copy`)},
	{KindIndex, regexp.MustCompile(`(?i)index|gather|scatter|embedding`)},
}

// kindByName is the kind of device work that has no formula.
func kindByName(name string, kind KernelKind) string {
	switch kind {
	case Communication:
		return KindCommunicate
	case MemoryOp:
		return KindCopy
	}
	for _, k := range kindsByName {
		if k.name.MatchString(name) {
			return k.kind
		}
	}
	return KindOther
}

// callCost is what one call of an operator had on the device.
type callCost struct {
	ns, tensorCore, longest int64
	kernel                  kineto.Sym // the longest one
	span                    int
	what                    KernelKind // of the longest one
}

// efficiency finds out which operator accounts for what.
type efficiency struct {
	r    *recording
	tree *opTree
	// owner is the operator with a formula that an operator's work counts in: itself or one around it; -1 for none.
	owner []int32
	// inner says of operators around one that counts operations that they do not count again.
	inner []bool
	model []model // of operators with one
	// What calls are listed as: calls that are alike have one, so that shapes are read and names are matched once.
	known       map[callKind]*listedAs
	tensorCores map[kineto.Sym]bool // by kernel
}

// callKind is what calls that are listed alike have in common.
type callKind struct {
	operator, dims, concrete, types, kernel kineto.Sym
	device                                  uint16
	what                                    KernelKind
	inner                                   bool
}

// listedAs is a row, with the operations and bytes of one call.
type listedAs struct {
	key          efficiencyKey
	flops, bytes float64
	sums         efficiencySums
}

// listed is the row of calls of a kind, made when the first is seen.
func (e *efficiency) listed(kind callKind, make func() listedAs) *listedAs {
	of := e.known[kind]
	if of == nil {
		made := make()
		of = &made
		e.known[kind] = of
	}
	return of
}

func (e *efficiency) usesTensorCores(kernel kineto.Sym) bool {
	uses, known := e.tensorCores[kernel]
	if !known {
		uses = tensorCores.MatchString(e.r.t.Text(kernel))
		e.tensorCores[kernel] = uses
	}
	return uses
}

func newEfficiency(r *recording) *efficiency {
	tree := r.operators()
	e := &efficiency{r: r, tree: tree, owner: make([]int32, len(tree.rows)), inner: make([]bool, len(tree.rows)), model: make([]model, len(tree.rows)),
		known: map[callKind]*listedAs{}, tensorCores: map[kineto.Sym]bool{}}
	bySym := map[kineto.Sym]model{}
	for i, row := range tree.rows { // parents come before their children
		name := r.t.Ops.Name[row]
		m, seen := bySym[name]
		if !seen {
			m = models[r.t.Text(name)]
			bySym[name] = m
		}
		e.model[i], e.owner[i] = m, -1
		if up := tree.parent[i]; up >= 0 && r.t.Ops.Class[row] == kineto.OpCPU {
			e.owner[i] = e.owner[up]
		}
		if m.of != nil {
			e.owner[i] = int32(i)
		}
	}
	for i := len(tree.rows) - 1; i >= 0; i-- {
		if up := tree.parent[i]; up >= 0 && (e.inner[i] || counts(e.model[i].kind)) {
			e.inner[up] = true
		}
	}
	return e
}

// counts reports whether a kind's operations are those of the operator and not of its parts.
func counts(kind string) bool {
	return kind == KindGEMM || kind == KindAttention || kind == KindConvolution
}

// add lists a call.
func (e *efficiency) add(op int32, c *callCost) {
	o, row := &e.r.t.Ops, e.tree.rows[op]
	in := inputsOf(o, row)
	inner := counts(e.model[op].kind) && e.inner[op]
	of := e.listed(callKind{o.Name[row], in.Dims, in.Concrete, in.Types, c.kernel, e.r.spans[c.span].device, c.what, inner}, func() listedAs {
		return e.list(op, c, in, inner)
	})
	of.sums.plus(&efficiencySums{calls: 1, ns: c.ns, tensorCore: c.tensorCore, flops: of.flops, bytes: of.bytes})
}

// list makes the row of a call; inner says that an operator in it counts the operations.
func (e *efficiency) list(op int32, c *callCost, in kineto.OpInputs, inner bool) listedAs {
	t, row, m := e.r.t, e.tree.rows[op], e.model[op]
	kernel := t.Text(c.kernel)
	made := listedAs{key: efficiencyKey{
		operator: t.Text(t.Ops.Name[row]), shapes: t.Text(in.Dims), device: e.deviceName(&e.r.spans[c.span]), kind: m.kind,
	}}
	if m.of == nil || inner {
		made.key.kind = kindByName(kernel, c.what)
		return made
	}
	if in.Dims == 0 {
		return made
	}
	cost := m.of(inputs{shapes: parseShapes(t.Text(in.Dims), t.Text(in.Concrete)), types: parseTypes(t.Text(in.Types)), element: elementOf(kernel)})
	made.key.dtype = cost.dtype
	if cost.dtype == "fp32" && counts(m.kind) && strings.Contains(strings.ToLower(kernel), "tf32") {
		made.key.dtype = "tf32"
	}
	made.flops, made.bytes = finite(cost.flops), finite(cost.bytes)
	return made
}

// isStep recognises a step's annotation, which is no operator: what was launched in nothing else is listed by itself.
func (e *efficiency) isStep(op int32) bool {
	return IsStep(e.r.t.Text(e.r.t.Ops.Name[e.tree.rows[op]]))
}

// finite is a figure that shapes gave, 0 where they lie.
func finite(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// deviceName is the name of the device that a span ran on, "" if the file does not say.
func (e *efficiency) deviceName(s *span) string {
	names := e.r.t.Meta.Devices
	if e.r.hta || len(e.r.of) <= int(s.device) {
		return ""
	}
	switch number := int(e.r.of[s.device]); {
	case len(names) == 1:
		return names[0]
	case number >= 0 && number < len(names):
		return names[number]
	}
	return ""
}

// tensorCores recognises kernels that use tensor cores: the names of cuBLAS, cuDNN and CUTLASS of torch's TensorBoard plugin
// (torch_tb_profiler/profiler/tensor_core.py), and those that came after it: Hopper's and Blackwell's products, flash attention.
var tensorCores = regexp.MustCompile(`h884|s884|h1688|s1688|hmma|i8816|16816|c1688|xmma_|tensorop|dgrad_1x1_stride_2x2|first_layer_wgrad_kernel|conv1x1|conv2d_c1_k1|direct_group|nvjet|gmma|^void flash::flash_|flash_fwd|flash_bwd|fmha|cutlass3x|tensor4x`)

// nvidia recognises the devices whose kernels' names say so.
var nvidia = regexp.MustCompile(`NVIDIA|Tesla|GeForce|Quadro`)

// typeInName finds the type of what a kernel works on, which lists of tensors do not say.
var typeInName = regexp.MustCompile(`OpaqueType<(\d+)u?>|c10::BFloat16|c10::Half|\bdouble\b|\bfloat\b`)

// elementOf is the size of what a kernel works on by its name, 0 where that does not say.
func elementOf(kernel string) float64 {
	found := typeInName.FindStringSubmatch(kernel)
	if found == nil {
		return 0
	}
	if len(found[1]) == 1 {
		return float64(found[1][0] - '0')
	}
	return elementSizes[found[0]].size
}

// efficiencyRow is a row as it is sorted.
type efficiencyRow struct {
	efficiencyKey
	*efficiencySums
}

// rates are a row's figures against its device.
type rates struct {
	perSecond, bandwidth     float64 // NaN where not known
	ofFlops, ofBandwidth, of float64 // shares of the peaks, and of what these allow an operator of its intensity
	bound                    string
}

// rates of what ran; more than the peak is none: the data were in a cache, or the shapes are not those that ran.
func (s *efficiencySums) rates(dtype string, peak Peak) rates {
	none := math.NaN()
	r := rates{none, none, none, none, none, ""}
	if s.ns <= 0 {
		return r
	}
	seconds := float64(s.ns) / 1e9
	r.perSecond, r.bandwidth = orNone(s.flops/seconds), orNone(s.bytes/seconds)
	most := peak.Flops[dtype]
	onCompute, onMemory := none, none // seconds that the peaks allow
	if most > 0 && s.flops > 0 {
		onCompute = s.flops / most
		r.ofFlops = shareOf(onCompute, seconds)
	}
	if peak.Bandwidth > 0 && s.bytes > 0 {
		onMemory = s.bytes / peak.Bandwidth
		r.ofBandwidth = shareOf(onMemory, seconds)
	}
	switch {
	case math.IsNaN(onCompute) && math.IsNaN(onMemory):
		return r
	case math.IsNaN(onCompute) || onMemory >= onCompute:
		r.bound, r.of = "memory", shareOf(onMemory, seconds)
	case !math.IsNaN(onMemory):
		r.bound, r.of = "compute", shareOf(onCompute, seconds)
	}
	return r
}

// shareOf is a share of 1 at most; none if it is more.
func shareOf(part, whole float64) float64 {
	if s := part / whole; s <= 1 {
		return s
	}
	return math.NaN()
}

func answerEfficiency(a asked[map[efficiencyKey]*efficiencySums]) []*table.Table {
	t := table.New(TableEfficiency, "Efficiency of operators",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "operator", Kind: table.Text}, // or kernel, where no operator launched it
		&table.Column{Name: "kind", Kind: table.Text},
		&table.Column{Name: "input_shapes", Kind: table.Text, Optional: true},
		&table.Column{Name: "dtype", Kind: table.Text, Optional: true},
		&table.Column{Name: "calls", Kind: table.Int},
		&table.Column{Name: "device_us", Kind: table.Micros},
		&table.Column{Name: "device_share", Kind: table.Ratio}, // of the rank's
		&table.Column{Name: "flops", Kind: table.Flop},
		&table.Column{Name: "bytes", Kind: table.Float},
		&table.Column{Name: "intensity", Kind: table.Float}, // operations per byte
		&table.Column{Name: "flops_per_s", Kind: table.FlopPerS},
		&table.Column{Name: "bandwidth_gbps", Kind: table.GBps},
		&table.Column{Name: "flops_peak_share", Kind: table.Ratio},
		&table.Column{Name: "bandwidth_peak_share", Kind: table.Ratio},
		&table.Column{Name: "roofline_share", Kind: table.Ratio}, // of what both peaks allow at its intensity
		&table.Column{Name: "bound", Kind: table.Text, Optional: true},
		&table.Column{Name: "device_name", Kind: table.Text, Optional: true})
	kinds := table.New(TableEfficiencyKinds, "Efficiency by kind of operator",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "kind", Kind: table.Text},
		&table.Column{Name: "calls", Kind: table.Int},
		&table.Column{Name: "device_us", Kind: table.Micros},
		&table.Column{Name: "device_share", Kind: table.Ratio},
		&table.Column{Name: "known_share", Kind: table.Ratio}, // of its time: of calls with operations or bytes known
		&table.Column{Name: "roofline_share", Kind: table.Ratio},
		&table.Column{Name: "tensor_core_share", Kind: table.Ratio}) // of its time
	unknown, anyKnown := map[string]bool{}, false
	for _, rank := range a.ranks {
		rows, whole := efficiencyRows(rank.parts)
		for _, row := range rows {
			peak, known := PeakOf(row.device)
			if !known && row.device != "" {
				unknown[row.device] = true
			}
			anyKnown = anyKnown || row.flops > 0 || row.bytes > 0
			v := row.rates(row.dtype, peak)
			t.Add(rank.rank, row.operator, row.kind, row.shapes, row.dtype, row.calls, micros(row.ns), share(row.ns, whole),
				orNone(row.flops), orNone(row.bytes), orNone(row.flops)/orNone(row.bytes), v.perSecond, v.bandwidth/1e9, v.ofFlops, v.ofBandwidth, v.of, v.bound, row.device)
		}
		addKinds(kinds, rank.rank, rows, whole)
	}
	t.Note = peakNote(unknown)
	if !anyKnown && t.Len() > 0 {
		t.Note = "neither operations nor bytes are known: profile with record_shapes=True"
	}
	kinds.Note = t.Note
	return []*table.Table{t, kinds}
}

// peakNote says which devices have no peaks.
func peakNote(unknown map[string]bool) string {
	if len(unknown) == 0 {
		return ""
	}
	names := sortedKeys(unknown)
	return fmt.Sprintf("no share of a peak: the peaks of %s are not known here", strings.Join(names[:min(3, len(names))], ", "))
}

// efficiencyRows are a rank's, the longest first.
func efficiencyRows(parts []map[efficiencyKey]*efficiencySums) (rows []efficiencyRow, whole int64) {
	all := map[efficiencyKey]*efficiencySums{}
	for _, part := range parts {
		for key, sum := range part {
			addTo(all, key, sum)
			whole += sum.ns
		}
	}
	for key, sum := range all {
		rows = append(rows, efficiencyRow{key, sum})
	}
	slices.SortFunc(rows, func(a, b efficiencyRow) int {
		return cmp.Or(cmp.Compare(b.ns, a.ns), strings.Compare(a.operator, b.operator), strings.Compare(a.shapes, b.shapes),
			strings.Compare(a.dtype, b.dtype), strings.Compare(a.kind, b.kind), strings.Compare(a.device, b.device))
	})
	return rows, whole
}

// addKinds sums the rows of a rank by kind.
func addKinds(to *table.Table, rank int, rows []efficiencyRow, whole int64) {
	type sums struct {
		efficiencySums
		known, rated int64
		onNVIDIA     int64   // ns on a device whose kernels say what they use
		allowed      float64 // ns that the peaks allow what is rated
	}
	by := map[string]*sums{}
	for _, row := range rows {
		if by[row.kind] == nil {
			by[row.kind] = &sums{}
		}
		s := by[row.kind]
		s.plus(row.efficiencySums)
		if nvidia.MatchString(row.device) {
			s.onNVIDIA += row.ns
		}
		if row.flops > 0 || row.bytes > 0 {
			s.known += row.ns
		}
		peak, _ := PeakOf(row.device)
		if v := row.rates(row.dtype, peak); !math.IsNaN(v.of) {
			s.rated += row.ns
			s.allowed += v.of * float64(row.ns)
		}
	}
	names := sortedKeys(by)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(by[b].ns, by[a].ns) })
	for _, kind := range names {
		s := by[kind]
		of := math.NaN()
		if s.rated > 0 {
			of = s.allowed / float64(s.rated)
		}
		to.Add(rank, kind, s.calls, micros(s.ns), share(s.ns, whole), share(s.known, s.ns), of, share(s.tensorCore, s.onNVIDIA))
	}
}
