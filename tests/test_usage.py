"""What was used and what it cost (M7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.usage import ExecutionMetrics, Price, Usage, format_cost


def test_vendors_that_count_the_cache_in_and_those_that_do_not_mean_the_same():
    apart = Usage(100, 10, 50, 25)
    within = Usage(175, 10, 50, 25, input_has_cache=True)
    for usage in (apart, within):
        assert (usage.fresh_tokens, usage.context_tokens, usage.total_tokens) == (100, 175, 185)
    price = Price(2.0, 10.0, cache_read=0.2, cache_write=2.5)
    assert price.cost(apart) == price.cost(within) == (200 + 100 + 10 + 62.5) / 1_000_000


def test_a_cache_price_that_is_not_given_is_the_input_price():
    assert Price(2.0, 0.0).cost(Usage(0, 0, 10, 10)) == 40 / 1_000_000
    assert Price(2.0, 0.0, cache_read=0.0).cost(Usage(0, 0, 10)) == 0.0


def test_figures_that_do_not_add_up_are_never_negative():
    assert Usage(5, 0, 10, input_has_cache=True).fresh_tokens == 0


def test_an_unknown_price_is_counted_as_unknown():
    found = ExecutionMetrics().plus(Usage(1, 1), None).plus(Usage(1, 1), 0.0)
    assert (found.cost, found.unpriced, found.invocations) == (0.0, 1, 2)


usages = st.builds(Usage, *[st.integers(0, 10**6)] * 5, st.booleans())
spent = st.lists(st.tuples(usages, st.none() | st.floats(0, 10)), max_size=8)


@given(spent, spent)
def test_sums_and_differences_fit(first, second):
    """Since is what plus added."""
    before = ExecutionMetrics()
    for usage, cost in first:
        before = before.plus(usage, cost)
    now = before
    for usage, cost in second:
        now = now.plus(usage, cost)
    found = now.since(before)
    assert found.total_input_tokens == sum(usage.input_tokens for usage, _ in second)
    assert found.total_output_tokens == sum(usage.output_tokens for usage, _ in second)
    assert found.invocations == len(second)
    assert found.unpriced == sum(cost is None for _, cost in second)
    assert found.cost == pytest.approx(sum(cost or 0.0 for _, cost in second), abs=1e-9)
    assert now.total_tokens == now.total_input_tokens + now.total_output_tokens
    newest = [usage for usage, _ in [*first, *second]][-1:]
    assert now.context_tokens == (newest[0].context_tokens if newest else 0)


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (None, "cost unknown"),
        (0, "$0.00"),
        (1e-6, "under $0.0001"),
        (0.0001, "$0.0001"),
        (0.00031, "$0.00031"),
        (0.0042, "$0.0042"),
        (0.00999, "$0.01"),
        (0.0123, "$0.012"),
        (0.05, "$0.05"),
        (0.0996, "$0.10"),
        (0.14, "$0.14"),
        (0.5, "$0.50"),
        (12.346, "$12.35"),
        (1234.5, "$1,234.50"),
    ],
)
def test_money_is_written_in_one_way(cost, words):
    assert format_cost(cost) == words


def test_what_has_no_known_price_is_said_and_never_shown_as_nothing():
    assert format_cost(0.0, unpriced=1) == "cost unknown"
    assert format_cost(0.5, unpriced=1) == "$0.50 + unknown"


@given(st.floats(0, 1e6))
def test_an_amount_of_money_is_never_off_by_more_than_half_of_what_is_shown(cost):
    text = format_cost(cost)
    if not text.startswith("under"):
        shown = float(text.removeprefix("$").replace(",", ""))
        assert abs(shown - cost) <= max(0.005, cost * 0.05) + 1e-9
        assert len(text.partition(".")[2]) >= 2
