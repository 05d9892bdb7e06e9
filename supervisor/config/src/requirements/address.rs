//! Compares URLs of upstream servers with those of a requirements file: strictly for approved servers, and loosely for
//! denied ones, which must not be usable under another spelling of the same address.

use std::net::IpAddr;

use lockhouse_base::percent::percent_decoded;
use url::{Host, Url};

/// Stands for all names and addresses of this machine's loopback device.
const LOOPBACK: &str = "localhost";
/// Other names that `/etc/hosts` of Linux distributions has for the loopback device.
const LOOPBACK_NAMES: [&str; 5] =
    ["ip6-localhost", "ip6-loopback", "localhost4", "localhost6", "localhost.localdomain"];

/// Whether a URL has the origin and path of `required`. With `and_below`, its path need only begin with that of
/// `required`, and must still do so as a server reads it that decodes it. The query and fragment are ignored.
pub(super) fn is_at(url: &Url, required: &Url, and_below: bool) -> bool {
    let is_path = match and_below {
        true => url.path().starts_with(required.path()) && has_path(url, required, true),
        false => url.path() == required.path(),
    };
    url.origin() == required.origin() && is_path
}

/// Whether a URL may reach what `denied` denies: the same host and path, however they are written, with either scheme.
/// With `and_below`, its path need only begin with that of `denied`. The query and fragment are ignored.
pub(super) fn may_reach(url: &Url, denied: &Url, and_below: bool) -> bool {
    is_same_host(url, denied) && has_path(url, denied, and_below)
}

/// Whether two URLs have the same host and port, however they are written.
pub(super) fn is_same_host(url: &Url, other: &Url) -> bool {
    host(url) == host(other) && port(url) == port(other)
}

/// Returns the host without what differs between spellings: a final dot, an IPv4 address as an IPv6 one, and the names
/// and addresses of the loopback device. The URL's parser has already applied IDNA, and read numbers as IPv4 addresses.
fn host(url: &Url) -> String {
    let of_address = |address: IpAddr| match address.to_canonical() {
        // Linux connects an unspecified address to this machine.
        address if address.is_loopback() || address.is_unspecified() => LOOPBACK.to_owned(),
        address => address.to_string(),
    };
    match url.host() {
        Some(Host::Ipv4(address)) => of_address(address.into()),
        Some(Host::Ipv6(address)) => of_address(address.into()),
        Some(Host::Domain(name)) => match name.trim_end_matches('.') {
            name if name == LOOPBACK || name.ends_with(".localhost") => LOOPBACK.to_owned(),
            name if LOOPBACK_NAMES.contains(&name) || is_own_name(name) => LOOPBACK.to_owned(),
            name => name.to_owned(),
        },
        None => String::new(),
    }
}

/// Whether this is the name of this machine, which `/etc/hosts` usually has for the loopback device.
fn is_own_name(name: &str) -> bool {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .is_ok_and(|own| own.trim().eq_ignore_ascii_case(name))
}

/// Returns the port. Those of http and https count as one.
fn port(url: &Url) -> u16 {
    match url.port_or_known_default() {
        None | Some(443) => 80,
        Some(port) => port,
    }
}

/// Whether both URLs have the same path for a server that reads paths loosely. With `and_below`, that of `url` need only
/// begin with that of `required`.
fn has_path(url: &Url, required: &Url, and_below: bool) -> bool {
    let (path, wanted) = (loose_path(url.path()), loose_path(required.path()));
    match and_below {
        // `/a/*` does not match `/ab`, and `/a*` does.
        true if !required.path().ends_with('/') => path.starts_with(wanted.trim_end_matches('/')),
        true => path.starts_with(&wanted),
        false => path == wanted,
    }
}

