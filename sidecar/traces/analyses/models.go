package analyses

import (
	"slices"
	"strings"
)

// What an operator must compute and move, by its recorded inputs. Bytes are those of the tensors that it reads and writes,
// each once: what goes through caches twice is not counted, so that a rate is what the operator achieved of what it had to.

// Kinds of operators, as TableEfficiency has them.
const (
	KindGEMM        = "gemm"
	KindAttention   = "attention"
	KindConvolution = "convolution"
	KindNorm        = "norm" // softmax, too
	KindElementwise = "elementwise"
	KindReduction   = "reduction"
	KindIndex       = "index" // embeddings, gathers
	KindCopy        = "copy"
	KindOptimizer   = "optimizer"
	KindCommunicate = "communication"
	KindOther       = "other" // without a formula
)

// cost is what a call takes; what is not known is 0.
type cost struct {
	flops, bytes float64
	dtype        string // that it computes in, as the table has it: bf16
}

// inputs of an operator: shapes with types. element is the size of what has no type of its own (lists of tensors), 0 if
// it is not known.
type inputs struct {
	shapes
	types   []string
	element float64
}

// model is a formula with the kind of its operators.
type model struct {
	kind string
	of   func(in inputs) cost
}

// elementSizes are the bytes of a type as the profiler writes it, and what the peaks of a device call it.
var elementSizes = map[string]struct {
	size float64
	name string
}{
	"double": {8, "fp64"}, "float": {4, "fp32"}, "c10::BFloat16": {2, "bf16"}, "c10::Half": {2, "fp16"}, "at::BFloat16": {2, "bf16"}, "at::Half": {2, "fp16"},
	"c10::Float8_e4m3fn": {1, "fp8"}, "c10::Float8_e5m2": {1, "fp8"}, "c10::Float8_e4m3fnuz": {1, "fp8"}, "c10::Float8_e5m2fnuz": {1, "fp8"},
	"long int": {8, "int64"}, "long": {8, "int64"}, "int": {4, "int32"}, "short int": {2, "int16"}, "short": {2, "int16"},
	"signed char": {1, "int8"}, "unsigned char": {1, "uint8"}, "bool": {1, "bool"},
	"c10::complex<float>": {8, ""}, "c10::complex<double>": {16, ""},
}

// typeOf is an input's type, "" if it is not recorded.
func (in inputs) typeOf(input int) string {
	if input < 0 || input >= len(in.types) {
		return ""
	}
	return in.types[input]
}

// dims of an input that is a tensor with a known type.
func (in inputs) tensor(input int) (sizes []int64, element float64) {
	if input >= len(in.dims) || in.dims[input] == nil {
		return nil, 0
	}
	return in.dims[input], elementSizes[in.typeOf(input)].size
}

// size of an input in bytes: of a list of tensors of all of them; 0 if it is not known.
func (in inputs) size(input int) float64 {
	if input < len(in.lists) && in.lists[input] != nil {
		sum := 0.0
		for _, sizes := range in.lists[input] {
			sum += product(sizes)
		}
		return sum * in.element
	}
	if sizes, element := in.tensor(input); sizes != nil {
		return product(sizes) * element
	}
	return 0
}

// sum of inputs in bytes; 0 if one is not known.
func (in inputs) sum(list ...int) (bytes float64) {
	for _, input := range list {
		size := in.size(input)
		if size <= 0 {
			return 0
		}
		bytes += size
	}
	return bytes
}

// isTensor reports whether an input is a tensor with a type; a number that was made one has no dimensions.
func (in inputs) isTensor(input int) bool {
	sizes, element := in.tensor(input)
	return element > 0 && (len(sizes) > 0 || in.typeOf(input) != "double")
}

func (in inputs) dtype(input int) string { return elementSizes[in.typeOf(input)].name }

