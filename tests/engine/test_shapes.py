"""Tokens by their shapes: each row finds its own, in one piece or many, and leaves the rest alone.

The examples are made here, from a start and a body: no scanner should take them for real ones.
"""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.engine.redaction import MARK, MAX_PENDING, SHAPES, Redaction, Redactor, entropy
from bridle.events import TextDelta, ThinkingDelta, ToolCallArgsDelta, ToolResultEvent, TurnEnded
from bridle.messages import File, Image, Thinking, ToolOutput

BODY = "q7Rm2Xv9Kp4Ls8Tw3Zn6Hc1Yb5Gd0Jf7Ae2Uo9Mi4"  # by chance, as far as anybody can tell
LOWER = BODY.lower()
KEY_LINES = "\n".join(f"MIIE{BODY}{LOWER}"[:64] for _ in range(5))
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_LINES}\nAQAB\n-----END RSA PRIVATE KEY-----"

# (row, text around, the secret): what is taken out is the secret and nothing else
FOUND = [
    ("Anthropic", "key {} ok", f"sk-ant-api03-{BODY}_{BODY}-AA"),
    ("OpenAI", "key {} ok", f"sk-proj-{BODY}-{BODY}"),
    ("OpenAI", '{{"k":"{}"}}', f"sk-{BODY}"),
    ("OpenRouter", "OR={} ok", f"sk-or-v1-{'0123456789abcdef' * 4}"),
    ("GitHub", "https://{}@github.com/x", f"ghp_{BODY[:36]}"),
    ("GitHub", "\x1b[01;31m\x1b[K{}\x1b[m", f"gho_{BODY[:36]}"),
    ("GitHub", "a\\n{}\\n", f"ghs_{BODY[:36]}"),
    ("GitHub", "({})", f"github_pat_{BODY[:22]}_{BODY}"),
    ("GitLab", "x {}.", f"glpat-{BODY[:20]}"),
    ("AWS key id", "id={};", "AKIA" + "QW3RTY7UIOP2ASDF"),
    ("AWS key id", "id={}\n", "ASIA" + "QW3RTY7UIOP2ASDF"),
    ("AWS secret key", "aws_secret_access_key = {}\n", f"{BODY[:38]}/+"),
    ("AWS secret key", '"SecretAccessKey": "{}"', f"{BODY[:38]}/+"),
    ("AWS secret key", "export AWS_SECRET_ACCESS_KEY={}", f"{BODY[:38]}/+"),
    ("Google", "?key={}&x=1", f"AIza{BODY[:35]}"),
    ("Google client", "x {} y", f"GOCSPX-{BODY[:28]}"),
    ("Slack", "x {} y", f"xoxb-123456789012-{BODY[:24]}"),
    ("Slack", "x {} y", f"xapp-1-A0123-456-{LOWER}"),
    ("Slack hook", "https://hooks.slack.com/services/{} y", f"T0123/B0456/{BODY[:24]}"),
    ("Stripe", "x {} y", f"sk_live_{BODY[:24]}"),
    ("Stripe", "x {} y", f"whsec_{BODY[:32]}"),
    ("npm", "//registry/:_authToken={}\n", f"npm_{BODY[:36]}"),
    ("PyPI", "x {} y", f"pypi-AgEIcHlwaS5vcmc{BODY}"),
    ("Hugging Face", "x {} y", f"hf_{BODY[:34]}"),
    ("JWT", "x {} y", f"eyJ{BODY}.eyJ{BODY}.{BODY}"),
    ("JWT", "Cookie: s={};", f"eyJ{BODY}..{BODY}.{BODY}.{BODY}"),
    ("private key", "here:\n{}\nend", PEM),
    ("private key", 'k="{}"', PEM.replace("\n", "\\n")),
    ("private key", "cut off: {}", PEM[:220]),
    (
        "private key",
        "{}",
        "\n".join(f"{n:>6}\t{s}" for n, s in enumerate(PEM[:220].split("\n"))).lstrip(" 0\t"),
    ),
    ("bearer token", "Authorization: Bearer {}", BODY),
    ("bearer token", "-H 'authorization: bearer {}'", f"{LOWER}.x~y"),
    ("basic login", "Authorization: Basic {}\r\n", "dXNlcjpodW50ZXIyaHVudGVyMg=="),
    ("password in a URL", "postgres://admin:{}@db.example/x", "hunter2!"),
    ("password in a URL", "redis://:{}@127.0.0.1:6379", "p%40ss-word"),
    ("variable", "DEPLOY_TOKEN={}\n", LOWER[:20]),
    ("variable", "export DB_PASSWORD='{}'", "Tr0ub4dor&3x"),
    ("variable", 'ACME_API_KEY: "{}"', BODY[:24]),
    ("variable", "DJANGO_SECRET_KEY={}", LOWER[:30]),
    ("variable", "export AWS_SECRET_ACCESS_KEY={}", BODY[:24]),
    ("variable", "MYSQL_PASSWD={}\n", BODY[:16]),
    ("short variable", "API_KEY={}\n", BODY[:16]),
    ("short variable", "export TOKEN='{}'", LOWER[:20]),
    ("short variable", "SECRET_KEY: {}", BODY[:30]),
    ("variable", '{{\\"X_SECRET\\": \\"{}\\"}}', BODY[:16]),
]

