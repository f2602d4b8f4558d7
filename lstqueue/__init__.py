"""lstqueue: an admission queue operator for Kubernetes that knows time.

The package is a set of rooms, one folder each; docs/concepts.md names them and CONTRIBUTING.md says what
may happen in which. Imports go one way and `make check` proves it.
"""

__version__ = "0.1.0"
