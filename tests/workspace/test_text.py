"""Neutral text: nothing that is obeyed or hidden gets through, and honest text stays."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.workspace.text import neutral, one_line, shorten

TRICKY = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "ab1#*\n\r\t\x1b\x07\x7f\x85\u200b\u200c\u200d\u200e\u202e\u2066\u2028\ufe0f\ufe0e\ufe01"
            "\u20e3\ufeff\u00ad\u061c\u180b\u17b4\U000e0041\U000e0100👩🚀❤🏽فا न क्ष辻\u1820\ud800"
        ),
    ),
    max_size=30,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]52;c;aGk=\x07", r"\x1b]52;c;aGk=\x07"),
        ("safe\rrm -rf", r"safe\rrm -rf"),
        ("a\r\nb", "a\\r\nb"),
        ("\x9b31m \x85", r"\x9b31m \x85"),
        ("a\u202eb\u2066c\u2069", r"a\u202eb\u2066c\u2069"),
        ("in\u200bvisible\ufeff\u00ad", r"in\u200bvisible\ufeff\xad"),
        ("hi\U000e0068\U000e0069", r"hi\U000e0068\U000e0069"),
        ("x\ufe01\ufe02", r"x\ufe01\ufe02"),
        ("x\U000e0100", r"x\U000e0100"),
        ("😀\U000e0101\U000e0102", r"😀\U000e0101\U000e0102"),
        ("❤\ufe0f\ufe0f", "❤\ufe0f\\ufe0f"),
        ("one\u2028two\u2029", r"one\u2028two\u2029"),
        ("\ud83d alone", r"\ud83d alone"),
        ("a\u200db", r"a\u200db"),
        ("nul\x00", r"nul\x00"),
    ],
)
def test_what_is_obeyed_or_hidden_is_written_out(text: str, shown: str) -> None:
    assert neutral(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Grüße, naïve café, e\u0301",
        "日本語 中文 한국어 ไทย",
        "می\u200cخواهم",
        "क\u094d\u200dष שלום عربي",
        "👩\u200d🚀 👨\u200d👩\u200d👧 🏳\ufe0f\u200d🌈 👍🏽 ❤\ufe0f 1\ufe0f\u20e3 🇩🇪",
        "辻\U000e0100さん",
        "±∑√ → € ½ “quotes” – …",
    ],
)
def test_honest_text_of_any_language_stays(text: str) -> None:
    assert neutral(text) == text


def test_the_caller_says_which_controls_stay() -> None:
    assert neutral("a\nb\tc", keep="") == r"a\nb\tc"
    assert neutral("a\nb\tc", keep="\n") == "a\nb\\tc"


@given(TRICKY)
def test_neutral_text_is_neutral_already(text: str) -> None:
    once = neutral(text)
    assert neutral(once) == once


@given(TRICKY)
def test_nothing_dangerous_is_left(text: str) -> None:
    shown = neutral(text)
    shown.encode()  # no lone surrogate
    left = {ch for ch in shown if unicodedata.category(ch) in ("Cc", "Zl", "Zp", "Cs", "Cf")}
    allowed = {"\n", "\t", "\u200c", "\u200d"}
    visible = {ch for ch in left if "ARABIC" in unicodedata.name(ch, "")}
    visible |= {ch for ch in left if unicodedata.name(ch, "").startswith(("KAITHI", "SYRIAC"))}
    visible |= {ch for ch in left if unicodedata.name(ch, "").startswith("EGYPTIAN")}
    assert left <= allowed | visible


@given(st.text("abc äöü日本\n\t"))
def test_clean_text_is_handed_back_unchanged(text: str) -> None:
    assert neutral(text) == text


@given(TRICKY, st.integers(0, 20))
def test_one_line_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert not set(line) & set("\n\r\t\x1b\u2028")
    assert one_line(line, limit) == line


def test_one_line_says_that_it_was_cut() -> None:
    assert one_line("a  b\n\nc") == "a b c"
    assert one_line("word " * 50, 12) == "word word w…"
    assert one_line(" " * 5000 + "x", 10).endswith("…")


def test_a_long_text_keeps_its_ends_and_says_what_is_missing() -> None:
    text = "\n".join(f"line {number}" for number in range(1000))
    short = shorten(text, 300)
    head = "\n".join(f"line {number}" for number in range(21))
    tail = "\n".join(f"line {number}" for number in range(990, 1000))
    gap = "[… 8,643 characters (970 lines) are left out here …]"
    assert short == f"{head}\n{gap}\n{tail}"
    assert len(short) == 300


@given(st.text("ab\n", max_size=400), st.integers(0, 300))
def test_shortened_text_fits_and_adds_up(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit or short == text
    assert shorten(short, limit) == short
    if "[… " in short:
        head, _, rest = short.partition("\n[… ")
        count, _, tail = rest.partition(" …]\n")
        missing = int(count.split()[0].replace(",", ""))
        assert text == head + text[len(head) : len(head) + missing] + tail