LEFT = [
    "the task-0123456789abcdef0123456789 and a risk-free disk-image-2024-01-01-backup",
    "sk-circle-fade-dot-spinner-animation sk-learn sk-ant- sk-proj-short1",
    "ghp_ is GitHub's prefix, ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx a placeholder",
    "AKIA alone; AKIAshortone; MYAKIA; AKIAIOSFODNN7EXAMPLEWITHMORE",
    "aws_secret_access_key = os.environ['AWS_SECRET_ACCESS_KEY']",
    "secretAccessKey: process.env.SECRET",
    "shelf_abcdefghijklmnopqrstuvwxyz0123456789ab",
    "npm_config_registry=https://registry.example/ npm_lifecycle_event",
    "eyJ begins base64 of a JSON object; eyJhbGciOiJIUzI1NiJ9 is a header alone",
    "-----BEGIN CERTIFICATE-----\nMIIB" + "A" * 60 + "\n-----END CERTIFICATE-----",
    'if "-----BEGIN PRIVATE KEY-----" in text: raise ValueError("a key")',
    "the bearer of bad news; Bearer authentication is described elsewhere",
    "Authorization: Bearer $TOKEN and Bearer <token> and Bearer {token}",
    "http://127.0.0.1:8080/a@b https://example.com:443/x?u=a:b@c git@host:repo",
    "postgres://postgres:postgres@localhost/app mysql://root:password@db $SCHEME://u:$PASS@h",
    "MAX_TOKEN=4096 CSRF_TOKEN=your-token-here API_TOKEN=${TOKEN} X_SECRET=changeme",
    "GITHUB_TOKEN: process.env.GH2_TOKEN1\nself.ACCESS_TOKEN = get_token2(client)",
    'token = get_token() PASSWORD_FIELD = "password" TOKEN = get_token2(client_name)',
    'SECRET = os.environ["APP_SECRET_2"] TOKEN=${TOKEN_NUMBER_2_OF_CI} PASSWORD=hunter2',
    "API_KEY=your-api-key-goes-here PASSWORD=correct-horse-battery-staple TOKEN=xxxxxxxxxxxxxxxxxx",
    "AWS_SECRET_ACCESS_KEY=<your-secret> AWS_ACCESS_KEY_ID=production2 MAX_TOKEN=1234567890123456",
    "ACCESS_TOKEN_TTL=3600 MY_API_KEY_NAME=production2 PASSWORD_MIN_LENGTH=12",
    "sha512-q7Rm2Xv9Kp4Ls8Tw3Zn6Hc1Yb5Gd0Jf7Ae2Uo9Mi4+/q7Rm2Xv9Kp4Ls8Tw3Zn6Hc1Yb5Gd0A==",
    "commit 0123456789abcdef0123456789abcdef01234567 uuid 123e4567-e89b-12d3-a456-426614174000",
]


