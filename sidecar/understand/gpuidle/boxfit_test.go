package gpuidle

import (
	"math"
	"math/rand"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// The reference tries every way of holding variables at 0 or 1 and solves for
// the others exactly: the best feasible point is the minimum of a convex problem.
func reference(n *normal, prior, ridge []float64) []float64 {
	best, bestValue := []float64(nil), math.Inf(1)
	total := 1
	for range n.k {
		total *= 3
	}
	for code := range total {
		r := make([]float64, n.k)
		var free []int
		for i, c := 0, code; i < n.k; i, c = i+1, c/3 {
			if c%3 == 2 {
				free = append(free, i)
			} else {
				r[i] = float64(c % 3)
			}
		}
		if len(free) > 0 {
			a := mat.NewDense(len(free), len(free), nil)
			b := mat.NewVecDense(len(free), nil)
			for x, i := range free {
				rhs := n.b[i] + ridge[i]*prior[i]
				for j := range n.k {
					rhs -= n.a[i*n.k+j] * r[j]
				}
				b.SetVec(x, rhs)
				for y, j := range free {
					a.Set(x, y, n.a[i*n.k+j])
				}
				a.Set(x, x, a.At(x, x)+ridge[free[x]])
			}
			var solution mat.VecDense
			if solution.SolveVec(a, b) != nil {
				continue
			}
			feasible := true
			for x, i := range free {
				r[i] = solution.AtVec(x)
				feasible = feasible && r[i] >= 0 && r[i] <= 1
			}
			if !feasible {
				continue
			}
		}
		if v := objective(n, r, prior, ridge); v < bestValue {
			best, bestValue = r, v
		}
	}
	return best
}

func objective(n *normal, r, prior, ridge []float64) float64 {
	v := n.residual(r)
	for i := range r {
		v += ridge[i] * (r[i] - prior[i]) * (r[i] - prior[i])
	}
	return v
}

func TestSolveFindsTheMinimum(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for trial := range 200 {
		k := 1 + rng.Intn(6)
		n := newNormal(k)
		for range 2 + rng.Intn(40) {
			var row []entry
			for c := range k {
				if rng.Intn(2) == 0 {
					row = append(row, entry{c, rng.Float64()})
				}
			}
			n.addRow(row, 2*rng.Float64()-0.5, 0.1+rng.Float64()) // out of reach for some
		}
		prior, ridge := naivePrior(n), make([]float64, k)
		for i := range ridge {
			ridge[i] = 1e-3 + rng.Float64()
		}
		got, want := n.solve(prior, ridge), reference(n, prior, ridge)
		gap := objective(n, got, prior, ridge) - objective(n, want, prior, ridge)
		if gap > 1e-6 {
			t.Fatalf("trial %d: %v is %.2g worse than the reference %v", trial, got, gap, want)
		}
		for i := range got {
			if got[i] < 0 || got[i] > 1 {
				t.Fatalf("trial %d: %v leaves [0, 1]", trial, got)
			}
		}
	}
}
