"""An in-memory Kubernetes API with controllers and kubelets: a test double, and it says so (docs/limits.md)."""
