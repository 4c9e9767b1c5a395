"""The one place where the version is written; the build gives it to the Go binary."""

__version__ = "0.1.0"
