"""Dates in tasks as people write them, through the whole chat: right, or asked about."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from runner_rig import chatting, on_sqlite

from rig import run

NOW = datetime(2026, 11, 16, 14, 30, tzinfo=ZoneInfo("Europe/Berlin"))  # a Monday
ASKED = "Could you provide more details about the date you have in mind?"
RIGHT = [
    ("today", "Mon 16 Nov 2026"),
    ("tomorrow", "Tue 17 Nov 2026"),
    ("TOMORROW!!!", "Tue 17 Nov 2026"),
    ("the day after tomorrow", "Wed 18 Nov 2026"),
    ("day after tomorrow", "Wed 18 Nov 2026"),
    ("yesterday", "Sun 15 Nov 2026"),
    ("tonight", "Mon 16 Nov 2026, 20:00"),
    ("tonight at 9", "Mon 16 Nov 2026, 21:00"),
    ("tonight at 5pm", "Mon 16 Nov 2026, 17:00"),
    ("friday", "Fri 20 Nov 2026"),
    ("fri", "Fri 20 Nov 2026"),
    ("this friday", "Fri 20 Nov 2026"),
    ("next friday", "Fri 27 Nov 2026"),
    ("friday next week", "Fri 27 Nov 2026"),
    ("next monday", "Mon 23 Nov 2026"),
    ("last friday", "Fri 13 Nov 2026"),
    ("at 5pm", "Mon 16 Nov 2026, 17:00"),
    ("at 17", "Mon 16 Nov 2026, 17:00"),
    ("at 17:00", "Mon 16 Nov 2026, 17:00"),
    ("17h", "Mon 16 Nov 2026, 17:00"),
    ("at 09:30", "Tue 17 Nov 2026, 09:30"),
    ("at 10:30", "Tue 17 Nov 2026, 10:30"),
    ("5p", "Mon 16 Nov 2026, 17:00"),
    ("14/4", "Wed 14 Apr 2027"),
    ("4/14/27", "Wed 14 Apr 2027"),
    ("2026-12-24", "Thu 24 Dec 2026"),
    ("2026-12-24 18:30", "Thu 24 Dec 2026, 18:30"),
    ("2026-12-24T18:30", "Thu 24 Dec 2026, 18:30"),
    ("24 December at 18:30", "Thu 24 Dec 2026, 18:30"),
    ("18:30 24 December", "Thu 24 Dec 2026, 18:30"),
    ("on 24 December 2027", "Fri 24 Dec 2027"),
    ("December 24th", "Thu 24 Dec 2026"),
    ("24th of December", "Thu 24 Dec 2026"),
    ("dec 24", "Thu 24 Dec 2026"),
    ("Dec. 24", "Thu 24 Dec 2026"),
    ("24-Dec-2026", "Thu 24 Dec 2026"),
    ("on the 24th", "Tue 24 Nov 2026"),
    ("the 24th", "Tue 24 Nov 2026"),
    ("first of next month", "Tue 1 Dec 2026"),
    ("on the first of next month", "Tue 1 Dec 2026"),
    ("for the first of next month", "Tue 1 Dec 2026"),
    ("the first of December", "Tue 1 Dec 2026"),
    ("December first", "Tue 1 Dec 2026"),
    ("on the first", "Tue 1 Dec 2026"),
    ("end of month", "Mon 30 Nov 2026"),
    ("by end of the month", "Mon 30 Nov 2026"),
    ("at the end of next month", "Thu 31 Dec 2026"),
    ("last day of the month", "Mon 30 Nov 2026"),
    ("start of next month", "Tue 1 Dec 2026"),
    ("eom", "Mon 30 Nov 2026"),
    ("first monday of next month", "Mon 7 Dec 2026"),
    ("the last friday of the month", "Fri 27 Nov 2026"),
    ("last friday in november", "Fri 27 Nov 2026"),
    ("tomorrow at half past 3 pm", "Tue 17 Nov 2026, 15:30"),
    ("tomorrow at quarter to nine in the morning", "Tue 17 Nov 2026, 08:45"),
    ("twenty past four tomorrow afternoon", "Tue 17 Nov 2026, 16:20"),
    ("at noon", "Tue 17 Nov 2026, 12:00"),
    ("at midnight", "Tue 17 Nov 2026, 00:00"),
    ("by EOD", "Mon 16 Nov 2026"),
    ("eod friday", "Fri 20 Nov 2026"),
    ("end of day", "Mon 16 Nov 2026"),
    ("in 3 days", "Thu 19 Nov 2026"),
    ("in three days", "Thu 19 Nov 2026"),
    ("in a couple of days", "Wed 18 Nov 2026"),
    ("in 2 hours", "Mon 16 Nov 2026, 16:30"),
    ("in half an hour", "Mon 16 Nov 2026, 15:00"),
    ("in 2 weeks", "Mon 30 Nov 2026"),
    ("in two weeks' time", "Mon 30 Nov 2026"),
    ("3 days from now", "Thu 19 Nov 2026"),
    ("a week from friday", "Fri 27 Nov 2026"),
    ("in 2 working days", "Wed 18 Nov 2026"),
    ("next week", "Mon 23 Nov 2026"),
    ("next month", "Wed 16 Dec 2026"),
    ("this weekend", "Sat 21 Nov 2026"),
    ("at the weekend", "Sat 21 Nov 2026"),
    ("next weekend", "Sat 28 Nov 2026"),
    ("end of the week", "Fri 20 Nov 2026"),
    ("on christmas", "Fri 25 Dec 2026"),
    ("on christmas eve at 6pm", "Thu 24 Dec 2026, 18:00"),
    ("on new year's eve", "Thu 31 Dec 2026"),
    ("on boxing day", "Sat 26 Dec 2026"),
    ("on valentine's day", "Sun 14 Feb 2027"),
    ("before christmas", "Fri 25 Dec 2026"),
    ("29 March 2027 at 02:30", "Mon 29 Mar 2027, 02:30"),
    ("25 Oct 2027 at 2:30 am", "Mon 25 Oct 2027, 02:30"),
    ("at 5pm tomorrow", "Tue 17 Nov 2026, 17:00"),
    ("later today", "Mon 16 Nov 2026"),
    ("first thing tomorrow", "Tue 17 Nov 2026, 09:00"),
    ("tomorrow first thing in the morning", "Tue 17 Nov 2026, 09:00"),
    ("on Friday, 20 November", "Fri 20 Nov 2026"),
    ("friday 20 nov 3pm", "Fri 20 Nov 2026, 15:00"),
    ("noon tomorrow", "Tue 17 Nov 2026, 12:00"),
    ("in the morning", "Tue 17 Nov 2026, 09:00"),
    ("this evening", "Mon 16 Nov 2026, 18:00"),
    ("friday night", "Fri 20 Nov 2026, 20:00"),
    ("at night on friday", "Fri 20 Nov 2026, 20:00"),
    ("wednsday", "Wed 18 Nov 2026"),
    ("2 days ago", "Sat 14 Nov 2026"),
    ("on the twenty-first", "Sat 21 Nov 2026"),
    ("twenty first of december", "Mon 21 Dec 2026"),
    ("end of march", "Wed 31 Mar 2027"),
    ("friday morning at 9", "Fri 20 Nov 2026, 09:00"),
    ("at 9 friday morning", "Fri 20 Nov 2026, 09:00"),
    ("9 in the morning", "Tue 17 Nov 2026, 09:00"),
    ("sunday at 7:30pm", "Sun 22 Nov 2026, 19:30"),
    ("sunday 7.30pm", "Sun 22 Nov 2026, 19:30"),
    ("15 o'clock", "Mon 16 Nov 2026, 15:00"),
    ("fourth of july", "Sun 4 Jul 2027"),
    ("4 july", "Sun 4 Jul 2027"),
    ("july 4th at noon", "Sun 4 Jul 2027, 12:00"),
    ("in a fortnight", "Mon 30 Nov 2026"),
    ("in a month", "Wed 16 Dec 2026"),
    ("in one week", "Mon 23 Nov 2026"),
    ("next year", "Tue 16 Nov 2027"),
    ("by the end of next year", "Fri 31 Dec 2027"),
    ("on 1 jan", "Fri 1 Jan 2027"),
    ("on 31.12.", "Thu 31 Dec 2026"),
    ("31.12.2026", "Thu 31 Dec 2026"),
    ("12/25", "Fri 25 Dec 2026"),
    ("tomorrow evening at 8", "Tue 17 Nov 2026, 20:00"),
    ("the day after christmas", "Sat 26 Dec 2026"),
    ("today at noon", "Mon 16 Nov 2026, 12:00"),
    ("today at 8am", "Mon 16 Nov 2026, 08:00"),
    ("8am", "Tue 17 Nov 2026, 08:00"),
    ("at 6pm", "Mon 16 Nov 2026, 18:00"),
    ("on tuesday", "Tue 17 Nov 2026"),
    ("wed", "Wed 18 Nov 2026"),
    ("thurs", "Thu 19 Nov 2026"),
    ("this thursday", "Thu 19 Nov 2026"),
    ("coming saturday", "Sat 21 Nov 2026"),
    ("this coming saturday", "Sat 21 Nov 2026"),
    ("this monday", "Mon 16 Nov 2026"),
    ("on sunday evening", "Sun 22 Nov 2026, 18:00"),
    ("sunday 11am", "Sun 22 Nov 2026, 11:00"),
    ("by tuesday noon", "Tue 17 Nov 2026, 12:00"),
    ("before thursday 17:30", "Thu 19 Nov 2026, 17:30"),
    ("until friday", "Fri 20 Nov 2026"),
    ("tomorrow 9am", "Tue 17 Nov 2026, 09:00"),
    ("tomorrow at 9 a.m.", "Tue 17 Nov 2026, 09:00"),
    ("tomorrow at 9:15 pm", "Tue 17 Nov 2026, 21:15"),
    ("tomorrow @ 5pm", "Tue 17 Nov 2026, 17:00"),
    ("tomorrow by 5pm", "Tue 17 Nov 2026, 17:00"),
    ("around 5pm tomorrow", "Tue 17 Nov 2026, 17:00"),
    ("at about noon tomorrow", "Tue 17 Nov 2026, 12:00"),
    ("tomorrow 12:30", "Tue 17 Nov 2026, 12:30"),
    ("tomorrow 00:30", "Tue 17 Nov 2026, 00:30"),
    ("tomorrow at 9 in the evening", "Tue 17 Nov 2026, 21:00"),
    ("tomorrow afternoon", "Tue 17 Nov 2026, 15:00"),
    ("tomorrow night", "Tue 17 Nov 2026, 20:00"),
    ("tomorrow night at 11", "Tue 17 Nov 2026, 23:00"),
    ("this afternoon", "Mon 16 Nov 2026, 15:00"),
    ("this morning", "Mon 16 Nov 2026, 09:00"),
    ("half past seven in the evening", "Mon 16 Nov 2026, 19:30"),
    ("at ten to six pm tomorrow", "Tue 17 Nov 2026, 17:50"),
    ("tomorrow at ten past noon", "Tue 17 Nov 2026, 12:10"),
    ("tomorrow at quarter past 15", "Tue 17 Nov 2026, 15:15"),
    ("in 1 day", "Tue 17 Nov 2026"),
    ("in ten days", "Thu 26 Nov 2026"),
    ("in 10 minutes", "Mon 16 Nov 2026, 14:40"),
    ("in 45 min", "Mon 16 Nov 2026, 15:15"),
    ("in 1h", "Mon 16 Nov 2026, 15:30"),
    ("in an hour", "Mon 16 Nov 2026, 15:30"),
    ("an hour from now", "Mon 16 Nov 2026, 15:30"),
    ("within 2 days", "Wed 18 Nov 2026"),
    ("in 6 weeks", "Mon 28 Dec 2026"),
    ("in six months", "Sun 16 May 2027"),
    ("in a year", "Tue 16 Nov 2027"),
    ("in twenty-one days", "Mon 7 Dec 2026"),
    ("2 weeks from tomorrow", "Tue 1 Dec 2026"),
    ("3 days after friday", "Mon 23 Nov 2026"),
    ("3 days after christmas", "Mon 28 Dec 2026"),
    ("5 days later", "Sat 21 Nov 2026"),
    ("in 3 business days", "Thu 19 Nov 2026"),
    ("on 1 December", "Tue 1 Dec 2026"),
    ("1st December", "Tue 1 Dec 2026"),
    ("1 Dec 2026", "Tue 1 Dec 2026"),
    ("december 1", "Tue 1 Dec 2026"),
    ("December 1, 2026", "Tue 1 Dec 2026"),
    ("Dec 1st, 3pm", "Tue 1 Dec 2026, 15:00"),
    ("the 1st of December at 15:00", "Tue 1 Dec 2026, 15:00"),
    ("on the 2nd of december", "Wed 2 Dec 2026"),
    ("on december the second", "Wed 2 Dec 2026"),
    ("15 november", "Mon 15 Nov 2027"),
    ("16 november", "Mon 16 Nov 2026"),
    ("17 november", "Tue 17 Nov 2026"),
    ("24 december 2020", "Thu 24 Dec 2020"),
    ("31 december", "Thu 31 Dec 2026"),
    ("2026/12/01", "Tue 1 Dec 2026"),
    ("2026-12-01 at 9pm", "Tue 1 Dec 2026, 21:00"),
    ("2026-12-01T09:00:00Z", "Tue 1 Dec 2026, 10:00"),
    ("13/12", "Sun 13 Dec 2026"),
    ("12/13/2026", "Sun 13 Dec 2026"),
    ("5/5", "Wed 5 May 2027"),
    ("01.12.2026", "Tue 1 Dec 2026"),
    ("on 1.12.", "Tue 1 Dec 2026"),
    ("1.12.2026 15:00", "Tue 1 Dec 2026, 15:00"),
    ("on the 5th", "Sat 5 Dec 2026"),
    ("by the 31st", "Thu 31 Dec 2026"),
    ("on the 16th", "Mon 16 Nov 2026"),
    ("on the 5th of next month", "Sat 5 Dec 2026"),
    ("on the 31st of next month", "Thu 31 Dec 2026"),
    ("the 30th of this month", "Mon 30 Nov 2026"),
    ("20th at 3pm", "Fri 20 Nov 2026, 15:00"),
    ("friday 20th", "Fri 20 Nov 2026"),
    ("second tuesday of december", "Tue 8 Dec 2026"),
    ("the 2nd tuesday of next month", "Tue 8 Dec 2026"),
    ("last monday of the month", "Mon 30 Nov 2026"),
    ("last day of february", "Sun 28 Feb 2027"),
    ("first day of next month", "Tue 1 Dec 2026"),
    ("beginning of next week", "Mon 23 Nov 2026"),
    ("start of next year", "Fri 1 Jan 2027"),
    ("end of next week", "Fri 27 Nov 2026"),
    ("end of the year", "Thu 31 Dec 2026"),
    ("eoy", "Thu 31 Dec 2026"),
    ("end of december", "Thu 31 Dec 2026"),
    ("end of tomorrow", "Tue 17 Nov 2026"),
    ("cob tomorrow", "Tue 17 Nov 2026"),
    ("by the weekend", "Sat 21 Nov 2026"),
    ("over the weekend", "Sat 21 Nov 2026"),
    ("on christmas day", "Fri 25 Dec 2026"),
    ("on xmas", "Fri 25 Dec 2026"),
    ("on new year's day", "Fri 1 Jan 2027"),
    ("on halloween", "Sun 31 Oct 2027"),
    ("on christmas 2027", "Sat 25 Dec 2027"),
    ("now", "Mon 16 Nov 2026"),
    ("on 29 february 2028", "Tue 29 Feb 2028"),
    ("on 28 march 2027 at 03:30", "Sun 28 Mar 2027, 03:30"),
    ("Friday at Noon", "Fri 20 Nov 2026, 12:00"),
    ("FRIDAY AT 5PM", "Fri 20 Nov 2026, 17:00"),
    ("today!", "Mon 16 Nov 2026"),
    (", tomorrow.", "Tue 17 Nov 2026"),
    ("(tomorrow)", "Tue 17 Nov 2026"),
    ("- tomorrow", "Tue 17 Nov 2026"),
    ("due: tomorrow", "Tue 17 Nov 2026"),
    (", due on the day after tomorrow at 9am", "Wed 18 Nov 2026, 09:00"),
    ("by tomorrow please", "Tue 17 Nov 2026"),
    ("on Friday please", "Fri 20 Nov 2026"),
    ("tomorrow to my list", "Tue 17 Nov 2026"),
    ("2morrow", "Tue 17 Nov 2026"),
    ("tonite", "Mon 16 Nov 2026, 20:00"),
    ("no later than friday", "Fri 20 Nov 2026"),
    ("by friday at the latest", "Fri 20 Nov 2026"),
    ("tomorrow, if possible", "Tue 17 Nov 2026"),
    ("maybe tomorrow", "Tue 17 Nov 2026"),
    ("tomorrow or so", "Tue 17 Nov 2026"),
]
ASK = [
    "monday",
    "on monday",
    "friday at 5",
    "at 5",
    "at five",
    "at 9:30",
    "3/4",
    "by 3/4",
    "first monday of the month",
    "quarter to nine tomorrow",
    "tomorrow at quarter to nine",
    "tomorrow at half past 3",
    "tomorrow at midnight",
    "in a few days",
    "in an hour and a half",
    "a week on friday",
    "this week",
    "sometime next week",
    "early next week",
    "on easter monday",
    "on thanksgiving",
    "every monday",
    "on mondays",
    "daily",
    "every other day",
    "each morning",
    "friday or saturday",
    "from friday to sunday",
    "3-5pm tomorrow",
    "between 3 and 5 tomorrow",
    "from 3 to 5pm tomorrow",
    "tomorrow from 3pm to 5pm",
    "in march",
    "by may",
    "on 30 February",
    "on 29 feb",
    "2027-03-28 02:30",
    "2026-10-25 02:30",
    "later",
    "soon",
    "asap",
    "on Thursday, March 27",
    "5 tomorrow",
    "at 12",
    "tonight at 12",
    "the 5th of this month",
    "in 2027",
    "end of Q1",
    "next quarter",
    "mid december",
    "middle of next week",
    "at 3 o'clock",
    "a week tomorrow",
    "at 25:00",
    "on 32 december",
    "tomorrow between 8 and 9",
    "mon-fri",
    "monday to friday",
    "24-26 December",
    "in 3 mondays",
    "two weeks before christmas",
    "the day before christmas",
    "tomorrow at 9",
    "tomorrow @5",
    "tomorrow 0900",
    "tomorrow 24:00",
    "tomorrow 17.30",
    "tomorrow at 9 in the afternoon",
    "tomorrow at 17:00 in the morning",
    "tomorrow at 5am in the evening",
    "tomorrow night at 1",
    "tomorrow at 5 past 3",
    "tomorrow at nine thirty",
    "tomorrow at quarter to 12 pm",
    "tomorrow at half nine",
    "tomorrow from five to nine",
    "tomorrow 5 to 7",
    "tomorrow 9-10am",
    "sat or sun",
    "tomorrow or friday",
    "today and tomorrow",
    "between monday and wednesday",
    "1-3 December",
    "within the next 2 days",
    "in several days",
    "in 1.5 hours",
    "1 Dec 26",
    "31 november",
    "2026-11-31",
    "on 1/12",
    "13/13",
    "friday the 21st",
    "beginning of the month",
    "end of business friday",
    "on good friday",
    "at easter",
    "on labour day",
    "on mother's day",
    "on independence day",
    "on diwali",
    "on black friday",
    "every day",
    "every friday at 5pm",
    "weekly",
    "monthly",
    "each month",
    "every 2 weeks",
    "on weekdays",
    "fridays",
    "every first monday of the month",
    "tomorrow tomorrow",
    "monday tuesday",
    "tomorrow at 5pm or 6pm",
    "in january",
    "next december",
    "late december",
    "this month",
    "later this week",
    "on the 29th of february",
    "on 28 march 2027 at 02:30",
    "on 31 october 2027 at 02:30",
    "on 31 october 2027 at 2:30am",
    "not tomorrow",
    "not before friday",
    "starting friday",
    "as of friday",
    "the week after next",
    "friday after next",
    "in 2 and a half hours",
    "in 2wks",
    "in 3 mths",
    "within the hour",
    "at 1730",
    "the last of the month",
    "once a week",
    "twice a day",
    "quarterly",
    "nightly",
]


def added(title="call Bob"):
    return f"Got it! Added '{title}' to your list. Anything else?"


def replies(database, messages):
    """What is answered to each message, in a conversation of its own."""

    async def told():
        async with chatting(database) as chat:
            return [
                await chat.say(message, conversation=f"c{place}", now=NOW, timezone="Europe/Berlin")
                for place, message in enumerate(messages)
            ]

    return run(told())


@on_sqlite
def test_a_date_that_is_clear_is_said_back_and_leaves_the_title(database):
    """T5: the reply as it always was, and then the date that was understood."""
    said = replies(database, [f"add call Bob {phrase}" for phrase, _ in RIGHT])
    wrong = {
        phrase: reply
        for (phrase, date), reply in zip(RIGHT, said, strict=True)
        if reply != f"{added()} Due {date}."
    }
    assert wrong == {}
    assert len(RIGHT) + len(ASK) >= 200


@on_sqlite
def test_a_date_that_is_unclear_is_asked_about_and_nothing_is_added(database):
    """T5: a date that could be two is asked about with what to say instead."""
    said = replies(database, [*(f"add call Bob {phrase}" for phrase in ASK), "list"])
    wrong = {
        phrase: reply
        for phrase, reply in zip(ASK, said[:-1], strict=True)
        if not reply.startswith(ASKED)
    }
    assert wrong == {}
    assert said[-1] == "Your list is empty. Tell me what to add."
    reasons = dict(zip(ASK, said, strict=False))
    assert reasons["friday at 5"].endswith("could be morning or evening. Say '5am' or '5pm'.")
    assert reasons["3/4"].endswith("could be two different days. Say '3 April' or '4 March'.")
    assert reasons["monday"].endswith("Say 'today' or 'next monday'.")
    assert reasons["every monday"].endswith("Say when it is due next, such as 'next Monday'.")


@on_sqlite
@pytest.mark.parametrize(
    ("message", "title", "then"),
    [
        ("add tomorrow call Bob", "call Bob", "Due Tue 17 Nov 2026."),
        ("add on friday call Bob", "call Bob", "Due Fri 20 Nov 2026."),
        ("add friday: call Bob", "call Bob", "Due Fri 20 Nov 2026."),
        ("add at 5pm call Bob tomorrow", "call Bob", "Due Tue 17 Nov 2026, 17:00."),
        ("add call Bob tomorrow about rent", "call Bob about rent", "Due Tue 17 Nov 2026."),
        ("add see Dr. Lee on 24 December at 18:30 with Ann", "see Dr. Lee with Ann",
         "Due Thu 24 Dec 2026, 18:30."),
        ("add a table for two on friday at noon", "table for two", "Due Fri 20 Nov 2026, 12:00."),
        ("add read chapter 5 tomorrow", "read chapter 5", "Due Tue 17 Nov 2026."),
        ("add read 1984 tomorrow", "read 1984", "Due Tue 17 Nov 2026."),
        ("add pay 300 by the 24th", "pay 300", "Due Tue 24 Nov 2026."),
        ("add call 0171 2345 at 5pm", "call 0171 2345", "Due Mon 16 Nov 2026, 17:00."),
        ("add lend Bob 50 until friday", "lend Bob 50", "Due Fri 20 Nov 2026."),
        ("remind me on friday at 5pm to call Bob", "call Bob", "Due Fri 20 Nov 2026, 17:00."),
        ("remind me to call Bob the day after tomorrow", "call Bob", "Due Wed 18 Nov 2026."),
        ("remind me friday to call Bob", "call Bob", "Due Fri 20 Nov 2026."),
        ("I need to pay rent by the 1st", "pay rent", "Due Tue 1 Dec 2026."),
        ("call the bank tomorrow", "call the bank", "Due Tue 17 Nov 2026."),
        ("add call mother on friday", "call mother", "Due Fri 20 Nov 2026."),
        ("add buy something new tomorrow", "buy something new", "Due Tue 17 Nov 2026."),
        ('add call "Bob" tomorrow', 'call "Bob"', "Due Tue 17 Nov 2026."),
    ],
)  # fmt: skip
def test_a_date_is_found_wherever_it_stands(database, message, title, then):
    assert replies(database, [message]) == [f"{added(title)} {then}"]


@on_sqlite
@pytest.mark.parametrize(
    "title",
    [
        "enjoy the sun", "support 24/7", "read pages 3-4", "mix 1/2 cup of flour", "call May",
        "fast for 3 days", "look at 5 houses", "buy a Christmas tree", "prepare for christmas",
        "wait a second", "read chapter 5", "buy 2 tomatoes", "fix the 24h bug", "'friday report'",
        '"call Bob tomorrow"',
    ],
)  # fmt: skip
def test_words_that_only_look_like_a_date_stay_in_the_title(database, title):
    assert replies(database, [f"add {title}"]) == [added(title.strip("'\""))]


@on_sqlite
@pytest.mark.parametrize(
    "title",
    [
        "friday report", "buy the monday newspaper", "upgrade to python 3.12",
        "plan new year's eve", "call Bob after lunch", "call Bob at 23.59",
    ],
)  # fmt: skip
def test_a_title_that_names_a_day_says_that_no_date_was_set(database, title):
    assert replies(database, [f"add {title}"]) == [f"{added(title)} No due date was set."]


def conversation(database, *messages):
    async def told():
        async with chatting(database) as chat:
            return [
                await chat.say(message, now=NOW, timezone="Europe/Berlin") for message in messages
            ]

    return run(told())


@on_sqlite
@pytest.mark.parametrize(
    ("message", "answers", "then"),
    [
        ("add call Bob friday at 5", ["5pm"], "Due Fri 20 Nov 2026, 17:00."),
        ("add call Bob friday at 5", ["pm"], "Due Fri 20 Nov 2026, 17:00."),
        ("add call Bob friday at 5", ["in the evening"], "Due Fri 20 Nov 2026, 17:00."),
        ("add call Bob friday at 5", ["5", "5am!"], "Due Fri 20 Nov 2026, 05:00."),
        ("add call Bob 3/4 at noon", ["3 April"], "Due Sat 3 Apr 2027, 12:00."),
        ("add call Bob monday at 9am", ["next monday"], "Due Mon 23 Nov 2026, 09:00."),
        ("add call Bob every monday", ["tomorrow at 8", "8am"], "Due Tue 17 Nov 2026, 08:00."),
        ("add call Bob soon", ["in 3 days"], "Due Thu 19 Nov 2026."),
        ("call Bob at 4", ["pm"], "Due Mon 16 Nov 2026, 16:00."),
    ],
)
def test_the_answer_to_the_question_for_a_date_completes_the_task(database, message, answers, then):
    said = conversation(database, message, *answers)
    assert all(reply.startswith(ASKED) for reply in said[:-1])
    assert said[-1] == f"{added()} {then}"


@on_sqlite
def test_a_change_of_a_date_is_asked_about_and_completed(database):
    said = conversation(database, "add call Bob", "move call Bob to friday at 5", "17:00", "list")
    assert said[1].startswith(ASKED)
    assert said[2] == "Updated! 'call Bob' now has a due date of Fri 20 Nov 2026 at 17:00."
    assert said[3] == "1. ☐ call Bob (due Fri 20 Nov 2026 at 17:00)"


@on_sqlite
def test_it_means_a_task_by_its_new_title(database):
    said = conversation(
        database, "add call Bob", "rename call Bob to visit Bob", "move it to friday", "list"
    )
    assert said[2:] == [
        "Updated! 'visit Bob' now has a due date of Fri 20 Nov 2026.",
        "1. ☐ visit Bob (due Fri 20 Nov 2026)",
    ]


@on_sqlite
@pytest.mark.parametrize("title", ["Dr. House", "Ask O'Neill", "James' old car", "7 p.m. news"])
def test_it_means_a_task_whose_new_title_has_a_full_stop_or_a_quote(database, title):
    said = conversation(database, "add walk", f"rename walk to {title}", "complete it", "reopen it")
    assert said[1:] == [
        f"Updated! 'walk' now has the title '{title}'.",
        f"Great! I've marked '{title}' as complete.",
        f"Okay! '{title}' is back on your list.",
    ]


@on_sqlite
def test_each_of_several_tasks_has_its_own_date(database):
    """T5: what could be added is added; what could not is asked about, wherever it stood."""
    said = conversation(
        database, "add tasks: call Ann friday at 5, buy milk tomorrow, walk", "5pm", "list"
    )
    assert said[0] == (
        "Got it! Added 'buy milk' and 'walk' to your list. Anything else? 'buy milk' is due "
        f"Tue 17 Nov 2026. {ASKED} 'at 5' could be morning or evening. Say '5am' or '5pm'."
    )
    assert said[1] == f"{added('call Ann')} Due Fri 20 Nov 2026, 17:00."


@on_sqlite
def test_two_dates_in_one_message_are_asked_about(database):
    assert replies(database, ["remind me friday to call Bob on thursday"])[0].startswith(ASKED)


@on_sqlite
def test_the_date_follows_in_the_users_language(database):
    async def told():
        async with chatting(database) as chat:
            said = [
                await chat.say(
                    "add pan tomorrow at 17:00", language=one, now=NOW, timezone="Europe/Berlin"
                )
                for one in ("es", "ar")
            ]
            assert said[0].endswith("¿Algo más? Para el mar 17 nov 2026 a las 17:00.")
            assert "17:00" in said[1] and said[1] != said[0]

    run(told())
