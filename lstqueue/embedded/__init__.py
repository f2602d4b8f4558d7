"""An in-memory Kubernetes API with controllers and kubelets: a test double (docs/embedded-api.md)."""
