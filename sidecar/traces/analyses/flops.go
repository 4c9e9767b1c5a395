package analyses

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// Floating-point operations by the shapes that record_shapes=True writes, two
// for a multiplication with addition, counted as torch.utils.flop_counter does:
// what an operator calculates whatever the kernel, a causal mask not subtracted.

// shapes are the sizes of an operator's inputs; an input that is no tensor has
// none, and its value, where it was recorded, is in values.
type shapes struct {
	dims   [][]int64
	lists  [][][]int64 // of an input that is a list of tensors; else nil
	values []string
}

// formula counts one operator; ok is false where the shapes are not known.
type formula func(in shapes) (flops float64, ok bool)

// formulas by operator. An operator that calls another one of these leaves the
// counting to it.
var formulas = map[string]formula{
	"aten::mm":                func(in shapes) (float64, bool) { return in.matmul(0, 1, 2) },
	"aten::_scaled_mm":        func(in shapes) (float64, bool) { return in.matmul(0, 1, 2) },
	"aten::addmm":             func(in shapes) (float64, bool) { return in.matmul(1, 2, 2) },
	"aten::bmm":               func(in shapes) (float64, bool) { return in.matmul(0, 1, 3) },
	"aten::baddbmm":           func(in shapes) (float64, bool) { return in.matmul(1, 2, 3) },
	"aten::_int_mm":           func(in shapes) (float64, bool) { return in.matmul(0, 1, 2) },
	"aten::_addmm_activation": func(in shapes) (float64, bool) { return in.matmul(1, 2, 2) },
	"aten::convolution":       convolution, "aten::_convolution": convolution,
	"aten::convolution_backward": convolutionBackward,

	"aten::scaled_dot_product_attention":                         attention,
	"aten::_scaled_dot_product_flash_attention":                  attention,
	"aten::_scaled_dot_product_flash_attention_for_cpu":          attention,
	"aten::_scaled_dot_product_efficient_attention":              attention,
	"aten::_scaled_dot_product_cudnn_attention":                  attention,
	"aten::_scaled_dot_product_fused_attention_overrideable":     attention,
	"aten::_scaled_dot_product_flash_attention_backward":         attentionBackward,
	"aten::_scaled_dot_product_flash_attention_for_cpu_backward": attentionBackward,
	"aten::_scaled_dot_product_efficient_attention_backward":     attentionBackward,
	"aten::_scaled_dot_product_cudnn_attention_backward":         attentionBackward,

	// With lengths before heads; not where several lengths are packed into one.
	"aten::_flash_attention_forward":                attentionByLength(3),
	"aten::_flash_attention_backward":               attentionBackwardByLength(6),
	"aten::_efficient_attention_forward":            attentionByLength(4),
	"aten::_efficient_attention_backward":           attentionBackwardByLength(6),
	"flash_attn::_flash_attn_forward":               attentionByLength(never),
	"flash_attn::_flash_attn_backward":              attentionBackwardByLength(never),
	"flash_attn_3::fwd":                             attentionByLength(never),
	"xformers::efficient_attention_forward_cutlass": attentionByLength(4),
}

// countsFlops reports whether an operator has a formula.
func countsFlops(operator string) bool { return formulas[operator] != nil }

// of is the size of an input, if it has so many dimensions.
func (in shapes) of(input, dims int) ([]int64, bool) {
	if input >= len(in.dims) || len(in.dims[input]) != dims {
		return nil, false
	}
	return in.dims[input], true
}

// matmul of two inputs of two or three dimensions.
func (in shapes) matmul(left, right, dims int) (float64, bool) {
	a, ok1 := in.of(left, dims)
	b, ok2 := in.of(right, dims)
	if !ok1 || !ok2 || a[dims-1] != b[dims-2] {
		return 0, false
	}
	return 2 * product(a) * float64(b[dims-1]), true
}

// convolution(input, weight, bias, stride, padding, dilation, transposed, …).
func convolution(in shapes) (float64, bool) {
	if len(in.dims) < 2 || len(in.dims[0]) < 3 || len(in.dims[0]) != len(in.dims[1]) {
		return 0, false
	}
	input, weight := in.dims[0], in.dims[1]
	places := input[2:]
	if in.value(6) != "True" {
		var ok bool
		if places, ok = convolved(input[2:], weight[2:], in.list(3), in.list(4), in.list(5)); !ok {
			return 0, false
		}
	}
	return 2 * float64(input[0]) * product(weight) * product(places), true
}

// convolved is the size of a convolution's output.
func convolved(input, kernel, stride, padding, dilation []int64) (output []int64, ok bool) {
	n := len(input)
	if len(stride) != n || len(padding) != n || len(dilation) != n {
		return nil, false
	}
	for i := range n {
		if stride[i] <= 0 {
			return nil, false
		}
		size := (input[i]+2*padding[i]-dilation[i]*(kernel[i]-1)-1)/stride[i] + 1
		if size < 0 {
			return nil, false
		}
		output = append(output, size)
	}
	return output, true
}