// matrix is a product's cost: the bytes of its inputs and of its output, in the type of the left one.
func matrix(left, right, dims int, added ...int) func(in inputs) cost {
	return func(in inputs) cost {
		flops, ok := in.matmul(left, right, dims)
		if !ok {
			return cost{}
		}
		c := cost{flops: flops, dtype: in.dtype(left)}
		a, _ := in.of(left, dims)
		b, _ := in.of(right, dims)
		if in.sum(append([]int{left, right}, added...)...) > 0 {
			element := elementSizes[in.typeOf(left)].size
			if len(added) > 0 {
				element = elementSizes[in.typeOf(added[0])].size
			} else if c.dtype == "fp8" || c.dtype == "int8" {
				element *= 2 // of what has an eighth byte in, the output is wider
			}
			out := product(a[:dims-1]) * float64(b[dims-1]) * element
			c.bytes = in.sum(left, right) + out + in.sum(added...)
		}
		return c
	}
}

// grouped is a product of rows with one matrix each of several: [rows, inner] by [groups, inner, columns].
func grouped(in inputs) cost {
	a, ok1 := in.of(0, 2)
	b, ok2 := in.of(1, 3)
	if !ok1 || !ok2 || a[1] != b[1] {
		return cost{}
	}
	flops := 2 * product(a) * float64(b[2])
	c := cost{flops: flops, dtype: in.dtype(0)}
	if in.sum(0, 1) > 0 {
		c.bytes = in.sum(0, 1) + float64(a[0])*float64(b[2])*max(2, elementSizes[in.typeOf(0)].size)
	}
	return c
}

// counted is the cost of a formula that counts operations, with the bytes of some inputs, and of the output as large as one of them.
func counted(count formula, typed int, read []int, like ...int) func(in inputs) cost {
	return func(in inputs) cost {
		flops, ok := count(in.shapes)
		if !ok {
			return cost{}
		}
		c := cost{flops: flops, dtype: in.dtype(typed)}
		if bytes, written := in.sum(read...), in.sum(like...); bytes > 0 && (written > 0 || len(like) == 0) {
			c.bytes = bytes + written
		}
		return c
	}
}

// convolved is what a convolution reads and writes.
func convolutionCost(in inputs) cost {
	flops, ok := convolution(in.shapes)
	if !ok {
		return cost{}
	}
	c := cost{flops: flops, dtype: in.dtype(0)}
	weight := in.dims[1]
	if places := product(weight) * float64(in.dims[0][0]); in.sum(0, 1) > 0 && places > 0 && len(weight) > 2 && in.value(6) != "True" {
		perOutput := 2 * product(weight[1:]) // operations for each element of the output
		c.bytes = in.sum(0, 1) + flops/perOutput*elementSizes[in.typeOf(0)].size
	}
	return c
}

// never is the place of no input.
const never = 1 << 30

// lengthwise gives the inputs of attention with [batch, length, heads, size] as [batch, heads, length, size]; none where
// lengths are packed behind one another, which the input at packed says.
func lengthwise(in shapes, first, packed int) (shapes, bool) {
	if packed < len(in.dims) && len(in.dims[packed]) > 0 {
		return shapes{}, false
	}
	q, k, v, ok := in.heads(first)
	if !ok {
		return shapes{}, false
	}
	turn := func(of []int64) []int64 { return []int64{of[0], of[2], of[1], of[3]} }
	return shapes{dims: [][]int64{turn(q), turn(k), turn(v)}}, true
}

// attentionByLength and its backward pass are of torch's inner operators, flash-attn and xFormers.
func attentionByLength(packed int) formula {
	return func(in shapes) (float64, bool) {
		turned, ok := lengthwise(in, 0, packed)
		if !ok {
			return 0, false
		}
		return attention(turned)
	}
}

func attentionBackwardByLength(packed int) formula {
	return func(in shapes) (float64, bool) {
		turned, ok := lengthwise(in, 1, packed)
		if !ok {
			return 0, false
		}
		turned.dims = slices.Insert(turned.dims, 0, []int64{})
		return attentionBackward(turned)
	}
}

// moved is an operator that is known by the bytes of its inputs alone, each times how often it is read or written as such.
func moved(kind string, times ...float64) model {
	return model{kind, func(in inputs) cost {
		c := cost{dtype: in.dtype(0)}
		for input, n := range times {
			if n == 0 {
				continue
			}
			size := in.size(input)
			if size <= 0 {
				return cost{}
			}
			c.bytes += n * size
		}
		return c
	}}
}

