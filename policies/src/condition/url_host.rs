//! The policy condition `host`: the host of an HTTP or HTTPS URL.
//!
//! Programs disagree about the host of malformed URLs. A condition on a URL that programs might read in different
//! ways cannot be evaluated.

use std::fmt;

use url::{Host as UrlHost, Url};

use super::ConditionResult;

/// A pattern for the hosts of URLs: one host, or all hosts below a domain (`*.example.com` for the domain
/// `example.com`). It matches URLs of one port: the port in the pattern or, if there is none, the default port of the
/// URL's scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPattern {
    name: HostName,
    /// The port that the URL must have; `None` requires the default port of the URL's scheme.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostName {
    One(UrlHost),
    /// All host names that end with this suffix, which starts with a dot: `.example.com` for `*.example.com`.
    Below(String),
}

impl HostPattern {
    /// Parses a host pattern such as `api.github.com`, `*.example.com` or `127.0.0.1:8080`.
    ///
    /// # Errors
    /// Returns why the text is not a host pattern.
    pub(crate) fn new(text: &str) -> Result<Self, &'static str> {
        if text.contains("://") {
            return Err("a host has no scheme");
        }
        if text.contains(['/', '?', '#', '@', '\\', '%'])
            || text.chars().any(|c| c.is_whitespace() || c.is_control())
        {
            return Err("a host has no path, user or spaces");
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => {
                (name, Some(port.parse().map_err(|_| "after the `:` there must be a port, from 0 to 65535")?))
            }
            _ => (text, None),
        };
        let (name, below) = name.strip_prefix("*.").map_or((name, false), |rest| (rest, true));
        if name.contains('*') {
            return Err("a `*` is allowed only as the whole first label of a host");
        }
        let host = UrlHost::parse(name).map(canonical_host).map_err(|_| "this is not a host")?;
        let name = match host {
            UrlHost::Domain(name) if name.is_empty() => return Err("this is not a host"),
            UrlHost::Domain(name) if below => HostName::Below(format!(".{name}")),
            _ if below => return Err("an IP address has no subdomains"),
            one => HostName::One(one),
        };
        Ok(Self { name, port })
    }

    fn matches(&self, host: &UrlHost) -> bool {
        match (&self.name, host) {
            (HostName::One(one), host) => one == host,
            (HostName::Below(end), UrlHost::Domain(name)) => {
                name.len() > end.len() && name.ends_with(end.as_str())
            }
            (HostName::Below(_), _) => false,
        }
    }
}

pub(super) fn evaluate(hosts: &[HostPattern], text: &str) -> ConditionResult {
    let (host, port) = match read(text) {
        Ok(read) => read,
        Err(unknown) => return ConditionResult::Unknown(unknown),
    };
    let mut has_other_port = false;
    for matching in hosts.iter().filter(|known| known.matches(&host)) {
        match (matching.port, port) {
            (None, None) => return ConditionResult::Met,
            (None, Some(_)) => has_other_port = true,
            (Some(known), Some(port)) if known == port => return ConditionResult::Met,
            (Some(known), None) if Some(known) == default_port(text) => return ConditionResult::Met,
            (Some(_), _) => {}
        }
    }
    if has_other_port {
        ConditionResult::Unknown("its port is not the default port of its scheme")
    } else {
        ConditionResult::NotMet
    }
}

/// Returns the URL's host and port. The port is `None` if it is the default port of the scheme.
///
/// # Errors
/// Returns why the host of the URL cannot be determined.
fn read(text: &str) -> Result<(UrlHost, Option<u16>), &'static str> {
    let strange = |c: char| c == '\\' || c.is_control() || c.is_whitespace();
    let (scheme, rest) = text.split_once("://").ok_or("it is not an http or https URL")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err("it is not an http or https URL");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("the URL has user information");
    }
    if authority.is_empty() || authority.contains('%') || text.contains(strange) {
        return Err("programs may read the URL in different ways");
    }
    let url = Url::parse(text).map_err(|_| "it is not an http or https URL")?;
    let host = url.host().ok_or("it is not an http or https URL")?.to_owned();
    Ok((canonical_host(host), url.port()))
}