// convolutionBackward(gradient, input, weight, bias sizes, stride, padding,
// dilation, transposed, output padding, groups, output mask): as much again for
// the input's gradient and for the weight's, where they are asked for.
func convolutionBackward(in shapes) (float64, bool) {
	if len(in.dims) < 3 || len(in.dims[0]) < 3 || len(in.dims[1]) != len(in.dims[0]) || len(in.dims[2]) != len(in.dims[0]) {
		return 0, false
	}
	places := in.dims[0][2:]
	switch in.value(7) {
	case "True":
		places = in.dims[1][2:]
	case "False":
	default:
		return 0, false
	}
	mask := strings.Split(strings.Trim(in.value(10), "[]"), ", ")
	if len(mask) != 3 {
		return 0, false
	}
	once := 2 * float64(in.dims[0][0]) * product(in.dims[2]) * product(places)
	return once * float64(count(mask[0] == "True")+count(mask[1] == "True")), true
}

// attention(query, key, value, …) of [batch, heads, length, size].
func attention(in shapes) (float64, bool) {
	q, k, v, ok := in.heads(0)
	if !ok {
		return 0, false
	}
	scores, weighted := 2*product(q)*float64(k[2]), 2*product(q[:3])*float64(k[2])*float64(v[3])
	return scores + weighted, true
}

// attentionBackward(gradient, query, key, value, …): the scores again, and two
// products for each of what they were made from.
func attentionBackward(in shapes) (float64, bool) {
	q, k, v, ok := in.heads(1)
	if !ok {
		return 0, false
	}
	scores, weighted := 2*product(q)*float64(k[2]), 2*product(q[:3])*float64(k[2])*float64(v[3])
	return 3*scores + 2*weighted, true
}

// heads are query, key and value from an input on.
func (in shapes) heads(first int) (q, k, v []int64, ok bool) {
	q, ok1 := in.of(first, 4)
	k, ok2 := in.of(first+1, 4)
	v, ok3 := in.of(first+2, 4)
	return q, k, v, ok1 && ok2 && ok3
}

func product(sizes []int64) float64 {
	p := 1.0
	for _, n := range sizes {
		p *= float64(n)
	}
	return p
}

// value is an input that is no tensor, as text; "" if it was not recorded.
func (in shapes) value(input int) string {
	if input >= len(in.values) {
		return ""
	}
	return in.values[input]
}

// list is an input such as "[1, 1]"; nil if it is none.
func (in shapes) list(input int) (list []int64) {
	if json.Unmarshal([]byte(in.value(input)), &list) != nil {
		return nil
	}
	return list
}

// parseShapes reads the texts of "Input Dims" and "Concrete Inputs". An element
// that is a list of tensors counts as no tensor.
func parseShapes(dims, concrete string) (in shapes) {
	var elements []json.RawMessage
	if json.Unmarshal([]byte(dims), &elements) != nil {
		return shapes{}
	}
	for _, element := range elements {
		var sizes []int64
		var list [][]int64
		if json.Unmarshal(element, &sizes) != nil || negative(sizes) {
			sizes = nil
			if json.Unmarshal(element, &list) != nil || slices.ContainsFunc(list, negative) {
				list = nil
			}
		}
		in.dims, in.lists = append(in.dims, sizes), append(in.lists, list)
	}
	if json.Unmarshal([]byte(concrete), &in.values) != nil {
		in.values = nil
	}
	return in
}

func negative(sizes []int64) bool {
	return slices.ContainsFunc(sizes, func(n int64) bool { return n < 0 })
}

// parseTypes reads the text of "Input type".
func parseTypes(text string) (types []string) {
	if json.Unmarshal([]byte(text), &types) != nil {
		return nil
	}
	return types
}

// inputsOf are the recorded inputs of an operator.
func inputsOf(o *kineto.Operators, row uint32) kineto.OpInputs {
	at, found := slices.BinarySearchFunc(o.Inputs, row, func(in kineto.OpInputs, row uint32) int { return int(in.Row) - int(row) })
	if !found {
		return kineto.OpInputs{}
	}
	return o.Inputs[at]
}

// flops of each operator of the tree with those it calls: by its formula where
// none that it calls has been counted, else as the profiler recorded them.
func (tree *opTree) flops() []float64 {
	o := &tree.t.Ops
	total := make([]float64, len(tree.rows))
	if len(o.Inputs) == 0 && len(o.Flops) == 0 {
		return total
	}
	type key struct{ name, dims, concrete kineto.Sym }
	known := map[key]float64{}
	for i := len(tree.rows) - 1; i >= 0; i-- { // children come after their parents
		row := tree.rows[i]
		if total[i] == 0 {
			in := inputsOf(o, row)
			k := key{o.Name[row], in.Dims, in.Concrete}
			flops, seen := known[k]
			if !seen {
				if formula := formulas[tree.t.Text(k.name)]; formula != nil && k.dims != 0 {
					flops, _ = formula(parseShapes(tree.t.Text(k.dims), tree.t.Text(k.concrete)))
				}
				known[k] = flops
			}
			if total[i] = flops; flops == 0 {
				total[i] = o.Flops[row]
			}
		}
		if up := tree.parent[i]; up >= 0 {
			total[up] += total[i]
		}
	}
	return total
}
