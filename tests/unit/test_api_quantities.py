from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstqueue.api import errors, quantities

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("resource", "value", "amount"),
    [
        ("cpu", 4, 4_000),
        ("cpu", "4", 4_000),
        ("cpu", "500m", 500),
        ("cpu", 0.5, 500),
        ("cpu", "0.0001", 1),
        ("cpu", "1u", 1),
        ("cpu", "1n", 1),
        ("cpu", "1k", 1_000_000),
        ("memory", "1Ki", 1_024),
        ("memory", "1.5Gi", 1_610_612_736),
        ("memory", "1e3", 1_000),
        ("memory", "1E3", 1_000),
        ("memory", "1.5e3", 1_500),
        ("memory", "1e-3", 1),
        ("memory", "100m", 1),
        ("memory", "1E", 10**18),
        ("memory", 1e9, 10**9),
        ("ephemeral-storage", "1.1", 2),
        ("hugepages-2Mi", "4Mi", 4_194_304),
        (GPU, 8, 8),
        (GPU, "8", 8),
        (GPU, "+8", 8),
        (GPU, "8.0", 8),
        (GPU, "8.", 8),
        (GPU, "8000m", 8),
        (GPU, "1k", 1_000),
        ("pods", "110", 110),
        (GPU, "0", 0),
        (GPU, 0, 0),
        (GPU, 10**18, 10**18),
    ],
)
def test_quantities_are_read_in_the_unit_of_their_resource(resource, value, amount):
    assert quantities.parse(resource, value) == amount


@pytest.mark.parametrize(
    ("resource", "value", "problem"),
    [
        (GPU, "-1", "negative"),
        (GPU, -1, "negative"),
        ("memory", "-0.1", "negative"),
        (GPU, "0.5", "not a whole number of nvidia.com/gpu"),
        (GPU, "500m", "not a whole number of nvidia.com/gpu"),
        (GPU, 1.5, "not a whole number of nvidia.com/gpu"),
        ("memory", "", "no number"),
        ("memory", "Ki", "no number"),
        ("cpu", "m", "no number"),
        ("memory", ".", "no number"),
        ("memory", "1KB", "unknown suffix"),
        ("memory", "1gi", "unknown suffix"),
        ("memory", "1e", "unknown suffix"),
        ("memory", "1 Gi", "not a quantity"),
        ("memory", "1Gi ", "not a quantity"),
        ("memory", "1_000", "not a quantity"),
        ("memory", "0x10", "not a quantity"),
        ("memory", "ten", "not a quantity"),
        ("memory", "٣", "not a quantity"),
        ("memory", "inf", "not a quantity"),
        ("memory", float("nan"), "not a quantity"),
        ("memory", "2E", "too large"),
        ("memory", "1Ei", "too large"),
        ("memory", "1e99", "too large"),
        ("memory", 10**30, "too large"),
        ("cpu", "1.1P", "too large"),
        ("memory", "1e999999999", "too large an exponent"),
        ("memory", "9" * 10_000, "not a quantity"),
        ("memory", None, "not a quantity"),
        ("memory", True, "not a quantity"),
        ("memory", [], "not a quantity"),
    ],
)
def test_what_is_no_quantity_is_refused_with_value_and_remedy(resource, value, problem):
    with pytest.raises(errors.BadValueError, match=problem) as caught:
        quantities.parse(resource, value)
    assert "write" in caught.value.remedy
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1_500, "1500m"),
        ("cpu", 2_000, "2"),
        ("cpu", 0, "0"),
        ("memory", 68_719_476_736, "64Gi"),
        ("memory", 1_500, "1500"),
        ("memory", 1_536, "1536"),
        ("memory", 0, "0"),
        (GPU, 8, "8"),
        (GPU, 2_048, "2048"),
    ],
)
def test_quantities_are_written_as_kubernetes_writes_them(resource, amount, text):
    assert quantities.format(resource, amount) == text


@given(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", "hugepages-1Gi", "pods", GPU]),
    st.integers(0, 10**18),
)
def test_what_is_written_is_read_back(resource, amount):
    assert quantities.parse(resource, quantities.format(resource, amount)) == amount


@given(
    st.integers(0, 10**6),
    st.text("0123456789", max_size=6),
    st.sampled_from(["n", "u", "m", "", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E-2", "e+1"]),
)
def test_bytes_are_rounded_up_and_never_by_more_than_one(whole, fraction, suffix):
    number = Fraction(f"{whole}.{fraction or 0}")
    scale = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 10**3), "": Fraction(1)}
    scale |= {"k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9)}
    scale |= {"Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30)}
    scale |= {"e3": Fraction(1000), "E-2": Fraction(1, 100), "e+1": Fraction(10)}
    exact = number * scale[suffix]
    text = f"{whole}.{fraction}{suffix}" if fraction else f"{whole}{suffix}"
    assert 0 <= quantities.parse("memory", text) - exact < 1
