"""`evaluate(check)`: another cache, measured as ours is."""

from __future__ import annotations

from smartcache import Request
from smartcache_eval import Settings, Step, evaluate
from smartcache_eval.steps import conversation


def same_words(stored: Request, asked: Request) -> float:
    one, other = (set(request.query.lower().split()) for request in (stored, asked))
    return len(one & other) / len(one | other)


def a_step(text: str, truth: str) -> Step:
    return Step(conversation([], text), truth, text)


STEPS = [a_step("how do I pay", "pay"), a_step("how do I pay now", "pay"), a_step("how do I leave", "leave")]
EVERYTHING = Settings(part="all")


def test_a_check_is_served_from_its_threshold_on() -> None:
    loose = evaluate(same_words, STEPS, settings=EVERYTHING, threshold=0.5).standings["check"].tally
    strict = evaluate(same_words, STEPS, settings=EVERYTHING, threshold=0.75).standings["check"].tally
    assert (loose.hits, loose.wrong) == (2, 1)
    assert (strict.hits, strict.wrong) == (1, 0)


def test_a_check_of_the_last_message_falls_into_the_traps_of_the_workload_that_ships() -> None:
    run = evaluate(same_words, settings=EVERYTHING, threshold=1.0)
    assert run.standings["check"].tally.wrong > 10
    assert run.attainable > 40


def test_a_check_that_knows_the_truth_is_never_wrong() -> None:
    truths = {step.turns: step.truth for step in STEPS}
    knows = evaluate(
        lambda stored, asked: float(truths[stored.turns] == truths[asked.turns]), STEPS, settings=EVERYTHING
    )
    assert knows.standings["check"].tally.wrong == 0
    assert knows.standings["check"].tally.missed == 0


def test_its_result_has_the_form_of_any_run() -> None:
    told = evaluate(same_words, STEPS, settings=EVERYTHING).as_json()
    assert told["requests"] == 3
    assert told["policies"]["check"]["curve"]
