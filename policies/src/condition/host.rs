//! Hosts of URLs.
//!
//! Programs do not agree on what the host of a strange URL is. One that they might read in different ways cannot be judged.

use std::fmt;

use url::{Host as UrlHost, Url};

use super::Judged;

/// A host that URLs may name, with or without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    name: Name,
    /// `None`: the one of the URL's scheme.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    One(UrlHost),
    /// Every name that ends so; it begins with a dot.
    Below(String),
}

impl Host {
    /// # Errors
    /// Why this is no host.
    pub(crate) fn new(text: &str) -> Result<Self, &'static str> {
        if text.contains("://") {
            return Err("a host has no scheme");
        }
        if text.contains(['/', '?', '#', '@', '\\', '%'])
            || text.chars().any(|c| c.is_whitespace() || c.is_control())
        {
            return Err("this is more than a host");
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => {
                (name, Some(port.parse().map_err(|_| "after the `:` there must be a port, from 0 to 65535")?))
            }
            _ => (text, None),
        };
        let (name, below) = name.strip_prefix("*.").map_or((name, false), |rest| (rest, true));
        if name.contains('*') {
            return Err("a `*` may only be the whole first part of a host");
        }
        let host = UrlHost::parse(name).map(plain).map_err(|_| "this is no host")?;
        let name = match host {
            UrlHost::Domain(name) if name.is_empty() => return Err("this is no host"),
            UrlHost::Domain(name) if below => Name::Below(format!(".{name}")),
            _ if below => return Err("an address has no names below it"),
            one => Name::One(one),
        };
        Ok(Self { name, port })
    }

    fn fits(&self, host: &UrlHost) -> bool {
        match (&self.name, host) {
            (Name::One(one), host) => one == host,
            (Name::Below(end), UrlHost::Domain(name)) => {
                name.len() > end.len() && name.ends_with(end.as_str())
            }
            (Name::Below(_), _) => false,
        }
    }
}

pub(super) fn judge(hosts: &[Host], text: &str) -> Judged {
    let (host, port) = match read(text) {
        Ok(read) => read,
        Err(unknown) => return Judged::Unknown(unknown),
    };
    let mut elsewhere = false;
    for fitting in hosts.iter().filter(|known| known.fits(&host)) {
        match (fitting.port, port) {
            (None, None) => return Judged::Met,
            (None, Some(_)) => elsewhere = true,
            (Some(known), Some(port)) if known == port => return Judged::Met,
            (Some(known), None) if Some(known) == default_port(text) => return Judged::Met,
            (Some(_), _) => {}
        }
    }
    if elsewhere { Judged::Unknown("its port is not the one of its scheme") } else { Judged::NotMet }
}

/// The host, and the port where it is not the one of the scheme.
fn read(text: &str) -> Result<(UrlHost, Option<u16>), &'static str> {
    let strange = |c: char| c == '\\' || c.is_control() || c.is_whitespace();
    let (scheme, rest) = text.split_once("://").ok_or("it is no http or https URL")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err("it is no http or https URL");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("its URL has user information");
    }
    if authority.is_empty() || authority.contains('%') || text.contains(strange) {
        return Err("programs may read its URL in different ways");
    }
    let url = Url::parse(text).map_err(|_| "it is no http or https URL")?;
    let host = url.host().ok_or("it is no http or https URL")?.to_owned();
    Ok((plain(host), url.port()))
}

fn default_port(text: &str) -> Option<u16> {
    let scheme = text.split_once(':')?.0;
    Some(if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 })
}

/// The one spelling: without the dot at the end, and an IPv4 address as such.
fn plain(host: UrlHost) -> UrlHost {
    match host {
        UrlHost::Domain(name) => UrlHost::Domain(name.strip_suffix('.').unwrap_or(&name).to_owned()),
        UrlHost::Ipv6(address) => address.to_ipv4_mapped().map_or(UrlHost::Ipv6(address), UrlHost::Ipv4),
        host @ UrlHost::Ipv4(_) => host,
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Name::One(host) => write!(f, "\"{host}"),
            Name::Below(end) => write!(f, "\"*{end}"),
        }?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))?;
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_known_in_each_of_its_spellings() {
        let hosts: Vec<Host> =
            ["api.github.com", "*.example.com", "bücher.example", "127.0.0.1:8080", "[::1]", "h:443"]
                .map(|text| Host::new(text).unwrap())
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
            assert_eq!(judge(&hosts, url), Judged::Met, "{url}");
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
            assert_eq!(judge(&hosts, url), Judged::NotMet, "{url}");
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
            assert!(matches!(judge(&hosts, url), Judged::Unknown(_)), "{url}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
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
            assert!(Host::new(text).is_err(), "{text}");
        }
        for (text, shown) in [("A.b:1", "\"a.b:1\""), ("*.B.", "\"*.b\""), ("[::1]:2", "\"[::1]:2\"")] {
            assert_eq!(Host::new(text).map(|host| host.to_string()), Ok(shown.to_owned()));
        }
    }
}
