"""Webhooks reach public addresses only, unless a setting allows others."""

from ipaddress import ip_address

import httpx
import pytest

from app.errors import BadQuery
from app.webhooks.sending import AllowedTargets, RefusedAddress, check_url, is_public


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),
        *("168.63.129.16", "::ffff:168.63.129.16", "192.0.0.192", "64:ff9b::c000:c0"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00::1", "fec0::1", "ff02::1", "2001:db8::1"),
        # They lead to 127.0.0.1 and 10.1.2.3 by mapping, NAT64, 6to4 and Teredo.
        *("::ffff:127.0.0.1", "64:ff9b::a01:203", "2002:7f00:1::", "2001:0:a01:203::"),
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(RefusedAddress, match="not a public address"):
        AllowedTargets().check("example.org", ip_address(address))


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::5db8:d70e"])
def test_a_public_address_is_taken(address: str) -> None:
    AllowedTargets().check("example.org", ip_address(address))


def test_a_setting_allows_hosts_and_networks_and_nothing_else() -> None:
    allowed = AllowedTargets.parse(" 10.1.0.0/16, Hooks.Internal ,fd00::/8")
    allowed.check("any", ip_address("10.1.2.3"))
    allowed.check("any", ip_address("fd00::5"))
    allowed.check("HOOKS.internal.", ip_address("192.168.1.1"))
    for host, address in (("any", "10.2.0.1"), ("more.hooks.internal", "192.168.1.1"), ("any", "::1")):
        with pytest.raises(RefusedAddress):
            allowed.check(host, ip_address(address))
    assert AllowedTargets.parse("") == AllowedTargets()


@pytest.mark.parametrize("text", ["10.1.0.0/99", "a b", "https://hooks", "-x", "300.1.2.3"])
def test_a_setting_that_names_neither_host_nor_network_is_refused(text: str) -> None:
    with pytest.raises(BadQuery, match=r"VMSIZES_WEBHOOK_ALLOWED_NETWORKS=.*names of hosts and networks are allowed"):
        AllowedTargets.parse(f"localhost,{text}")
    with pytest.raises(BadQuery, match=r"=10.1.2.3/8: has host bits set; the network is 10.0.0.0/8"):
        AllowedTargets.parse("localhost,10.1.2.3/8")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://example.org/", "https"),
        ("ftp://example.org/", "https"),
        ("example.org/hook", "https"),
        ("https://", "name a host"),
        ("https://user:pass@example.org/", "no password"),
        ("https://example.org/#part", "no fragment"),
        ("https://example.org:99999/", "port must be"),
        ("https://[::1/", "is not a URL"),
        (f"https://example.org/{'a' * 2000}", "at most 2,000 characters"),
    ],
)
def test_a_url_that_cannot_be_a_webhook_is_refused(url: str, problem: str) -> None:
    with pytest.raises(BadQuery, match=problem):
        check_url(url)


def test_a_url_may_have_a_port_a_path_a_query_and_a_name_in_any_script() -> None:
    assert check_url("https://example.org:8443/a?b=c") == httpx.URL("https://example.org:8443/a?b=c")
    assert check_url("https://bücher.example/").raw_host == b"xn--bcher-kva.example"
