import pydantic
import pytest

from lstqueue.api import conditions


def condition(type_=conditions.Type.ADMITTED, status="True", **fields):
    known = {"reason": "Placed", "message": "4 pods on 1 node", "last_transition_time": 1_000}
    return conditions.Condition(type=type_, status=status, **{**known, **fields})


def test_a_new_condition_is_appended():
    first = condition()
    second = condition(conditions.Type.FINISHED)
    assert conditions.put((first,), second) == (first, second)


def test_the_transition_time_stays_while_the_status_does():
    before = (condition(), condition(conditions.Type.SUSPENDED, "False"))
    after = conditions.put(before, condition(message="5 pods on 1 node", last_transition_time=2_000))
    assert after[0].message == "5 pods on 1 node"
    assert after[0].last_transition_time == 1_000
    assert after[1] == before[1]


def test_the_transition_time_moves_with_the_status():
    after = conditions.put((condition(),), condition(status="False", last_transition_time=2_000))
    assert [(item.status, item.last_transition_time) for item in after] == [("False", 2_000)]


def test_the_same_facts_twice_give_the_same_list():
    before = (condition(), condition(conditions.Type.FINISHED, "Unknown"))
    assert conditions.put(before, condition(last_transition_time=9_000)) == before


def test_a_condition_is_found_by_type():
    known = (condition(), condition(conditions.Type.SUSPENDED, "False"))
    assert conditions.get(known, "Admitted") == known[0]
    assert conditions.get(known, "Finished") is None
    assert conditions.is_true(known, conditions.Type.ADMITTED)
    assert not conditions.is_true(known, conditions.Type.SUSPENDED)
    assert not conditions.is_true((), conditions.Type.SUSPENDED)


def test_a_condition_is_written_as_kubernetes_has_it():
    assert condition(observed_generation=3).dump() == {
        "type": "Admitted",
        "status": "True",
        "reason": "Placed",
        "message": "4 pods on 1 node",
        "lastTransitionTime": "1970-01-01T00:00:01Z",
        "observedGeneration": 3,
    }


@pytest.mark.parametrize("reason", ["", "has blanks", "9th", "ends,"])
def test_a_reason_is_one_word_for_programs(reason):
    with pytest.raises(pydantic.ValidationError):
        condition(reason=reason)
