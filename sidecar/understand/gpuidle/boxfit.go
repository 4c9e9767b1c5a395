package gpuidle

import "math"

// normal is a least-squares problem y ≈ X r in the form a solver needs, summed
// up row by row: A = XᵀX, b = Xᵀy.
type normal struct {
	k    int
	a    []float64 // k × k
	b    []float64
	yy   float64 // Σ y²
	rows float64 // Σ weights
}

func newNormal(k int) *normal {
	return &normal{k: k, a: make([]float64, k*k), b: make([]float64, k)}
}

// addRow adds one equation with its nonzero entries.
func (n *normal) addRow(entries []entry, y, weight float64) {
	for _, e := range entries {
		for _, f := range entries {
			n.a[e.column*n.k+f.column] += weight * e.value * f.value
		}
		n.b[e.column] += weight * e.value * y
	}
	n.yy += weight * y * y
	n.rows += weight
}

type entry struct {
	column int
	value  float64
}

// residual returns Σ (y − X r)².
func (n *normal) residual(r []float64) float64 {
	sum := n.yy
	for i := range n.k {
		row := 0.0
		for j := range n.k {
			row += n.a[i*n.k+j] * r[j]
		}
		sum += r[i] * (row - 2*n.b[i])
	}
	return math.Max(sum, 0)
}

// solve minimises Σ (y − X r)² + Σ ridge·(r − prior)² within 0 ≤ r ≤ 1, by
// coordinate descent: every step solves one variable exactly, so the objective
// never grows, and with ridge > 0 it is strictly convex and has one minimum.
func (n *normal) solve(prior, ridge []float64) []float64 {
	r := make([]float64, n.k)
	copy(r, prior)
	for range 5000 {
		moved := 0.0
		for i := range n.k {
			gradient := ridge[i]*prior[i] + n.b[i]
			for j := range n.k {
				if j != i {
					gradient -= n.a[i*n.k+j] * r[j]
				}
			}
			curvature := n.a[i*n.k+i] + ridge[i]
			if curvature <= 0 {
				continue
			}
			next := min(max(gradient/curvature, 0), 1)
			moved = math.Max(moved, math.Abs(next-r[i]))
			r[i] = next
		}
		if moved < 1e-8 {
			break
		}
	}
	return r
}