fn default_port(text: &str) -> Option<u16> {
    let scheme = text.split_once(':')?.0;
    Some(if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 })
}

/// Converts a host to its canonical form: removes a final dot, and turns an IPv4-mapped IPv6 address into
/// IPv4.
fn canonical_host(host: UrlHost) -> UrlHost {
    match host {
        UrlHost::Domain(name) => UrlHost::Domain(name.strip_suffix('.').unwrap_or(&name).to_owned()),
        UrlHost::Ipv6(address) => address.to_ipv4_mapped().map_or(UrlHost::Ipv6(address), UrlHost::Ipv4),
        host @ UrlHost::Ipv4(_) => host,
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            HostName::One(host) => write!(f, "\"{host}"),
            HostName::Below(end) => write!(f, "\"*{end}"),
        }?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))?;
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_recognised_in_every_spelling() {
        let hosts: Vec<HostPattern> =
            ["api.github.com", "*.example.com", "bücher.example", "127.0.0.1:8080", "[::1]", "h:443"]
                .map(|text| HostPattern::new(text).unwrap())
                .into();
        for url in [
            "https://api.github.com/repos",
            "HTTPS://API.GitHub.com./x",
            "http://api.github.com:80",
            "https://a.example.com?q",
            "https://a.b.example.com#f",
            "https://xn--bcher-kva.example/",
            "https://BÜCHER.example/",
            "http://127.0.0.1:8080/",
            "http://0x7f.1:8080/",
            "http://[::ffff:127.0.0.1]:8080/",
            "http://[0:0::1]/",
            "https://h/",
            "https://h:443/",
        ] {
            assert_eq!(evaluate(&hosts, url), ConditionResult::Met, "{url}");
        }
        for url in [
            "https://github.com/",
            "https://example.com/",
            "https://notexample.com/",
            "https://api.github.com.evil.org/",
            "https://evil.org/api.github.com",
            "https://evil.org/?://api.github.com/",
            "http://127.0.0.1/",
            "http://h/",
        ] {
            assert_eq!(evaluate(&hosts, url), ConditionResult::NotMet, "{url}");
        }
        for url in [
            "https://api.github.com@evil.org/",
            "https://api.github.com:x@evil.org/",
            "https://@api.github.com/",
            "https://evil.org\\@api.github.com/",
            "https://api.github.com\\.evil.org/",
            "https:api.github.com",
            "https:///api.github.com/",
            "//api.github.com/",
            "api.github.com",
            "ftp://api.github.com/",
            "file:///etc/passwd",
            "javascript://api.github.com/%0aalert(1)",
            " https://api.github.com/",
            "https://api.github.com/\n",
            "https://api\u{9}.github.com/",
            "https://api%2egithub.com/",
            "https://api.github.com:8443/",
            "https://api.github.com:99999/",
            "https://",
            "",
        ] {
            assert!(matches!(evaluate(&hosts, url), ConditionResult::Unknown(_)), "{url}");
        }
    }

    #[test]
    fn an_invalid_host_pattern_is_rejected() {
        for text in [
            "",
            "*",
            "*.",
            "a.*",
            "a*.b",
            "https://a",
            "a/b",
            "u@a",
            "a:x",
            "a:70000",
            "*.1.2.3.4",
            "a b",
            "%41",
            ".",
        ] {
            assert!(HostPattern::new(text).is_err(), "{text}");
        }
        for (text, shown) in [("A.b:1", "\"a.b:1\""), ("*.B.", "\"*.b\""), ("[::1]:2", "\"[::1]:2\"")] {
            assert_eq!(HostPattern::new(text).map(|host| host.to_string()), Ok(shown.to_owned()));
        }
    }
}
