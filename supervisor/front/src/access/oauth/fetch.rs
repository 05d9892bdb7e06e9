//! How the keys of an authorization server are had: from where it says, in bounded time and size.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use lockhouse_base::files;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use serde::Deserialize;
use thiserror::Error;
use url::Url;

use super::{KeySource, UntrustedUrl, trusted_url};

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

/// Why there are no keys.
#[derive(Debug, Error)]
pub(super) enum FetchError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path} is not there")]
    NoFile { path: PathBuf },
    #[error("{url}: {}", in_words(.source))]
    Request { url: Url, source: reqwest::Error },
    #[error("{url}: it answered {status}")]
    Status { url: Url, status: StatusCode },
    #[error("{url}: the answer has more than {BYTES_MAX} bytes")]
    TooLong { url: Url },
    #[error("{url}: the answer is no text")]
    NoText { url: Url },
    #[error("{url}: no description of an authorization server")]
    NoDescription { url: Url },
    #[error("{url} describes another issuer than the one that is configured")]
    OtherIssuer { url: Url },
    #[error(transparent)]
    KeysUrl(#[from] UntrustedUrl),
    /// Each place where the issuer may describe itself has failed.
    #[error("{}", .0.iter().map(Self::to_string).collect::<Vec<_>>().join("; "))]
    Discovery(Vec<Self>),
}

impl Fetch {
    pub(super) fn new(source: KeySource, issuer: String) -> Result<Self, reqwest::Error> {
        // Who answers elsewhere is somebody else.
        let client =
            Client::builder().redirect(Policy::none()).timeout(TIMEOUT).connect_timeout(TIMEOUT).build()?;
        Ok(Self { source, issuer, client })
    }

    /// A set of keys, as text.
    pub(super) async fn keys(&self) -> Result<String, FetchError> {
        match &self.source {
            KeySource::File(path) => {
                let text = files::read_named(path, BYTES_MAX as u64);
                let text = text.map_err(|source| FetchError::File { path: path.clone(), source })?;
                text.ok_or_else(|| FetchError::NoFile { path: path.clone() })
            }
            KeySource::Url(url) => self.get(url).await,
            KeySource::Issuer(issuer) => self.get(&self.discovered(issuer).await?).await,
        }
    }

    /// Where the issuer says that its keys are.
    async fn discovered(&self, issuer: &Url) -> Result<Url, FetchError> {
        let mut failed = Vec::new();
        for url in places(issuer) {
            let described = match self.get(&url).await {
                Ok(text) => text,
                Err(error) => {
                    failed.push(error);
                    continue;
                }
            };
            let Ok(described) = serde_json::from_str::<Described>(&described) else {
                return Err(FetchError::NoDescription { url });
            };
            if described.issuer != self.issuer {
                return Err(FetchError::OtherIssuer { url });
            }
            return Ok(trusted_url(&described.jwks_uri)?);
        }
        Err(FetchError::Discovery(failed))
    }

    async fn get(&self, url: &Url) -> Result<String, FetchError> {
        let url = || url.clone();
        let broken = |error: reqwest::Error| FetchError::Request { url: url(), source: error.without_url() };
        let mut response = self.client.get(url()).send().await.map_err(broken)?;
        if !response.status().is_success() {
            return Err(FetchError::Status { url: url(), status: response.status() });
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            if bytes.len() + chunk.len() > BYTES_MAX {
                return Err(FetchError::TooLong { url: url() });
            }
            bytes.extend_from_slice(&chunk);
        }
        String::from_utf8(bytes).map_err(|_| FetchError::NoText { url: url() })
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