def through(texts, redactor=None, kind=TextDelta):
    """What is recorded of a text that comes in these pieces."""
    said = []
    stage = Redaction(redactor or Redactor(), lambda event, data: said.append(event))
    for text in texts:
        stage.take(kind(text))
    stage.take(TurnEnded(1, "done"))
    assert said.pop() == TurnEnded(1, "done")
    return [one.text for one in said]


def cut(text, places):
    ends = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [text[first:last] for first, last in pairwise(ends)]


def test_every_row_has_an_example():
    assert {row for row, _, _ in FOUND} == {shape.name for shape in SHAPES}


@pytest.mark.parametrize(("row", "around", "secret"), FOUND, ids=lambda value: str(value)[:20])
def test_a_token_is_taken_out_and_nothing_else(row, around, secret):
    assert Redactor().text(around.format(secret)) == around.format(MARK)


@pytest.mark.parametrize("text", LEFT, ids=lambda text: text[:20])
def test_ordinary_text_stays_as_it_is(text):
    assert Redactor().text(text) is text
    assert "".join(through(list(text))) == text


def body_of(secret):
    """The part of an example that nobody may read: what stands behind its public beginning."""
    return secret[len(secret) // 3 :]


@pytest.mark.parametrize(("row", "around", "secret"), FOUND, ids=lambda value: str(value)[:20])
def test_a_token_never_straddles_two_records(row, around, secret):
    """Cut at every place, and at every character."""
    whole = around.format(secret)
    for place in range(1, len(whole)):
        said = through([whole[:place], whole[place:]])
        assert body_of(secret) not in "".join(said)
        assert MARK in "".join(said)
        assert "".join(said).endswith(around.partition("{}")[2].replace("}}", "}"))
    assert MARK in "".join(letters := through(list(whole)))
    assert body_of(secret) not in "".join(letters)


@given(
    st.sampled_from(FOUND),
    st.text(st.characters(codec="utf-8"), max_size=30),
    st.text(" \n\"'abcXYZ019_-:/.=", max_size=30),
    st.lists(st.integers(0, 400), max_size=8),
)
def test_in_any_split_of_any_text_no_token_is_left(found, before, after, places):
    _, around, secret = found
    whole = f"{before} {around.format(secret)} {after}"
    pieces = cut(whole, places)
    for kind in (TextDelta, ThinkingDelta, lambda text: ToolCallArgsDelta("c", text)):
        assert body_of(secret) not in "".join(through(pieces, kind=kind))


@given(st.text(st.sampled_from("skghp_eyJA:/@-=BEGIN ab1\n"), max_size=80), st.data())
def test_nothing_that_is_no_token_is_lost_or_moved(text, data):
    redactor = Redactor()
    if redactor.text(text) != text:
        return
    pieces = cut(text, data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    assert "".join(through(pieces, redactor)) == text


def test_what_may_become_a_token_waits_and_the_rest_does_not():
    assert through(["see sk", "y and gh", "p_", "x ok"]) == ["see ", "sky and ", "ghp_x ok"]
    assert through(["DB_PASSWORD=", "Tr0ub4dor", "&3x", "\nok"]) == [
        "DB_PASSWORD=",
        f"{MARK}\nok",
    ]


def test_a_beginning_that_was_said_already_is_the_public_part_alone():
    """Glued to a word it was not held back; the rest is taken out all the same."""
    said = through(["xgh", f"p_{BODY[:36]} ok"])
    assert said == ["xgh", f"{MARK} ok"]


def test_no_more_than_so_much_waits_and_an_endless_token_is_swallowed():
    pieces = [f"a ghp_{BODY}", *[BODY * 100] * 8, BODY, " ok"]
    assert "".join(through(pieces)) == f"a {MARK} ok"
    assert len(BODY * 100) * 8 > 2 * MAX_PENDING
    endless = ["-----BEGIN PRIVATE KEY-----\n", *["so it goes on and on\n" * 50] * 20]
    assert "".join(through(endless)) == "".join(endless)
    assert len(through(endless)) > 2


def test_media_and_what_a_vendor_wants_back_are_left_alone():
    token = f"ghp_{BODY[:36]}"
    media = Image("image/png", token), File("text/plain", token, "a")
    output = ToolOutput("c", token, data=[Thinking(token, {"signature": token})], media=media)
    event = ToolResultEvent(output)
    kept = Thinking(MARK, {"signature": token})
    assert Redactor().event(event).output == ToolOutput("c", MARK, data=[kept], media=media)
    cleaned = Redactor((token,)).event(event).output
    assert token not in repr(cleaned)


def test_a_name_in_a_url_of_a_picture_is_looked_at():
    picture = Image(url="https://u:hunter2!@h/x.png")
    assert Redactor().value(picture) == Image(url=f"https://u:{MARK}@h/x.png")


def test_shapes_can_be_turned_off_and_known_keys_cannot():
    token = f"ghp_{BODY[:36]}"
    assert Redactor((LOWER,), shapes=False).text(f"{token} {LOWER}") == f"{token} {MARK}"
    assert not Redactor(shapes=False)
    assert Redactor()


def test_the_bytes_of_a_clean_event_are_handed_on():
    told = []
    stage = Redaction(Redactor(), lambda event, data: told.append((event, data)))
    clean, dirty = TurnEnded(1, "done", "see http://h/x"), TurnEnded(1, "done", f"sk-{BODY}")
    stage.take(clean)
    stage.take(dirty)
    bare = b'{"type":"turn_end","turn":1,"reason":"done","detail":"see http://h/x"}'
    assert told == [(clean, bare), (TurnEnded(1, "done", MARK), None)]
    assert told[0][0] is clean


@pytest.mark.parametrize(
    "text",
    [
        "eyJ" * 40_000,
        "ghp_" * 30_000,
        "-----BEGIN PRIVATE KEY-----\n" * 4_000,
        "_TOKEN=" * 20_000,
        "://a:" * 20_000,
        "://" + "a" * 100_000,
        "Bearer " * 20_000,
        "sk-" + "a" * 100_000,
        "AKIA" * 30_000,
        "aws_secret_access_key=" * 5_000,
    ],
    ids=lambda text: text[:12],
)
def test_no_text_makes_it_slow(text):
    """Quadratic work on any of these would take minutes: the test's own time limit is the proof."""
    Redactor().text(text)


def test_entropy_is_in_bits():
    assert (entropy("aaaa"), entropy("abab"), entropy("abcd")) == (0.0, 1.0, 2.0)


PATTERNS = (r"ACME-\d{6}", r"code name \w{1,40}")


@given(st.lists(st.integers(0, 60), max_size=6))
def test_a_pattern_of_the_persons_own_is_found_in_pieces(places):
    whole = "of ACME-123456, say (ACME-654321) and ACME-12."
    said = "".join(through(cut(whole, places), Redactor(patterns=PATTERNS)))
    assert said == f"of {MARK}, say ({MARK}) and ACME-12."


def test_a_pattern_with_spaces_is_found_where_it_is_seen_whole():
    assert through(["the code name tulip is old"], Redactor(patterns=PATTERNS)) == [
        f"the {MARK} is ",
        "old",
    ]
    long = "x" * 2000
    assert "".join(through([long, long, " ok"], Redactor(patterns=PATTERNS))) == long + long + " ok"
