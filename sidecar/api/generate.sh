#!/bin/sh
# Generates omni_perf.pb.go and omni_perf_grpc.pb.go from omni_perf.proto.
# protoc comes from PyPI's grpcio-tools; the plug-ins are built by Go. All of it
# lies in .cache, nothing is installed.
set -eu
cd "$(dirname "$0")/../.."
tools=$PWD/.cache/protoc
mkdir -p "$tools/bin"
python=${PYTHON:-python3}

[ -d "$tools/grpcio-tools" ] || "$python" -m pip install -q --target "$tools/grpcio-tools" grpcio-tools==1.85.1
[ -x "$tools/bin/protoc-gen-go" ] || # at go.mod's version, which the generated code checks
	go build -o "$tools/bin/protoc-gen-go" google.golang.org/protobuf/cmd/protoc-gen-go
[ -x "$tools/bin/protoc-gen-go-grpc" ] ||
	GOBIN=$tools/bin go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.0

PATH=$tools/bin:$PATH PYTHONPATH=$tools/grpcio-tools "$python" -m grpc_tools.protoc \
	-I sidecar/api --go_out=sidecar/api --go_opt=paths=source_relative \
	--go-grpc_out=sidecar/api --go-grpc_opt=paths=source_relative \
	sidecar/api/omni_perf.proto
