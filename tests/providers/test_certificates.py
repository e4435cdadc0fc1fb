"""Certificates are read by the connection that needs them, and not by an import."""

import subprocess
import sys

_LOOK = """
import ssl
before = ssl.SSLContext.load_default_certs
from bridle.providers.wire import import_aiohttp
import_aiohttp()
import bridle.providers.aiohttp_transport
import aiohttp.connector
shared = aiohttp.connector._SSL_CONTEXT_VERIFIED
plain = ssl.create_default_context()
assert ssl.SSLContext.load_default_certs is before
assert "set_default_verify_paths" not in vars(ssl.SSLContext)
bare = aiohttp.connector._SSL_CONTEXT_UNVERIFIED
assert bare.verify_mode == ssl.CERT_NONE and not bare.cert_store_stats()["x509"]
assert type(plain) is ssl.SSLContext
assert shared.purposes, "they were read by the import"
for name in ("verify_mode", "check_hostname", "minimum_version", "options", "verify_flags"):
    assert getattr(shared, name) == getattr(plain, name), name
shared.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="example.org")
assert not shared.purposes
assert shared.cert_store_stats() == plain.cert_store_stats()
assert shared.get_ca_certs() == plain.get_ca_certs()
"""


def test_aiohttps_shared_context_reads_the_certificates_when_it_is_first_used():
    done = subprocess.run(
        [sys.executable, "-c", _LOOK], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
