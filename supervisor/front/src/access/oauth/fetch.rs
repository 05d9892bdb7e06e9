//! How the keys of an authorization server are had: from where it says, in bounded time and size.

use std::time::Duration;

use lockhouse_base::files;
use reqwest::Client;
use reqwest::redirect::Policy;
use serde::Deserialize;
use url::Url;

use super::{KeySource, trusted_url};

const TIMEOUT: Duration = Duration::from_secs(10);
const BYTES_MAX: usize = 256 * 1024;

/// The way to them.
#[derive(Debug)]
pub(super) struct Fetch {
    source: KeySource,
    /// As its own description must say it.
    issuer: String,
    client: Client,
}

/// What an authorization server says of itself (RFC 8414, OpenID Connect Discovery).
#[derive(Deserialize)]
struct Described {
    issuer: String,
    jwks_uri: String,
}

impl Fetch {
    pub(super) fn new(source: KeySource, issuer: String) -> Result<Self, String> {
        // Who answers elsewhere is somebody else.
        let client =
            Client::builder().redirect(Policy::none()).timeout(TIMEOUT).connect_timeout(TIMEOUT).build();
        let client = client.map_err(|error| format!("TLS cannot be used: {error}"))?;
        Ok(Self { source, issuer, client })
    }

    /// A set of keys, as text.
    pub(super) async fn keys(&self) -> Result<String, String> {
        match &self.source {
            KeySource::File(path) => {
                let text = files::read_named(path, BYTES_MAX as u64);
                let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
                text.ok_or_else(|| format!("{} is not there", path.display()))
            }
            KeySource::Url(url) => self.get(url).await,
            KeySource::Issuer(issuer) => self.get(&self.discovered(issuer).await?).await,
        }
    }

    /// Where the issuer says that its keys are.
    async fn discovered(&self, issuer: &Url) -> Result<Url, String> {
        let mut reasons = Vec::new();
        for url in places(issuer) {
            let described = match self.get(&url).await {
                Ok(text) => text,
                Err(reason) => {
                    reasons.push(reason);
                    continue;
                }
            };
            let described: Described = serde_json::from_str(&described)
                .map_err(|_| format!("{url}: no description of an authorization server"))?;
            if described.issuer != self.issuer {
                return Err(format!("{url} describes another issuer than the one that is configured"));
            }
            return trusted_url(&described.jwks_uri);
        }
        Err(reasons.join("; "))
    }

    async fn get(&self, url: &Url) -> Result<String, String> {
        let told = |error: reqwest::Error| format!("{url}: {}", in_words(&error.without_url()));
        let mut response = self.client.get(url.clone()).send().await.map_err(told)?;
        if !response.status().is_success() {
            return Err(format!("{url}: it answered {}", response.status()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(told)? {
            if bytes.len() + chunk.len() > BYTES_MAX {
                return Err(format!("{url}: the answer has more than {BYTES_MAX} bytes"));
            }
            bytes.extend_from_slice(&chunk);
        }
        String::from_utf8(bytes).map_err(|_| format!("{url}: the answer is no text"))
    }
}

/// Where an issuer describes itself: one document of OAuth, one of OpenID Connect.
fn places(issuer: &Url) -> [Url; 2] {
    let path = issuer.path().trim_end_matches('/');
    let at = |path: &str| {
        let mut url = issuer.clone();
        url.set_path(path);
        url.set_query(None);
        url.set_fragment(None);
        url
    };
    [
        at(&format!("/.well-known/oauth-authorization-server{path}")),
        at(&format!("{path}/.well-known/openid-configuration")),
    ]
}

/// An error with what is behind it.
fn in_words(error: &reqwest::Error) -> String {
    let mut words = error.to_string();
    let mut behind = std::error::Error::source(error);
    while let Some(error) = behind {
        words = format!("{words}: {error}");
        behind = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_describes_itself_in_two_places() {
        let issuer = Url::parse("https://id.example.com/realms/team/").expect("a URL");
        let places = places(&issuer).map(String::from);
        assert_eq!(
            places,
            [
                "https://id.example.com/.well-known/oauth-authorization-server/realms/team",
                "https://id.example.com/realms/team/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn plain_http_is_for_this_machine_alone() {
        for good in
            ["https://id.example.com", "http://127.0.0.1:80/x", "http://[::1]/", "http://localhost:1/"]
        {
            assert!(trusted_url(good).is_ok(), "{good}");
        }
        for bad in [
            "http://id.example.com",
            "http://10.0.0.1",
            "file:///etc/passwd",
            "x",
            "http://localhost.example.com/",
        ] {
            assert!(trusted_url(bad).is_err(), "{bad}");
        }
    }
}
