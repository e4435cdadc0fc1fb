"""Dates as people say them: tables of what they mean, and of what is not guessed."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from bridle.chat.tasks.date_words import UnclearDate
from bridle.chat.tasks.dates import parse_date

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(
    2026, 3, 25, 14, 30, tzinfo=BERLIN
)  # a Wednesday, four days before the clocks change


def said(text, now=NOW):
    """A day, or a day and a time in the zone of the one who said it."""
    found = parse_date(text, now)
    if found.moment is None:
        return found.day.isoformat()
    local = found.moment.astimezone(now.tzinfo)
    assert local.date() == found.day
    return f"{local:%Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("text", "intent_meant"),
    [
        ("today", "2026-03-25"),
        ("Tomorrow", "2026-03-26"),
        ("tmrw", "2026-03-26"),
        ("the day after tomorrow", "2026-03-27"),
        ("yesterday", "2026-03-24"),
        ("Friday", "2026-03-27"),
        ("by fri.", "2026-03-27"),
        ("this Friday", "2026-03-27"),
        ("next Friday", "2026-04-03"),
        ("Friday next week", "2026-04-03"),
        ("Monday", "2026-03-30"),
        ("next Monday", "2026-03-30"),
        ("last Friday", "2026-03-20"),
        ("in 3 days", "2026-03-28"),
        ("in three days", "2026-03-28"),
        ("3 days from now", "2026-03-28"),
        ("in a week", "2026-04-01"),
        ("a week from Friday", "2026-04-03"),
        ("in 2 weeks", "2026-04-08"),
        ("in a fortnight", "2026-04-08"),
        ("in a month", "2026-04-25"),
        ("in 2 years", "2028-03-25"),
        ("in 3 working days", "2026-03-30"),
        ("2 days ago", "2026-03-23"),
        ("next week", "2026-04-01"),
        ("next month", "2026-04-25"),
        ("this weekend", "2026-03-28"),
        ("next weekend", "2026-04-04"),
        ("end of month", "2026-03-31"),
        ("by the end of the month", "2026-03-31"),
        ("end of next month", "2026-04-30"),
        ("eom", "2026-03-31"),
        ("end of the week", "2026-03-27"),
        ("end of year", "2026-12-31"),
        ("start of next month", "2026-04-01"),
        ("end of day", "2026-03-25"),
        ("EOD tomorrow", "2026-03-26"),
        ("2026-03-29", "2026-03-29"),
        ("29 March", "2026-03-29"),
        ("March 29th", "2026-03-29"),
        ("the 29th of March 2027", "2027-03-29"),
        ("Sunday, March 29", "2026-03-29"),
        ("14.4.", "2026-04-14"),
        ("14.4.2027", "2027-04-14"),
        ("4/14", "2026-04-14"),
        ("14/4/27", "2027-04-14"),
        ("5/5", "2026-05-05"),
        ("the 15th", "2026-04-15"),
        ("the 31st", "2026-03-31"),
        ("٢٠٢٦-٠٣-٢٩", "2026-03-29"),
        ("２０２６-０３-２９", "2026-03-29"),
    ],
)
def test_days_as_people_say_them(text, intent_meant):
    assert said(text) == intent_meant


@pytest.mark.parametrize(
    ("text", "intent_meant"),
    [
        ("next Friday 5pm", "2026-04-03 17:00"),
        ("5pm next Friday", "2026-04-03 17:00"),
        ("next Friday at 5:30 p.m.", "2026-04-03 17:30"),
        ("tomorrow at 17:00", "2026-03-26 17:00"),
        ("tomorrow at 17", "2026-03-26 17:00"),
        ("tomorrow 12am", "2026-03-26 00:00"),
        ("tomorrow 12pm", "2026-03-26 12:00"),
        ("tomorrow at noon", "2026-03-26 12:00"),
        ("tomorrow morning", "2026-03-26 09:00"),
        ("tomorrow at 5 in the afternoon", "2026-03-26 17:00"),
        ("this evening", "2026-03-25 18:00"),
        ("tonight", "2026-03-25 20:00"),
        ("tonight at 9", "2026-03-25 21:00"),
        ("midnight", "2026-03-26 00:00"),
        ("5pm", "2026-03-25 17:00"),
        ("9am", "2026-03-26 09:00"),
        ("in 2 hours", "2026-03-25 16:30"),
        ("in an hour and 15 minutes", "2026-03-25 15:45"),
        ("in half an hour", "2026-03-25 15:00"),
        ("90 minutes from now", "2026-03-25 16:00"),
        ("2026-04-01 09:15", "2026-04-01 09:15"),
        ("2026-04-01T09:15:30", "2026-04-01 09:15"),
        ("2026-04-01T09:15:00Z", "2026-04-01 11:15"),
        ("2026-04-01T09:15+02:00", "2026-04-01 09:15"),
        ("2026-03-31T23:30:00-05:00", "2026-04-01 06:30"),
        ("25 December at noon", "2026-12-25 12:00"),
        ("10am on 3 April", "2026-04-03 10:00"),
    ],
)
def test_times_as_people_say_them(text, intent_meant):
    assert said(text) == intent_meant


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "Try something like"),
        ("whenever", "Try something like"),
        ("soon", "Try something like"),
        ("Friday or Saturday", "more than one day or time. Say one of them."),
        ("5", "Try something like"),
        ("3/4", "'3 April' or '4 March'"),
        ("Wednesday", "'today' or 'next wednesday'"),
        ("this Monday", "'next monday'"),
        ("tomorrow at 5", "'5am' or '5pm'"),
        ("tomorrow midnight", "'00:00' for its start or '23:59'"),
        ("Thursday, March 27", "only one of them"),
        ("2026-02-30", "no such day"),
        ("31 April", "no such day"),
        ("2026-13-01", "no such day"),
        ("29 Feb", "'28 February 2027' or '1 March 2027'"),
        ("29 February 2027", "'28 February 2027' or '1 March 2027'"),
        ("tomorrow 25:00", "'5pm' or '17:00'"),
        ("tomorrow 13pm", "'5pm' or '17:00'"),
        ("in 9999 years", "too far away"),
        ("2026-03-29 02:30", "an hour earlier or later"),
        ("2026-10-25 02:30", "2026-10-25 02:30+02:00 or 2026-10-25 02:30+01:00"),
        ("2026-04-01T25:00Z", "no such day or time"),
        ("tomorrow " * 20, "too long"),
    ],
)
def test_what_could_mean_two_things_is_not_guessed(text, hint):
    with pytest.raises(UnclearDate) as raised:
        parse_date(text, NOW)
    assert hint in raised.value.sentence


def test_a_time_that_is_shown_twice_can_be_said_with_its_offset():
    first = parse_date("2026-10-25 02:30+02:00", NOW).moment
    second = parse_date("2026-10-25 02:30+01:00", NOW).moment
    assert (second - first).total_seconds() == 3600


def test_hours_are_counted_by_the_clock_across_the_change():
    night = datetime(2026, 3, 29, 1, 30, tzinfo=BERLIN)
    assert said("in 1 hour", night) == "2026-03-29 03:30"
    assert said("in 24 hours", night) == "2026-03-30 02:30"
    assert said("in 1 day", night) == "2026-03-30"


@pytest.mark.parametrize(
    ("now", "text", "intent_meant"),
    [
        ((2026, 12, 31, 23, 59), "tomorrow", "2027-01-01"),
        ((2026, 12, 30, 12, 0), "January 2", "2027-01-02"),
        ((2026, 12, 26, 12, 0), "25 December", "2027-12-25"),
        ((2026, 12, 25, 12, 0), "25 December", "2026-12-25"),
        ((2026, 12, 15, 12, 0), "next month", "2027-01-15"),
        ((2026, 12, 15, 12, 0), "end of next month", "2027-01-31"),
        ((2026, 12, 28, 12, 0), "next Friday", "2027-01-08"),
        ((2026, 12, 31, 12, 0), "the 1st", "2027-01-01"),
        ((2026, 1, 31, 12, 0), "in a month", "2026-02-28"),
        ((2028, 1, 31, 12, 0), "in a month", "2028-02-29"),
        ((2028, 2, 29, 12, 0), "in a year", "2029-02-28"),
        ((2028, 2, 29, 12, 0), "in 4 years", "2032-02-29"),
        ((2027, 5, 1, 12, 0), "29 Feb", "2028-02-29"),
        ((2028, 2, 28, 12, 0), "tomorrow", "2028-02-29"),
        ((2026, 4, 1, 12, 0), "the 31st", "2026-05-31"),
        ((2026, 3, 28, 12, 0), "end of the week", "2026-03-29"),
        ((2026, 3, 29, 12, 0), "next Monday", "2026-03-30"),
    ],
)
def test_the_ends_of_months_and_years(now, text, intent_meant):
    assert said(text, datetime(*now, tzinfo=BERLIN)) == intent_meant


def test_today_is_the_day_where_the_user_is():
    moment = datetime(2026, 3, 25, 23, 30, tzinfo=ZoneInfo("UTC"))
    for zone, day in [
        ("America/Los_Angeles", "2026-03-25"),
        ("UTC", "2026-03-25"),
        ("Europe/Berlin", "2026-03-26"),
        ("Pacific/Kiritimati", "2026-03-26"),
    ]:
        assert said("today", moment.astimezone(ZoneInfo(zone))) == day


def test_a_day_that_a_place_left_out_is_still_a_day():
    """Samoa had no 30 December 2011; nobody is due at a time on it."""
    now = datetime(2011, 12, 28, 12, tzinfo=ZoneInfo("Pacific/Apia"))
    with pytest.raises(UnclearDate):
        parse_date("2011-12-30 12:00", now)
