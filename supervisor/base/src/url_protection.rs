//! Whether others can read or change requests to a URL.

use url::{Host, Url};

/// Whether nobody on a network can read or change requests to a URL: it is `https`, or `http` of this host.
#[must_use]
pub fn is_protected(url: &Url) -> bool {
    url.scheme() == "https" || url.scheme() == "http" && is_of_this_host(url)
}

/// Whether the host of a URL is this host: `localhost` or a loopback address. Names below `localhost` are not, since some
/// resolvers ask a name server for them.
#[must_use]
pub fn is_of_this_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_protected_by_tls_or_stay_on_this_host() {
        for (text, expected) in [
            ("https://example.com/", true),
            ("https://192.0.2.1:8443/", true),
            ("http://localhost/", true),
            ("http://LOCALHOST:80/", true),
            ("http://127.0.0.1/", true),
            ("http://127.9.9.9:1/", true),
            ("http://[::1]/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://0x7f000001/", true),
            ("http://example.com/", false),
            ("http://a.localhost/", false),
            ("http://127.0.0.1.example.com/", false),
            ("http://192.0.2.1/", false),
            ("http://0.0.0.0/", false),
            ("ftp://localhost/", false),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
        ] {
            let url = Url::parse(text).expect("a URL");
            assert_eq!(is_protected(&url), expected, "{text}");
        }
    }
}
