package synth

// Names and kinds of what runs on the device.
type kernel struct{ name, kind, category string }

var (
	hostToDevice = kernel{"Memcpy HtoD (Pinned -> Device)", "MEMORY", "gpu_memcpy"}
	deviceToHost = kernel{"Memcpy DtoH (Device -> Pinned)", "MEMORY", "gpu_memcpy"}
	allReduce    = kernel{"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", "COMMUNICATION", "kernel"}
)

// An op and the kernel it launches.
type opKernel struct{ op, kernel string }

var (
	forwardOps = []opKernel{
		{"aten::addmm", "ampere_sgemm_128x64_tn"},
		{"aten::gelu", "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>(int)"},
		{"aten::native_layer_norm", "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)"},
		{"aten::_scaled_dot_product_flash_attention", "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>(Flash_fwd_params)"},
	}
	backwardOps = []opKernel{
		{"aten::mm", "ampere_sgemm_64x64_nn"},
		{"aten::mm", "ampere_sgemm_128x32_nt"},
		{"aten::gelu_backward", "void at::native::vectorized_elementwise_kernel<4, at::native::GeluBackwardCUDAKernelImpl>(int)"},
		{"aten::sum", "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(at::native::ReduceOp<float>)"},
	}
	optimizerOps = []opKernel{
		{"aten::_fused_adam_", "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>()"},
	}
)

// work is one operator with its launch and its device event.
type work struct {
	op, call string
	kernel   kernel
	dur      int64
	bytes    int64 // of copies
	ready    int64 // not to start before
}

// compute picks the i-th kernel of a phase. Now and then the stream stalls on
// another one, which is neither the host's fault nor the queue's.
func (r *rank) compute(i int, ops []opKernel) work {
	o := ops[i%len(ops)]
	w := work{op: o.op, call: "cudaLaunchKernel", kernel: kernel{o.kernel, "COMPUTATION", "kernel"}, dur: r.around(int64(r.cfg.Kernel))}
	if r.random.IntN(64) == 0 {
		w.ready = r.ends[r.on(computeStream)] + r.between(40*us, 120*us)
	}
	return w
}

// on is a stream of the device that work goes to now.
func (r *rank) on(stream int64) streamName { return streamName{r.device, stream} }

// deviceWork runs one operator on the host and its kernel on the compute stream.
func (r *rank) deviceWork(w work) {
	l := r.launch(w.op, w.call)
	begin := max(l.callStart+r.between(2*us, 9*us), r.ends[r.on(computeStream)]+l.queueDelay, w.ready, r.after)
	r.after = 0
	if len(r.totals.Kernels) == 0 {
		begin = l.callStart + 5*us
	}
	r.deviceEvent(computeStream, w.kernel, interval{begin, begin + w.dur}, l, w.bytes)
	if r.current.FirstWork < 0 {
		r.current.FirstWork = begin
	}
}

// launch runs an operator with a runtime call on the host's current thread.
func (r *rank) launch(op, call string) launch {
	r.correlation++
	r.external++
	begin := r.host
	l := launch{correlation: r.correlation, external: r.external, queueDelay: r.between(700, 2*us)}
	l.callStart = begin + r.between(us, 4*us)
	l.callEnd = l.callStart + r.between(2500, 6*us)
	end := l.callEnd + r.between(400, 2*us)
	r.host = end + r.between(us, 3*us)
	r.out.op(op, r.thread, begin, end, l.external)
	r.out.runtime(call, r.thread, l.callStart, l.callEnd, l.correlation, l.external)
	r.totals.Calls[op]++
	return l
}

// launchCollective launches an all-reduce behind what the compute stream has
// run so far and returns when its kernel starts.
func (r *rank) launchCollective(elements int64) int64 {
	r.pending = r.launch("c10d::allreduce_", "cudaLaunchKernelExC")
	r.pending.elements = elements
	return max(r.pending.callStart+r.between(3*us, 9*us), r.ends[r.on(computeStream)]+2*us, r.ends[r.on(commStream)]+r.pending.queueDelay)
}

func (r *rank) endCollective(begin, end int64) {
	at := interval{begin, end}
	r.comm = append(r.comm, at)
	r.deviceEvent(commStream, allReduce, at, r.pending, 0)
}

// deviceEvent writes an event and counts it.
func (r *rank) deviceEvent(stream int64, k kernel, at interval, l launch, bytes int64) {
	r.out.device(k, r.on(stream), at, l, bytes)
	t := &r.totals

	gap := interval{at.start, at.start}
	if last, ok := r.ends[r.on(stream)]; ok {
		gap.start = last
	}
	r.ends[r.on(stream)] = at.end
	r.last = max(r.last, at.end)
	idle := t.Streams[stream]
	before := idle
	switch length := gap.end - gap.start; {
	case length > 0 && l.callStart > gap.start:
		idle.HostWait += length
	case length > 0 && length < 30*us:
		idle.KernelWait += length
	default:
		idle.Other += length
	}
	t.Streams[stream] = idle
	own := t.device(r.device).Streams
	own[stream] = own[stream].plus(idle.minus(before))

	dur := at.end - at.start
	sum, ok := t.Kernels[k.name]
	if !ok {
		sum = KernelTotal{Kind: k.kind, Min: dur}
	}
	sum.Count++
	sum.Sum += dur
	sum.Min, sum.Max = min(sum.Min, dur), max(sum.Max, dur)
	t.Kernels[k.name] = sum

	t.Launches++
	delay := max(0, at.start-l.callEnd)
	t.DelaySum += delay
	t.DelayMax = max(t.DelayMax, delay)

	r.countTime(stream, k, at, gap)
}

// countTime divides the device's time. The compute stream's events follow one
// another, each step's collectives lie between its first and last of them, so
// a gap of the compute stream is idle but for the collectives in it.
func (r *rank) countTime(stream int64, k kernel, at, gap interval) {
	t := &r.totals
	if r.cfg.Devices > 1 {
		r.countDevices(k, at)
		return
	}
	if stream == commStream {
		t.Communication += at.end - at.start
		return
	}
	if r.first < 0 {
		r.first = at.start
	}
	t.Idle += gap.end - gap.start
	for _, c := range r.comm {
		t.Idle -= gap.overlap(c)
	}
	if k.kind == "COMPUTATION" {
		t.Compute += at.end - at.start
		for _, c := range r.comm {
			t.Overlap += at.overlap(c)
		}
	}
	t.KernelTime = at.end - r.first
	t.NonCompute = t.KernelTime - t.Idle - t.Compute
}

// countDevices counts for each of several devices: their only stream's events
// follow one another, and all share the window from the first event to the last.
func (r *rank) countDevices(k kernel, at interval) {
	t := &r.totals
	if r.first < 0 {
		r.first = at.start
	}
	r.first = min(r.first, at.start)
	d := t.device(r.device)
	d.Busy += at.end - at.start
	if k.kind == "COMPUTATION" {
		d.Compute += at.end - at.start
	}
	t.Devices[r.device] = d
	var busy int64
	t.Compute = 0
	for _, d := range t.Devices {
		busy += d.Busy
		t.Compute += d.Compute
	}
	t.KernelTime = int64(len(t.Devices)) * (r.last - r.first)
	t.Idle = t.KernelTime - busy
	t.NonCompute = t.KernelTime - t.Idle - t.Compute
}
