"""Tokens of the chat: what is wrong with one is 401, whatever it is."""

import asyncio
import base64
import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from rig_chat import SECRET, chat, token

from bridle.errors import ConfigError
from bridle.server.chat.jwt import InvalidToken, JwksFile, JwtVerifier, SharedSecret


def unsigned(head, **said):
    """A token that says of itself that it needs no signature."""
    parts = [head, {"sub": "ana", "exp": int(time.time()) + 600, "aud": "bridle-chat"} | said]
    spelled = [
        base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in parts
    ]
    return ".".join([*spelled, ""])


def wrong_ones():
    """By what is wrong with them. Made when they are wanted: they are good for minutes."""
    now = int(time.time())
    return {
        "none": unsigned({"alg": "none", "typ": "JWT"}),
        "None": unsigned({"alg": "None"}),
        "no algorithm": unsigned({"typ": "JWT"}),
        "another secret": token(secret="x" * 40),
        "another algorithm": token(algorithm="HS512"),
        "expired": token(exp=now - 60),
        "never expires": token(exp=None),
        "not yet": token(nbf=now + 600),
        "issued in the future": token(iat=now + 600),
        "another audience": token(aud="somebody-else"),
        "no audience": token(aud=None),
        "nobody": token(None),
        "a number": token("x").replace(".", ".", 1)[:-3] + "abc",
        "no user's name": token("sessions"),
        "a long one": token("x" * 201),
        "too long": "a" * 9_000,
        "three dots": "...",
        "nothing": "",
    }


WRONG = tuple(wrong_ones())


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_token_names_nobody(name):
    with pytest.raises(InvalidToken):
        JwtVerifier(SharedSecret(SECRET)).user(wrong_ones()[name])


def test_every_wrong_token_is_401_and_none_is_said_again(sqlite_url):
    async def work():
        async with chat(sqlite_url) as there:
            wrong_now = wrong_ones()
            for name, wrong in wrong_now.items():
                answer = await there.get("/api/ana/tasks", bearer=wrong)
                assert (answer.status, answer.code) == (401, "no_token"), name
                assert not wrong or wrong not in str(answer.body)
            expired = await there.get("/api/ana/tasks", bearer=wrong_now["expired"])
            assert expired.body["detail"] == "Your sign-in has expired."
            twice = {"Authorization": f"Bearer {token()}"}
            assert (await there.get("/api/ana/tasks", bearer="", headers=twice)).status == 200
            basic = {"Authorization": f"Basic {token()}"}
            assert (await there.get("/api/ana/tasks", bearer="", headers=basic)).status == 401
            assert (await there.get(f"/api/ana/tasks?token={token()}", bearer="")).status == 401

    asyncio.run(work())


def test_an_issuer_counts_where_one_is_asked_for():
    strict = JwtVerifier(SharedSecret(SECRET), issuer="https://id.example")
    assert strict.user(token(iss="https://id.example")) == "ana"
    for wrong in (token(), token(iss="https://evil.example")):
        with pytest.raises(InvalidToken):
            strict.user(wrong)


def test_a_short_secret_is_refused():
    with pytest.raises(ConfigError, match="could be guessed"):
        SharedSecret("short")
    assert "secret" not in repr(SharedSecret(SECRET)).lower().replace("secret(", "")


def test_what_is_minted_is_good_until_it_expires():
    minted = SharedSecret(SECRET).mint("ana", 60)
    assert JwtVerifier(SharedSecret(SECRET)).user(minted) == "ana"
    with pytest.raises(InvalidToken) as old:
        JwtVerifier(SharedSecret(SECRET)).user(SharedSecret(SECRET).mint("ana", -60))
    assert old.value.expired
    with pytest.raises(ConfigError, match="sessions"):
        SharedSecret(SECRET).mint("sessions", 60)


def key_set(path, **keys):
    """A JWKS file with the public halves."""
    listed = []
    for name, key in keys.items():
        algorithm = {"r": "RS256", "e": "ES256", "d": "EdDSA"}[name[0]]
        kind = jwt.get_algorithm_by_name(algorithm)
        shape = json.loads(kind.to_jwk(key.public_key()))
        listed.append(shape | {"kid": name, "use": "sig", "alg": algorithm})
    path.write_text(json.dumps({"keys": listed}))
    return path


def signed(key, algorithm, kid=None, **more):
    said = {"sub": "ana", "exp": int(time.time()) + 600, "aud": "bridle-chat"} | more
    return jwt.encode(said, key, algorithm=algorithm, headers={"kid": kid} if kid else None)


def test_keys_of_a_file_check_what_their_owners_signed(tmp_path):
    r, e = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())
    d = ed25519.Ed25519PrivateKey.generate()
    path = key_set(tmp_path / "keys.json", r=r, e=e, d=d)
    bearing = JwtVerifier(JwksFile(path))
    for key, algorithm, kid in ((r, "RS256", "r"), (e, "ES256", "e"), (d, "EdDSA", "d")):
        assert bearing.user(signed(key, algorithm, kid)) == "ana"
    public = r.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    forged = _hs_with(public)
    other = rsa.generate_private_key(65537, 2048)
    wrong = {
        "no kid among many": signed(r, "RS256"),
        "a key that is not there": signed(r, "RS256", "x"),
        "another's key": signed(r, "RS256", "e"),
        "another algorithm of the key": signed(r, "RS512", "r"),
        "a stranger's": signed(other, "RS256", "r"),
        "the public key as a secret": forged,
        "none": unsigned({"alg": "none", "kid": "r"}),
        "a secret": token(),
    }
    for name, one in wrong.items():
        with pytest.raises(InvalidToken):
            bearing.user(one)
            pytest.fail(name)


def _hs_with(public):
    """The old trick: the public key, used as if it were a shared secret."""
    import hashlib
    import hmac

    def spelled(raw):
        return base64.urlsafe_b64encode(raw).rstrip(b"=")

    head = spelled(json.dumps({"alg": "HS256", "kid": "r"}).encode())
    body = spelled(
        json.dumps({"sub": "ana", "exp": int(time.time()) + 600, "aud": "bridle-chat"}).encode()
    )
    mark = hmac.new(public, head + b"." + body, hashlib.sha256).digest()
    return (head + b"." + body + b"." + spelled(mark)).decode()


def test_a_file_of_keys_that_changes_is_read_again_and_a_broken_one_is_not(tmp_path):
    old, new = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    path = key_set(tmp_path / "keys.json", e=old)
    bearing = JwtVerifier(JwksFile(path))
    assert bearing.user(signed(old, "ES256")) == "ana"
    key_set(path, e1=new)
    assert bearing.user(signed(new, "ES256", "e1")) == "ana"
    with pytest.raises(InvalidToken):
        bearing.user(signed(old, "ES256"))
    path.write_text("{")
    assert bearing.user(signed(new, "ES256", "e1")) == "ana"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"keys": []}', '{"keys": [{"kty": "oct", "k": "eA"}]}']
)
def test_a_file_without_public_keys_is_no_file_to_start_with(tmp_path, text):
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="cannot be read"):
        JwksFile(path)
    with pytest.raises(ConfigError):
        JwksFile(tmp_path / "nowhere.json")
