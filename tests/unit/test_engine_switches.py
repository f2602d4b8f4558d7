"""What each switch of a policy changes, seen in small replays of one node with eight GPUs."""

import pytest

from cases import replays
from cases.replays import HOUR, MINUTE, work
from lstqueue.engine import model, switches
from lstqueue.evaluate import lives, policies

SECOND = 1000


def run(name, works, *, nodes=1, costs=replays.FREE, pass_every=SECOND):
    policy = policies.named(name)
    return replays.run(works, nodes=nodes, costs=costs, policy=policy, pass_every=pass_every)


def starts(ran):
    order = sorted((life.first_start, life.work.key) for life in ran.outcome.lives)
    return [key for _, key in order]


def test_fifo_lets_nobody_pass_and_fifo_skip_whoever_fits():
    works = [work("half", gpus=4), work("whole", at=1, gpus=8), work("small", at=2, gpus=4)]
    assert starts(run("fifo", works)) == ["half", "whole", "small"]
    assert starts(run("fifo-skip", works)) == ["half", "small", "whole"]


def test_easy_lets_pass_who_is_through_before_the_first_could_start():
    works = [
        work("half", gpus=4, runs=HOUR),
        work("whole", at=MINUTE, gpus=8),
        work("long", at=2 * MINUTE, gpus=4, runs=HOUR),
        work("brief", at=3 * MINUTE, gpus=4, runs=50 * MINUTE),
    ]
    ran = run("easy", works)
    assert starts(ran) == ["half", "brief", "whole", "long"]
    assert ran.times("whole", "admitted") == [HOUR]


def test_easy_lets_pass_who_fits_beside_the_first_at_its_start():
    works = [
        work("half", gpus=4, runs=HOUR),
        work("other", gpus=6, runs=3 * HOUR),
        work("wide", at=MINUTE, gpus=6),
        work("beside", at=2 * MINUTE, gpus=2, runs=9 * HOUR),
        work("in-the-way", at=3 * MINUTE, gpus=3, runs=9 * HOUR),
    ]
    ran = run("easy", works, nodes=2)
    assert ran.times("wide", "admitted") == [HOUR]
    assert ran.times("beside", "admitted") == [2 * MINUTE]
    assert ran.times("in-the-way", "admitted")[0] > HOUR


@pytest.mark.parametrize(("name", "first"), [("edf-plain", "late"), ("edf-late-drop", "timely")])
def test_late_jobs_keep_their_place_or_lose_it(name, first):
    works = [
        work("running", runs=HOUR),
        work("late", at=1, runs=2 * HOUR, due=90 * MINUTE),
        work("timely", at=2, due=4 * HOUR),
    ]
    assert starts(run(name, works))[1] == first


def test_edf_preempts_for_an_earlier_deadline_and_not_for_a_later_one():
    works = [
        work("running", runs=5 * HOUR, due=9 * HOUR),
        work("earlier", at=HOUR, due=7 * HOUR),
        work("later", at=HOUR, due=20 * HOUR),
    ]
    ran = run("edf-preempt-late-drop", works)
    assert ran.times("running", "suspended") == [HOUR + SECOND]  # the claim was written before
    assert ran.times("earlier", "admitted") == [HOUR + 2 * SECOND]
    assert ran.life("earlier").preempted == ran.life("later").preempted == 0
    assert run("lst", works).life("running").preempted == 0


def test_late_drop_decides_whether_a_hopeless_job_may_suspend():
    works = [work("running", runs=5 * HOUR, due=9 * HOUR), work("hopeless", at=HOUR, due=30 * MINUTE)]
    assert run("edf-preempt", works).life("running").preempted == 1
    assert run("edf-preempt-late-drop", works).life("running").preempted == 0


def test_naive_lst_has_two_jobs_with_equal_slack_suspend_each_other_again_and_again():
    works = [work("a", runs=HOUR, due=90 * MINUTE), work("b", at=1, runs=HOUR, due=90 * MINUTE)]
    costs = lives.Costs(launch=0, grace=0, termination=0, bind=0, lag=0, saves_on_suspend=True)
    naive, ours = [run(name, works, costs=costs, pass_every=MINUTE) for name in ("naive-lst", "lst")]
    assert sum(life.preempted for life in naive.outcome.lives) > 20
    assert sum(life.preempted for life in ours.outcome.lives) == 0


def test_edzl_puts_a_job_without_slack_before_an_earlier_deadline():
    works = [
        work("early", runs=2 * HOUR, due=5 * HOUR),
        work("tight", at=1, runs=5 * HOUR, due=6 * HOUR),
    ]
    assert run("edf-preempt-late-drop", works).life("early").preempted == 0
    ran = run("edzl", works)
    (suspended,) = ran.times("early", "suspended")
    assert HOUR - 3 * MINUTE <= suspended <= HOUR
    done = ran.done("tight")
    assert done is not None
    assert done <= 6 * HOUR


