package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// sameToken compares hashes, so that neither content nor length shows in the time it takes.
func sameToken(given, token string) bool {
	got, want := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// authorize lets calls through that carry the token, by their headers alone: of
// others no body is read.
func authorize(token string, log *slog.Logger) tap.ServerInHandle {
	return func(ctx context.Context, call *tap.Info) (context.Context, error) {
		if values := call.Header.Get("authorization"); len(values) == 1 {
			bearer, ok := strings.CutPrefix(values[0], "Bearer ")
			if ok && sameToken(bearer, token) {
				return ctx, nil
			}
		}
		log.Warn("call without token refused", "call", path.Base(call.FullMethodName))
		return nil, status.Error(codes.Unauthenticated, "The call carries no valid token: only the kernel that started this sidecar may use it.")
	}
}

// logCalls writes each call to the log, and makes a sentence of a panic: one call
// is lost, the sidecar and its other recordings are not.
func logCalls(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		start, name := time.Now(), path.Base(info.FullMethod)
		defer func() {
			if p := recover(); p != nil {
				log.Error("panic in a call", "call", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				resp, err = nil, status.Errorf(codes.Internal, "The sidecar failed in %s: %v. This is a bug of omni_perf; the log has more.", name, p)
			}
			if err != nil {
				log.Warn("call failed", "call", name, "took", time.Since(start), "error", err)
				return
			}
			log.Debug("call", "call", name, "took", time.Since(start))
		}()
		return next(ctx, req)
	}
}