// elementwise reads its tensors and writes one as large as they are together, one operation each.
func elementwise(logical, inPlace bool) func(in inputs) cost {
	return func(in inputs) cost {
		var out []int64
		element, dtype, read := 0.0, "", 0.0
		for input := range in.dims {
			if !in.isTensor(input) {
				continue
			}
			sizes, size := in.tensor(input)
			read += product(sizes) * size
			var ok bool
			if out, ok = broadcast(out, sizes); !ok {
				return cost{}
			}
			if size > element && (len(sizes) > 0 || element == 0) && !(inPlace && element > 0) {
				element, dtype = size, in.dtype(input)
			}
		}
		if element == 0 {
			return cost{}
		}
		if logical {
			element = 1
		}
		return cost{flops: product(out), bytes: read + product(out)*element, dtype: dtype}
	}
}

// broadcast is the shape that two become together.
func broadcast(a, b []int64) ([]int64, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i, n := range b {
		at := len(a) - len(b) + i
		switch {
		case out[at] == n, n == 1:
		case out[at] == 1:
			out[at] = n
		default:
			return nil, false
		}
	}
	return out, true
}

// reduced reads a tensor; what it writes is small beside it.
func reduced(in inputs) cost {
	sizes, element := in.tensor(0)
	if element == 0 {
		return cost{}
	}
	return cost{flops: product(sizes), bytes: product(sizes) * element, dtype: in.dtype(0)}
}

// copied writes the first input and reads the second.
func copied(in inputs) cost { return cost{bytes: in.sum(0, 1), dtype: in.dtype(0)} }

// concatenated reads a list and writes as much.
func concatenated(in inputs) cost { return cost{bytes: 2 * in.size(0)} }

// picked reads and writes a row of the table for each index, and the indices.
func picked(in inputs) cost {
	rows, element := in.tensor(0)
	if len(rows) != 2 || element == 0 || in.size(1) == 0 {
		return cost{}
	}
	indices, _ := in.tensor(1)
	return cost{bytes: 2*product(indices)*float64(rows[1])*element + in.size(1), dtype: in.dtype(0)}
}

// selected is index_select(self, dim, index).
func selected(in inputs) cost {
	rows, element := in.tensor(0)
	if len(rows) == 0 || element == 0 || in.size(2) == 0 || in.value(1) != "0" || rows[0] <= 0 {
		return cost{}
	}
	indices, _ := in.tensor(2)
	return cost{bytes: 2*product(indices)*product(rows[1:])*element + in.size(2), dtype: in.dtype(0)}
}

// lists is an operator on lists of tensors: the first lists are read, some of them are written.
func lists(read, written int) model {
	return model{KindOptimizer, func(in inputs) cost {
		bytes := 0.0
		for input := range read {
			size := in.size(input)
			if size == 0 {
				return cost{}
			}
			bytes += size
			if input == 0 {
				bytes += float64(written) * size
			}
		}
		return cost{bytes: bytes}
	}}
}

// models by operator. An operator without one that is called by an operator with one counts there.
var models = makeModels()

