"""Addresses of pages, hosts that were named, machines that are public, and pages without markup."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.errors import ConfigError, ToolError
from bridle.tools.web_fetch import Hosts, Url, WebFetch, html_to_text, is_public, parse_url


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://docs.python.org", Url("https", "docs.python.org", 443, "/")),
        ("HTTP://Example.ORG:8080/a?b=c#d", Url("http", "example.org", 8080, "/a?b=c")),
        ("https://x.org?q", Url("https", "x.org", 443, "/?q")),
        ("https://x.org/ä%20b", Url("https", "x.org", 443, "/%C3%A4%20b")),
        ("http://[2001:DB8::1]:80/", Url("http", "[2001:db8::1]", 80, "/")),
    ],
)
def test_an_address_is_taken_apart(url: str, address: Url) -> None:
    assert parse_url(url) == address


@pytest.mark.parametrize(
    "url",
    [
        *("", "x.org", "//x.org/", "ftp://x.org/", "file:///etc/passwd", "javascript:1", "https:x"),
        *("https://", "https:///x", "https://user@x.org/", "https://user:pw@x.org/", "https://@x/"),
        *("https://x.org:0/", "https://x.org:99999/", "https://x.org:/", "https://x.org:8o/"),
        *("https://x.org\\@evil.org/", "https://x.org /", "https://x.org/\n", "https://x.org/\0"),
        *("https://x..org/", "https://x.org./", "https://.x.org/", "https://ex%61mple.org/"),
        *("https://exämple.org/", "https://x.org\u3002evil/", "https://[::1", "https://[x]/"),
        *("https://[1]/", "https://[:]/", "https://[1.2.3.4]/", "https://[::1::]/"),
        "https://x.org/" + "a" * 5000,
    ],
)
def test_an_address_that_is_not_plain_is_refused(url: str) -> None:
    with pytest.raises(ToolError):
        parse_url(url)


@given(st.text(st.sampled_from("htps:/@.[]ax1\\%?#:é \t"), max_size=30))
def test_the_gate_and_the_tool_see_the_same_host(rest: str) -> None:
    """What is accepted, every other reader takes apart in the same way."""
    url = f"https://{rest}"
    try:
        address = parse_url(url)
    except ToolError:
        return
    other = urlsplit(url)
    assert address.host.strip("[]") == other.hostname
    assert address.port == (other.port or 443)
    assert WebFetch([]).host_of({"url": url}) == address.place


@pytest.mark.parametrize(
    ("pattern", "url", "allowed"),
    [
        ("docs.python.org", "https://docs.python.org/3/", True),
        ("docs.python.org", "http://docs.python.org/", True),
        ("Docs.Python.org", "https://DOCS.python.ORG/", True),
        ("docs.python.org", "https://docs.python.org.evil.com/", False),
        ("docs.python.org", "https://evil-docs.python.org/", False),
        ("docs.python.org", "https://docs.python.org:8443/", False),
        ("docs.python.org", "https://docs.python.org:80/", False),
        ("docs.python.org:8443", "https://docs.python.org:8443/", True),
        ("docs.python.org:8443", "https://docs.python.org/", False),
        ("*.example.org", "https://a.example.org/", True),
        ("*.example.org", "https://a.b.example.org/", True),
        ("*.example.org", "https://example.org/", False),
        ("*.example.org", "https://evilexample.org/", False),
        ("*.example.org", "https://example.org.evil.com/", False),
    ],
)
def test_only_hosts_that_were_named_are_allowed(pattern: str, url: str, allowed: bool) -> None:
    assert Hosts([pattern]).allow(parse_url(url)) is allowed


@pytest.mark.parametrize("pattern", ["*", "", "*.*", "a*.org", "https://x.org", "x.org/a", "x:y"])
def test_a_pattern_that_names_everybody_or_nobody_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        Hosts([pattern])


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07::1", "1.1.1.1"])
def test_public_machines_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1"),
        *("169.254.169.254", "100.64.0.1", "100.127.255.255", "192.0.0.1", "198.18.0.1"),
        *("224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "203.0.113.1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1"),
        *("::ffff:93.184.215.14", "::ffff:127.0.0.1", "64:ff9b::5db8:d70e", "64:ff9b:1::1"),
        *("2002:7f00:1::", "2001:0:4136:e378::", "::7f00:1", "2001:db8::1", "100::1", "", "x"),
        "2606:2800:21f:cb07::1%eth0",
    ],
)
def test_no_other_machine_is(address: str) -> None:
    assert not is_public(address)


def test_a_page_is_read_as_plain_words() -> None:
    page = """<!doctype html><html><head><title>The &amp; title</title><style>p{}</style>
    <script>alert("<p>no</p>")</script><body><nav><ul><li><a href="/x">A  link</a><li>two</ul></nav>
    <h2>Head</h2><p>Some <b>bold</b>
    words.<br>More.<svg><title>drawn</title></svg></p><pre>  kept
    so</pre><table><tr><td>1</td><td>2</td></tr></table>
    <a href="javascript:x">odd</a><noscript>hidden</noscript>"""
    assert html_to_text(page, "https://h.org/a/b") == (
        "The & title\n\n- A link <https://h.org/x>\n- two\n\n## Head\n\nSome bold words.\nMore.\n\n"
        "  kept\n    so\n\n | 1 | 2\n\n odd"
    )


@pytest.mark.parametrize(
    "page", ["<" * 300_000, "<a " * 100_000, "<!--" * 100_000, "&#" * 200_000, "<svg>" * 100_000]
)
def test_a_page_made_to_take_for_ever_does_not(page: str) -> None:
    assert len(html_to_text(page)) < 1_000_000


@given(st.text(st.sampled_from('<>/!-&#;abpre "=scriptle\n')))
def test_no_page_breaks_the_reader(page: str) -> None:
    assert isinstance(html_to_text(page, "https://x.org/"), str)
