"""Settings of every suite."""

import os

import hypothesis

# Timings belong to benchmarks, hence no deadline. The quick tests draw the same examples in every run, so
# that a change is judged by what it changes; HYPOTHESIS_PROFILE=explore looks further, anew each time.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("explore", max_examples=2000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
