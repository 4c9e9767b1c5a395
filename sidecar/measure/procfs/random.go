package procfs

import "encoding/binary"

const auxRandom = 25 // AT_RANDOM, linux/auxvec.h

// RandomAddress is where a process has the 16 random bytes that the kernel gives a program at
// its exec (AT_RANDOM, getauxval(3)); 0 where that cannot be read.
func (f *FS) RandomAddress(pid int) int64 {
	vector, err := f.Read(f.Path(pid, "auxv"))
	if err != nil {
		return 0
	}
	return randomAddress(vector)
}

func randomAddress(vector []byte) int64 {
	for ; len(vector) >= 16; vector = vector[16:] { // pairs of type and value, 64 bits each
		if binary.NativeEndian.Uint64(vector) == auxRandom {
			return int64(binary.NativeEndian.Uint64(vector[8:]))
		}
	}
	return 0
}