/// Returns what a path is for servers that decode it, ignore its case, empty segments and parameters (`;x`), and resolve
/// `..` after that. Ends with `/`.
fn loose_path(path: &str) -> String {
    let mut decoded = percent_decoded(path);
    loop {
        let again = percent_decoded(&decoded);
        // Each decoding makes the text shorter, so this ends.
        if again == decoded {
            break;
        }
        decoded = again;
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split(['/', '\\']) {
        match segment.split(';').next().unwrap_or_default() {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let joined: String = segments.iter().map(|segment| format!("/{}", segment.to_lowercase())).collect();
    joined + "/"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    #[test]
    fn an_approved_address_is_an_origin_and_a_path() {
        for (address, required, and_below, expected) in [
            ("https://a.example/mcp", "https://a.example/mcp", false, true),
            ("https://a.example:443/x/../mcp?team=1#x", "https://a.example/mcp", false, true),
            ("https://user@a.example/mcp", "https://a.example/mcp", false, true),
            ("https://a.example/mcp/more", "https://a.example/mcp", false, false),
            ("https://a.example/mcp/more", "https://a.example/mcp/", true, true),
            ("https://a.example/mcp/../more", "https://a.example/mcp/", true, false),
            ("https://a.example/mcp/%2e%2e%2fmore", "https://a.example/mcp/", true, false),
            ("https://a.example/mcp/..%5cmore", "https://a.example/mcp/", true, false),
            ("https://a.example/mcp/%252e%252e%252fmore", "https://a.example/mcp/", true, false),
            ("http://a.example/mcp", "https://a.example/mcp", false, false),
            ("https://a.example:8443/mcp", "https://a.example/mcp", false, false),
            ("https://a.example.org/mcp", "https://a.example/mcp", false, false),
            ("https://a.example@b.example/mcp", "https://a.example/mcp", false, false),
            ("https://a.example./mcp", "https://a.example/mcp", false, false),
            ("https://a.example/%6dcp", "https://a.example/mcp", false, false),
        ] {
            assert_eq!(is_at(&url(address), &url(required), and_below), expected, "{address} as {required}");
        }
    }

    #[test]
    fn a_denied_address_is_denied_in_every_spelling() {
        let denied = ["https://bücher.example/mcp", "http://10.0.0.1:8080/a/b", "http://localhost:9000/x*"];
        let [name, address, local] = denied.map(|text| url(text.trim_end_matches('*')));
        for (spelling, denied, and_below) in [
            ("https://xn--bcher-kva.example/mcp", &name, false),
            ("https://BÜCHER.example./mcp", &name, false),
            ("http://bücher.example/mcp", &name, false),
            ("http://bücher.example:443/mcp?x#y", &name, false),
            ("https://u:p@bücher.example//mcp/", &name, false),
            ("https://bücher.example/%6D%63%70", &name, false),
            ("https://bücher.example/%256Dcp", &name, false),
            ("https://bücher.example/MCP;v=1", &name, false),
            ("https://bücher.example/x/..%2Fmcp", &name, false),
            ("http://167772161:8080/a/b", &address, false),
            ("http://0x0a.1:8080/a/b", &address, false),
            ("https://[::ffff:10.0.0.1]:8080/a/./b", &address, false),
            ("http://10.0.0.1.:8080/a%2fb", &address, false),
            ("http://127.1:9000/x/y", &local, true),
            ("http://[::1]:9000/xy", &local, true),
            ("https://0.0.0.0:9000/%78", &local, true),
            ("http://a.localhost:9000/x", &local, true),
            ("http://ip6-localhost:9000/x", &local, true),
            ("http://localhost.localdomain:9000/x", &local, true),
        ] {
            assert!(may_reach(&url(spelling), denied, and_below), "{spelling} as {denied}");
        }
        for (other, denied, and_below) in [
            ("https://bücher.example/mcp2", &name, false),
            ("https://bücher.example:8443/mcp", &name, false),
            ("https://www.bücher.example/mcp", &name, false),
            ("http://10.0.0.2:8080/a/b", &address, false),
            ("http://10.0.0.1/a/b", &address, false),
            ("http://localhost:9000/y", &local, true),
        ] {
            assert!(!may_reach(&url(other), denied, and_below), "{other} as {denied}");
        }
        assert!(!may_reach(&url("https://h/ab"), &url("https://h/a/"), true));
        assert!(may_reach(&url("https://h/ab"), &url("https://h/"), true));
    }
}
