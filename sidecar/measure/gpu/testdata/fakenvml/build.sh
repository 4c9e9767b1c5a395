#!/bin/sh
# Builds the fake NVML library: build.sh OUT.so [-DWITHOUT_<function>=1 …]
set -eu
out=$1
shift
cd "$(dirname "$0")"
exec "${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -fPIC -shared -o "$out" "$@" \
    fakenvml.c script.c activity.c -lpthread -lm
