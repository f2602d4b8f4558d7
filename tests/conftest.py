"""Settings of every suite."""

import os

import hypothesis

from cases import effort

# Timings belong to benchmarks, hence no deadline. The quick and the thorough tests draw the same examples in
# every run, so that a change is judged by what it changes; HYPOTHESIS_PROFILE=explore looks further, anew
# each time.
hypothesis.settings.register_profile(
    "quick", max_examples=effort.QUICK, derandomize=True, deadline=None, database=None
)
hypothesis.settings.register_profile(
    "thorough", max_examples=effort.QUICK * effort.THOROUGH, derandomize=True, deadline=None, database=None
)
hypothesis.settings.register_profile("explore", max_examples=2000, deadline=None)
hypothesis.settings.load_profile(effort.PROFILE)

# Nobody here trusts the machine's certificate authorities, and reading them takes longer than most tests:
# every new client would do it twice.
os.environ["SSL_CERT_FILE"] = os.environ["SSL_CERT_DIR"] = os.devnull
