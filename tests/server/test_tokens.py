"""Tokens and sign-ins: files that are the user's alone, hashes, codes that are good once."""

import json
import stat

import pytest

from bridle.errors import ConfigError
from bridle.server.auth import Caller, has_role
from bridle.server.login import CODE_SECONDS, EACH, SIGNED_IN_SECONDS, Authenticator
from bridle.server.problems import ProblemError
from bridle.server.tokens import Tokens, hash_token


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
    kept = {"name": "ann", "role": "answer", "hash": hash_token(given)}
    assert [json.loads(line) for line in lines] == [kept]
    assert mode(tmp_path / "tokens.jsonl") == 0o600
    assert other.caller(given) == Caller("ann", "answer")
    other.revoke("ann")
    assert tokens.caller(given) is None and tokens.list() == ()
    with pytest.raises(ConfigError, match="nobody named"):
        tokens.revoke("ann")


@pytest.mark.parametrize(
    "name", ["", "me", "ann", "a b", "a\nb", "x" * 65, "../x", "expiry", "Grant", "hook"]
)
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
    file.write_text(f"# ours\n- {{name: bob, role: watch, hash: '{hash_token('b' * 40)}'}}\n\n")
    file.chmod(0o600)
    assert Tokens(tmp_path / "s", named=file).caller("b" * 40) == Caller("bob", "watch")
    for bad in ("{", '{"name": "x", "role": "king", "hash": ""}', "- [", '{"name": "me"}'):
        file.write_text(bad + "\n")
        with pytest.raises(ConfigError, match="line 1 of"):
            Tokens(tmp_path / "s", named=file)
    file.write_text("a-secret-of-my-own-and-no-list\n")
    with pytest.raises(ConfigError, match="it is one word") as plain:
        Tokens(tmp_path / "s", named=file)
    assert "--token TOKEN" in plain.value.hint
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
        role: [has_role(Caller("x", role), one) for one in ("watch", "answer", "drive", "admin")]
        for role in ("watch", "answer", "drive", "admin")
    }
    assert may_do == {
        "watch": [True, False, False, False],
        "answer": [True, True, False, False],
        "drive": [True, True, True, False],
        "admin": [True, True, True, True],
    }


def refused(ask, *given):
    with pytest.raises(ProblemError) as caught:
        ask(*given)
    return caught.value.problem.code


def test_a_code_is_good_once_and_not_for_long(tmp_path):
    steady = Clock()
    door = Authenticator(Tokens(tmp_path), steady=steady)
    code = door.code()
    assert door.signed_in(*door.sign_in(code)) == Caller("me", "admin")
    assert refused(door.sign_in, code) == "no_token"
    late = door.code()
    steady.now += CODE_SECONDS + 1
    assert refused(door.sign_in, late) == "no_token"


def test_a_code_is_no_token_and_a_token_is_no_code(tmp_path):
    door = Authenticator(Tokens(tmp_path))
    code = door.code()
    assert refused(door.sign_in_by_token, code) == "no_token"
    assert refused(door.sign_in, door.tokens.own) == "no_token"
    assert door.signed_in(*door.sign_in_by_token(door.tokens.own)) == Caller("me", "admin")
    assert door.sign_in(code)


def test_a_code_of_somebody_else_is_not_used_where_only_ones_own_will_do(tmp_path):
    door = Authenticator(Tokens(tmp_path))
    door.tokens.add("ann", "drive")
    code = door.code("ann")
    assert refused(door.sign_in, code, "me") == "other_name"
    assert door.signed_in(*door.sign_in(code, "ann")) == Caller("ann", "drive")


def test_a_sign_in_needs_both_of_its_halves_and_no_other_ones(tmp_path):
    door = Authenticator(Tokens(tmp_path))
    one, two = door.sign_in(door.code()), door.sign_in(door.code())
    for cookie, key in ((one.cookie, ""), ("", one.key), (one.cookie, two.key), one[::-1]):
        assert door.signed_in(cookie, key) is None


