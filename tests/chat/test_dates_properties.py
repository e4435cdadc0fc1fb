"""What holds of dates whoever says them, whenever, wherever."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from bridle.chat.tasks.date_words import UnclearDate
from bridle.chat.tasks.dates import parse_date

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
]
MOMENTS = st.builds(
    lambda seconds, zone: (
        datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    ).astimezone(ZoneInfo(zone)),
    st.integers(0, 15 * 365 * 86_400),
    st.sampled_from(ZONES),
)
WORDS = """next this friday in 3 days weeks end month at 5pm 17:00 tomorrow noon the 15th of march
2027 midnight from a 2026-03-29 02:30 3/4 now hours ago 99 9999 year""".split()  # noqa: SIM905
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def tried(text, now):
    try:
        return parse_date(text, now)
    except UnclearDate as error:
        assert error.sentence.endswith((".", "?"))
        return None


@given(text=st.text(max_size=120), now=MOMENTS)
def test_any_text_is_a_date_or_a_sentence(text, now):
    found = tried(text, now)
    assert found is None or found.moment is None or found.moment.tzinfo is UTC


@given(
    words=st.lists(
        st.sampled_from(WORDS),
        max_size=7,
    ),
    now=MOMENTS,
)
def test_words_of_dates_in_any_order_are_a_date_or_a_sentence(words, now):
    tried(" ".join(words), now)


@given(count=st.integers(0, 2000), now=MOMENTS)
def test_in_so_many_days_is_that_many_days_by_the_calendar(count, now):
    assert parse_date(f"in {count} days", now).day == now.date() + timedelta(days=count)


@given(count=st.integers(1, 2000), now=MOMENTS)
def test_in_so_many_hours_is_that_many_hours_by_the_clock(count, now):
    found = parse_date(f"in {count} hours", now)
    assert found.moment - now.astimezone(UTC) == timedelta(hours=count)
    assert found.day == found.moment.astimezone(now.tzinfo).date()


@given(name=st.sampled_from(DAYS), now=MOMENTS)
def test_next_such_day_is_one_of_the_next_week(name, now):
    found = parse_date(f"next {name}", now).day
    week = now.date() - timedelta(days=now.weekday())
    assert found.weekday() == DAYS.index(name)
    assert week + timedelta(days=7) <= found < week + timedelta(days=14)


@given(name=st.sampled_from(DAYS), now=MOMENTS)
def test_a_bare_weekday_is_within_six_days_or_today_which_is_asked_about(name, now):
    found = tried(name, now)
    if found is None:
        assert now.weekday() == DAYS.index(name)
    else:
        assert found.day.weekday() == DAYS.index(name)
        assert 1 <= (found.day - now.date()).days <= 6


@given(day=st.dates(date(1900, 1, 1), date(2999, 12, 31)), now=MOMENTS)
def test_a_written_day_is_that_day_in_every_writing(day, now):
    writings = [
        day.isoformat(),
        f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%b} {day.year}",
    ]
    writings += [f"{day.day}.{day.month}.{day.year}", f"{day:%A} {day.day} {day:%B} {day.year}"]
    assert {parse_date(one, now).day for one in writings} == {day}


@given(
    day=st.dates(date(2020, 1, 1), date(2035, 12, 31)),
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
    now=MOMENTS,
)
def test_a_time_is_read_as_the_clock_shows_it_or_asked_about(day, hour, minute, now):
    found = tried(f"{day} {hour:02}:{minute:02}", now)
    one = datetime(day.year, day.month, day.day, hour, minute, tzinfo=now.tzinfo)
    if found is None:
        assert one.utcoffset() != one.replace(fold=1).utcoffset()  # a gap, or shown twice
    else:
        local = found.moment.astimezone(now.tzinfo)
        assert (local.date(), local.hour, local.minute) == (day, hour, minute)


@given(now=MOMENTS)
def test_the_end_of_the_month_is_followed_by_a_first(now):
    found = parse_date("end of month", now).day
    assert (found + timedelta(days=1)).day == 1
    assert (found.year, found.month) == (now.year, now.month)


@given(
    text=st.sampled_from(["next friday 5pm", "tomorrow", "in 3 days", "in 2 hours"]), now=MOMENTS
)
def test_what_was_understood_can_be_said_again(text, now):
    found = parse_date(text, now)
    assert parse_date(found.to_wire(), now) == found