func makeModels() map[string]model {
	m := map[string]model{
		"aten::mm": {KindGEMM, matrix(0, 1, 2)}, "aten::_scaled_mm": {KindGEMM, matrix(0, 1, 2)}, "aten::_int_mm": {KindGEMM, matrix(0, 1, 2)},
		"aten::addmm": {KindGEMM, matrix(1, 2, 2, 0)}, "aten::_addmm_activation": {KindGEMM, matrix(1, 2, 2, 0)},
		"aten::bmm": {KindGEMM, matrix(0, 1, 3)}, "aten::baddbmm": {KindGEMM, matrix(1, 2, 3, 0)},
		"aten::_grouped_mm": {KindGEMM, grouped}, "aten::_scaled_grouped_mm": {KindGEMM, grouped},
		"aten::convolution": {KindConvolution, convolutionCost}, "aten::_convolution": {KindConvolution, convolutionCost},
		"aten::convolution_backward": {KindConvolution, counted(convolutionBackward, 1, []int{0, 1, 2}, 1, 2)},

		"aten::native_layer_norm": moved(KindNorm, 2), "aten::native_group_norm": moved(KindNorm, 2), "aten::_fused_rms_norm": moved(KindNorm, 2),
		"aten::native_layer_norm_backward": moved(KindNorm, 1, 2), "aten::native_group_norm_backward": moved(KindNorm, 1, 2),
		"aten::native_batch_norm": moved(KindNorm, 2), "aten::cudnn_batch_norm": moved(KindNorm, 2), "aten::miopen_batch_norm": moved(KindNorm, 2),
		"aten::native_batch_norm_backward": moved(KindNorm, 1, 2), "aten::cudnn_batch_norm_backward": moved(KindNorm, 1, 2), "aten::miopen_batch_norm_backward": moved(KindNorm, 1, 2),
		"aten::_softmax": moved(KindNorm, 2), "aten::_log_softmax": moved(KindNorm, 2),
		"aten::_softmax_backward_data": moved(KindNorm, 2, 1), "aten::_log_softmax_backward_data": moved(KindNorm, 2, 1),
		"_C::rms_norm": moved(KindNorm, 1, 1), "_C::fused_add_rms_norm": moved(KindNorm, 2, 2), "_C::silu_and_mul": moved(KindElementwise, 1, 1),
		"_C::static_scaled_fp8_quant": moved(KindElementwise, 1, 1), "_C::rotary_embedding": moved(KindElementwise, 0, 2, 2),

		"aten::copy_": {KindCopy, copied}, "aten::cat": {KindCopy, concatenated}, "aten::fill_": moved(KindCopy, 1), "aten::zero_": moved(KindCopy, 1),
		"aten::embedding": {KindIndex, picked}, "aten::index_select": {KindIndex, selected},

		// self, gradients, first and second moments; all but the gradients are written.
		"aten::_fused_adam_": lists(4, 3), "aten::_fused_adamw_": lists(4, 3), "aten::_fused_adagrad_": lists(3, 2),
		"aten::_foreach_add_": lists(2, 1), "aten::_foreach_mul_": lists(1, 1), "aten::_foreach_addcmul_": lists(3, 1), "aten::_foreach_addcdiv_": lists(3, 1), "aten::_foreach_lerp_": lists(2, 1),
	}
	for name, count := range formulas {
		if _, made := m[name]; !made && count != nil {
			m[name] = model{KindAttention, attentionCost(count, strings.HasSuffix(name, "_backward"))}
		}
	}
	for name, logical := range pointwise {
		m["aten::"+name] = model{KindElementwise, elementwise(logical, false)}
		m["aten::"+name+"_"] = model{KindElementwise, elementwise(false, true)}
	}
	for _, name := range []string{"sum", "mean", "max", "min", "amax", "amin", "argmax", "argmin", "all", "any", "prod", "var", "std", "linalg_vector_norm", "topk"} {
		m["aten::"+name] = model{KindReduction, reduced}
	}
	return m
}

// attentionCost reads queries, keys and values and writes as much as queries; the backward pass reads the gradient, too,
// and writes one of each.
func attentionCost(count formula, backward bool) func(in inputs) cost {
	if backward {
		return counted(count, 1, []int{0, 1, 2, 3}, 1, 2, 3)
	}
	return counted(count, 0, []int{0, 1, 2}, 0)
}

// pointwise are operators that compute each element of the output from one of each input; true: the output is a truth value.
var pointwise = map[string]bool{
	"add": false, "sub": false, "mul": false, "div": false, "neg": false, "abs": false, "pow": false, "exp": false, "log": false, "sqrt": false, "rsqrt": false,
	"sin": false, "cos": false, "tanh": false, "sigmoid": false, "relu": false, "gelu": false, "silu": false, "mish": false, "leaky_relu": false, "elu": false, "softplus": false, "hardtanh": false,
	"clamp": false, "clamp_min": false, "clamp_max": false, "maximum": false, "minimum": false, "where": false, "masked_fill": false, "lerp": false, "addcmul": false, "addcdiv": false,
	"reciprocal": false, "erf": false, "sign": false, "floor": false, "ceil": false, "round": false, "bitwise_and": false, "bitwise_or": false, "bitwise_xor": false, "square": false, "rsub": false,
	"threshold_backward": false, "gelu_backward": false, "silu_backward": false, "sigmoid_backward": false, "tanh_backward": false,
	"eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true, "logical_and": true, "logical_or": true, "logical_not": true, "bitwise_not": true, "isnan": true,
}