def test_a_sign_in_survives_a_restart_as_a_hash_and_ends_with_signing_out_or_its_time(tmp_path):
    clock = Clock()
    door = Authenticator(Tokens(tmp_path), clock)
    one, two = door.sign_in(door.code()), door.sign_in(door.code())
    kept = (tmp_path / "sign-ins.json").read_text()
    assert not [half for half in (*one, *two) if half in kept]
    assert mode(tmp_path / "sign-ins.json") == mode(tmp_path / "sign-ins.lock") == 0o600
    again = Authenticator(Tokens(tmp_path), clock)
    assert again.signed_in(*one) == Caller("me", "admin")
    again.sign_out(one.cookie)
    assert again.signed_in(*one) is None and again.signed_in(*two) is not None
    assert Authenticator(Tokens(tmp_path), clock).signed_in(*one) is None
    clock.now += SIGNED_IN_SECONDS + 1
    assert again.signed_in(*two) is None


def test_two_servers_of_one_folder_do_not_undo_each_others_sign_ins_and_outs(tmp_path):
    a, b = Authenticator(Tokens(tmp_path)), Authenticator(Tokens(tmp_path))
    mine, theirs = a.sign_in(a.code()), b.sign_in(b.code())
    assert a.signed_in(*theirs) and b.signed_in(*mine)
    a.sign_out(mine.cookie)
    assert b.signed_in(*mine) is None
    more = b.sign_in(b.code())
    again = Authenticator(Tokens(tmp_path))
    found = [again.signed_in(*one) is not None for one in (mine, theirs, more)]
    assert found == [False, True, True]


def test_a_sign_in_belongs_to_one_token_and_a_name_that_comes_back_does_not_revive_it(tmp_path):
    tokens = Tokens(tmp_path)
    door = Authenticator(tokens)
    halves, code = door.sign_in_by_token(tokens.add("ann", "drive")), door.code("ann")
    assert door.signed_in(*halves) == Caller("ann", "drive")
    tokens.revoke("ann")
    assert door.signed_in(*halves) is None
    tokens.add("ann", "drive")
    assert door.signed_in(*halves) is None
    assert refused(door.sign_in, code) == "no_token"


def test_another_role_or_another_token_of_the_owner_ends_the_sign_ins_of_before(tmp_path):
    tokens = Tokens(tmp_path)
    door = Authenticator(tokens)
    ann, me = door.sign_in_by_token(tokens.add("ann", "watch")), door.sign_in(door.code())
    file = tmp_path / "tokens.jsonl"
    file.write_text(file.read_text().replace("watch", "admin"))
    assert door.signed_in(*ann) is None and door.signed_in(*me) is not None
    (tmp_path / "token").unlink()
    assert Authenticator(Tokens(tmp_path)).signed_in(*me) is None


def test_whoever_signs_in_without_end_ends_no_sign_in_but_their_own(tmp_path):
    door = Authenticator(Tokens(tmp_path))
    mine, token = door.sign_in(door.code()), door.tokens.add("wat", "watch")
    theirs = [door.sign_in_by_token(token) for _ in range(EACH + 2)]
    assert door.signed_in(*mine) is not None
    assert [door.signed_in(*one) is not None for one in theirs] == [False] * 2 + [True] * EACH


def test_whoever_guesses_is_told_to_wait_and_the_right_one_always_passes(tmp_path):
    steady = Clock()
    door = Authenticator(Tokens(tmp_path), steady=steady)
    said = [refused(door.sign_in, "guess") for _ in range(22)]
    assert said == ["no_token"] * 20 + ["rate_limited"] * 2
    assert refused(door.sign_in_by_token, "guess") == "rate_limited"
    assert door.sign_in(door.code()) and door.sign_in_by_token(door.tokens.own)
    steady.now += 1
    assert refused(door.sign_in, "guess") == "no_token"


def test_a_clock_that_goes_back_locks_nobody_out(tmp_path):
    clock = Clock()
    door = Authenticator(Tokens(tmp_path), clock)
    halves, code = door.sign_in(door.code()), door.code()
    assert refused(door.sign_in, "guess") == "no_token"
    clock.now -= 86_400
    assert refused(door.sign_in, "guess") == "no_token"
    assert door.signed_in(*halves) and door.sign_in(code)


def test_sign_ins_that_cannot_be_read_refuse_to_start_with_what_to_do(tmp_path):
    tokens = Tokens(tmp_path)
    (tmp_path / "sign-ins.json").write_text("{")
    (tmp_path / "sign-ins.json").chmod(0o600)
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        Authenticator(tokens)
    assert "Remove it" in caught.value.hint
