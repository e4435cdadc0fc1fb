"""Tokens and sign-ins: files that are the user's alone, hashes, codes that are good once."""

import json
import stat

import pytest

from bridle.errors import ConfigError
from bridle.server.caller import Caller, may
from bridle.server.problems import Refused
from bridle.server.signing_in import CODE_SECONDS, SIGNED_IN_SECONDS, Door
from bridle.server.tokens import Tokens, hashed


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_start_makes_a_token_for_this_user_alone_and_the_next_one_reads_it(tmp_path):
    first, second = Tokens(tmp_path / "server"), Tokens(tmp_path / "server")
    assert first.own == second.own and len(first.own) >= 40
    assert mode(tmp_path / "server" / "token") == 0o600
    assert mode(tmp_path / "server") == 0o700
    assert first.caller(first.own) == Caller("me", "admin")
    assert first.caller("") is None and first.caller(first.own[:-1]) is None


def test_a_token_file_that_others_can_read_is_refused_with_what_to_do(tmp_path):
    tokens = Tokens(tmp_path)
    tokens.add("ann", "drive")
    for name in ("token", "tokens.jsonl"):
        (tmp_path / name).chmod(0o640)
        with pytest.raises(ConfigError, match="others") as caught:
            Tokens(tmp_path)
        assert "chmod 600" in caught.value.hint
        (tmp_path / name).chmod(0o600)
    (tmp_path / "token").write_text("short\n")
    with pytest.raises(ConfigError, match="long enough"):
        Tokens(tmp_path)


def test_named_tokens_are_kept_as_hashes_alone_and_can_be_revoked_by_another_process(tmp_path):
    tokens, other = Tokens(tmp_path), Tokens(tmp_path)
    given = tokens.add("ann", "answer")
    lines = (tmp_path / "tokens.jsonl").read_text().splitlines()
    kept = {"name": "ann", "role": "answer", "hash": hashed(given)}
    assert [json.loads(line) for line in lines] == [kept]
    assert mode(tmp_path / "tokens.jsonl") == 0o600
    assert other.caller(given) == Caller("ann", "answer")
    other.revoke("ann")
    assert tokens.caller(given) is None and tokens.list() == ()
    with pytest.raises(ConfigError, match="nobody named"):
        tokens.revoke("ann")


@pytest.mark.parametrize("name", ["", "me", "ann", "a b", "a\nb", "x" * 65, "../x"])
def test_a_name_is_a_word_that_nobody_has(tmp_path, name):
    tokens = Tokens(tmp_path)
    tokens.add("ann", "watch")
    with pytest.raises(ConfigError, match="cannot be the name"):
        tokens.add(name, "watch")


def test_a_role_is_one_of_four(tmp_path):
    with pytest.raises(ConfigError, match="no role"):
        Tokens(tmp_path).add("ann", "root")


def test_a_token_file_may_be_a_list_of_yaml_and_a_bad_line_refuses_to_start(tmp_path):
    file = tmp_path / "mine"
    file.write_text(f"# ours\n- {{name: bob, role: watch, hash: '{hashed('b' * 40)}'}}\n\n")
    file.chmod(0o600)
    assert Tokens(tmp_path / "s", named=file).caller("b" * 40) == Caller("bob", "watch")
    for bad in ("{", '{"name": "x", "role": "king", "hash": ""}', "- [", '{"name": "me"}'):
        file.write_text(bad + "\n")
        with pytest.raises(ConfigError, match="line 1 of"):
            Tokens(tmp_path / "s", named=file)
    twice = json.dumps({"name": "x", "role": "watch", "hash": "y"}) + "\n"
    file.write_text(twice * 2)
    with pytest.raises(ConfigError, match="line 2 of"):
        Tokens(tmp_path / "s", named=file)


def test_a_token_file_that_becomes_bad_names_nobody_and_the_owner_still_comes_in(tmp_path):
    tokens = Tokens(tmp_path)
    given = tokens.add("ann", "drive")
    (tmp_path / "tokens.jsonl").write_text("rubbish\n")
    assert tokens.caller(given) is None
    assert tokens.caller(tokens.own) == Caller("me", "admin")


def test_a_token_that_was_handed_in_is_used_and_not_written_down(tmp_path):
    tokens = Tokens(tmp_path, own="chosen-by-hand")
    assert tokens.caller("chosen-by-hand") == Caller("me", "admin")
    assert not (tmp_path / "token").exists()


def test_each_role_may_what_those_before_it_may():
    may_do = {
        role: [may(Caller("x", role), one) for one in ("watch", "answer", "drive", "admin")]
        for role in ("watch", "answer", "drive", "admin")
    }
    assert may_do == {
        "watch": [True, False, False, False],
        "answer": [True, True, False, False],
        "drive": [True, True, True, False],
        "admin": [True, True, True, True],
    }


def refused(door, code, address="here"):
    with pytest.raises(Refused) as caught:
        door.sign_in(code, address)
    return caught.value.problem.code


def test_a_code_is_good_once_and_not_for_long(tmp_path):
    clock = Clock()
    door = Door(Tokens(tmp_path), clock)
    code = door.code()
    cookie = door.sign_in(code)
    assert door.signed_in(cookie) == Caller("me", "admin")
    assert refused(door, code) == "no_token"
    late = door.code()
    clock.now += CODE_SECONDS + 1
    assert refused(door, late) == "no_token"


def test_a_sign_in_survives_a_restart_as_a_hash_and_ends_with_signing_out_or_its_time(tmp_path):
    clock = Clock()
    door = Door(Tokens(tmp_path), clock)
    one, two = door.sign_in(door.code()), door.sign_in(door.code())
    kept = (tmp_path / "sign-ins.json").read_text()
    assert one not in kept and two not in kept and mode(tmp_path / "sign-ins.json") == 0o600
    again = Door(Tokens(tmp_path), clock)
    assert again.signed_in(one) == Caller("me", "admin")
    again.sign_out(one)
    assert again.signed_in(one) is None and again.signed_in(two) is not None
    assert Door(Tokens(tmp_path), clock).signed_in(one) is None
    clock.now += SIGNED_IN_SECONDS + 1
    assert again.signed_in(two) is None


def test_a_sign_in_is_worth_what_the_token_of_its_name_is_worth_now(tmp_path):
    tokens = Tokens(tmp_path)
    door = Door(tokens)
    cookie = door.sign_in(tokens.add("ann", "drive"))
    assert door.signed_in(cookie) == Caller("ann", "drive")
    tokens.revoke("ann")
    assert door.signed_in(cookie) is None
    tokens.add("ann", "watch")
    assert door.signed_in(cookie) == Caller("ann", "watch")


def test_whoever_guesses_is_made_to_wait_and_nobody_else_is(tmp_path):
    clock = Clock()
    door = Door(Tokens(tmp_path), clock)
    said = [refused(door, "guess", "there") for _ in range(12)]
    assert said == ["no_token"] * 10 + ["rate_limited"] * 2
    assert refused(door, door.code(), "there") == "rate_limited"  # nothing is even looked at
    assert refused(door, "guess", "elsewhere") == "no_token"
    clock.now += 31
    assert refused(door, "guess", "there") == "no_token"


def test_sign_ins_that_cannot_be_read_refuse_to_start_with_what_to_do(tmp_path):
    tokens = Tokens(tmp_path)
    (tmp_path / "sign-ins.json").write_text("{")
    (tmp_path / "sign-ins.json").chmod(0o600)
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        Door(tokens)
    assert "Remove it" in caught.value.hint