def test_shortest_first_waits_and_shortest_remaining_suspends():
    works = [work("long", runs=9 * HOUR), work("mid", at=1, runs=2 * HOUR), work("short", at=2, runs=HOUR)]
    assert starts(run("sjf", works)) == ["long", "short", "mid"]
    ran = run("srtf", works)
    assert ran.done("short") < ran.done("mid") < ran.done("long")
    assert ran.life("long").preempted >= 1


def test_importance_suspends_what_is_less_important_and_nothing_else():
    works = [
        work("usual", runs=5 * HOUR),
        work("equal", at=HOUR),
        work("important", at=2 * HOUR, importance=1),
    ]
    ran = run("priority", works)
    assert ran.times("usual", "suspended") == [2 * HOUR + SECOND]
    assert ran.times("equal", "admitted")[0] > 3 * HOUR


def test_least_attained_service_has_who_got_little_before_who_got_much():
    works = [work("much", runs=5 * HOUR), work("new", at=HOUR, runs=HOUR)]
    ran = run("las", works)
    assert ran.times("much", "suspended") == [HOUR + SECOND]
    assert ran.life("much").preempted == 1  # both got much by then, and it came first


def test_policies_differ_from_what_the_operator_does_only_by_what_they_say():
    assert policies.named("lst").configured(model.Config(promising=False)) == model.Config(promising=False)
    assert model.Config().switches == switches.Switches()
    assert policies.named("lst").queued(model.Queue("q")) == model.Queue("q")


@pytest.mark.parametrize("changed", [{"urgent": -1}, {"service_step": 0}])
def test_switches_that_mean_nothing_are_refused(changed):
    (name,) = changed
    with pytest.raises(ValueError, match=f"switches.{name} is"):
        switches.Switches(**changed)


def test_whoever_waits_says_why_under_every_policy():
    works = [work("a", gpus=4), work("b", at=1, gpus=8, due=9 * HOUR), work("c", at=2, gpus=4, runs=9 * HOUR)]
    for policy in policies.ALL:
        assert run(policy.name, works).outcome.stuck is False


def _line_of_two(**more):
    """Four of eight GPUs are left for 1 h; `wide` then waits for all, and `next` for those after it."""
    return [
        work("half", gpus=4, runs=HOUR),
        work("wide", at=MINUTE, gpus=8, runs=HOUR, **more),
        work("next", at=2 * MINUTE, gpus=8, runs=HOUR),
        work("brief", at=3 * MINUTE, gpus=2, runs=50 * MINUTE),
        work("long", at=4 * MINUTE, gpus=2, runs=90 * MINUTE),
    ]


def test_conservative_keeps_the_start_of_everybody_who_waits():
    ran = run("conservative", _line_of_two())
    assert starts(ran) == ["half", "brief", "wide", "next", "long"]
    assert ran.times("next", "admitted") == [2 * HOUR]


def test_conservative_keeps_a_second_start_where_easy_moves_it():
    works = [
        work("running", gpus=16, runs=HOUR),
        work("first", at=MINUTE, gpus=16, runs=HOUR),
        work("second", at=2 * MINUTE, gpus=24, runs=HOUR),
        work("beside", at=3 * MINUTE, gpus=8, runs=9 * HOUR),
    ]
    easy, all_of_them = [run(name, works, nodes=3) for name in ("easy", "conservative")]
    assert easy.times("first", "admitted") == all_of_them.times("first", "admitted") == [HOUR]
    assert all_of_them.times("second", "admitted") == [2 * HOUR]
    assert easy.times("second", "admitted") == [9 * HOUR + 3 * MINUTE]


def test_slack_lets_others_pass_as_far_as_a_deadline_allows():
    late = run("slack-backfill", _line_of_two(due=155 * MINUTE))
    assert late.times("long", "admitted") == [4 * MINUTE]
    assert late.done("wide") <= 156 * MINUTE
    tight = run("slack-backfill", _line_of_two(due=121 * MINUTE))
    assert tight.times("long", "admitted") != [4 * MINUTE]
    assert tight.done("wide") == 2 * HOUR


def test_any_figure_of_a_policy_can_be_another():
    policy = policies.named("edf:shed_weight=1,share_keeps=false,trigger_share=0.2")
    config = policy.configured(model.Config())
    assert (config.shed_weight, config.share_keeps, config.trigger_share) == (1, False, 0.2)
    assert config.order is model.Order.EDF
    assert policy.name == "edf:shed_weight=1,share_keeps=false,trigger_share=0.2"
    assert policies.named("edf").config == {"order": model.Order.EDF}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("best", "'best' is no policy; it must be one of lst, "),
        ("lst:colour=1", "sets 'colour', which is no figure; they are overhead_share, "),
        ("lst:sharing=1", "sets sharing to '1'; it must be true or false"),
        ("lst:shed_weight=two", "sets shed_weight to 'two'; it must be a whole number"),
        ("lst:overhead_share=2", "overhead_share"),
    ],
)
def test_figures_that_cannot_be_are_refused(name, words):
    with pytest.raises(policies.PolicyError, match=words):
        policies.named(name)
