//! Fetches the authorization server's public keys (JWKS) from a file or URL, with limits on time and size.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use lockhouse_base::files;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use url::Url;

use super::{KeySource, UntrustedUrl, trusted_url};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of an answer of the issuer, in bytes: its metadata, its keys, or a token.
/// Bound: AI clients.
const BYTES_MAX: usize = 256 * 1024;

/// Fetches the authorization server's public keys (JWKS) from the configured source.
#[derive(Debug)]
pub(super) struct JwksFetcher {
    source: KeySource,
    /// The issuer that the authorization server's metadata must name.
    issuer: String,
    client: Client,
}

/// The fields of the authorization server's metadata that Lockhouse reads (RFC 8414, OpenID Connect Discovery).
#[derive(Deserialize)]
struct ServerMetadata<T> {
    issuer: String,
    #[serde(flatten)]
    other: T,
}

/// Where the keys of the authorization server are.
#[derive(Deserialize)]
struct KeysMetadata {
    jwks_uri: String,
}

/// Why the JWKS could not be fetched.
#[derive(Debug, Error)]
pub(super) enum FetchError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path} does not exist")]
    NoFile { path: PathBuf },
    #[error("{url}: {}", error_chain(.source))]
    Request { url: Url, source: reqwest::Error },
    #[error("{url}: the server answered {status}")]
    Status { url: Url, status: StatusCode },
    #[error("{url}: the response has more than {BYTES_MAX} bytes")]
    TooLong { url: Url },
    #[error("{url}: the response is not text")]
    NotText { url: Url },
    #[error("{url}: the response is not authorization server metadata")]
    NoDescription { url: Url },
    #[error("{url} describes another issuer than the one that is configured")]
    OtherIssuer { url: Url },
    #[error(transparent)]
    KeysUrl(#[from] UntrustedUrl),
    /// The metadata could not be fetched from any well-known URL of the issuer. Has the error for each URL.
    #[error("{}", .0.iter().map(Self::to_string).collect::<Vec<_>>().join("; "))]
    Discovery(Vec<Self>),
}

impl JwksFetcher {
    pub(super) fn new(source: KeySource, issuer: String) -> Result<Self, reqwest::Error> {
        // Redirects are not followed: the target could belong to someone else.
        let client =
            Client::builder().redirect(Policy::none()).timeout(TIMEOUT).connect_timeout(TIMEOUT).build()?;
        Ok(Self { source, issuer, client })
    }

    /// Fetches the JWKS as JSON text.
    pub(super) async fn fetch_jwks(&self) -> Result<String, FetchError> {
        match &self.source {
            KeySource::File(path) => {
                let text = files::read_following_links(path, BYTES_MAX as u64);
                let text = text.map_err(|source| FetchError::File { path: path.clone(), source })?;
                text.ok_or_else(|| FetchError::NoFile { path: path.clone() })
            }
            KeySource::Url(url) => self.get(url).await,
            KeySource::Issuer(issuer) => self.get(&self.discover_jwks_url(issuer).await?).await,
        }
    }

    /// Returns the client, which follows no redirect.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Fetches the issuer's metadata, and returns its `jwks_uri`.
    async fn discover_jwks_url(&self, issuer: &Url) -> Result<Url, FetchError> {
        let metadata: KeysMetadata = self.fetch_metadata(issuer).await?;
        Ok(trusted_url(&metadata.jwks_uri)?)
    }

    /// Fetches the issuer's metadata, which must be of this issuer.
    pub(super) async fn fetch_metadata<T: DeserializeOwned>(&self, issuer: &Url) -> Result<T, FetchError> {
        let mut failures = Vec::new();
        for url in metadata_urls(issuer) {
            let metadata = match self.get(&url).await {
                Ok(text) => text,
                Err(error) => {
                    failures.push(error);
                    continue;
                }
            };
            let Ok(metadata) = serde_json::from_str::<ServerMetadata<T>>(&metadata) else {
                return Err(FetchError::NoDescription { url });
            };
            if metadata.issuer != self.issuer {
                return Err(FetchError::OtherIssuer { url });
            }
            return Ok(metadata.other);
        }
        Err(FetchError::Discovery(failures))
    }

    async fn get(&self, url: &Url) -> Result<String, FetchError> {
        let url = || url.clone();
        let broken = |error: reqwest::Error| FetchError::Request { url: url(), source: error.without_url() };
        let mut response = self.client.get(url()).send().await.map_err(broken)?;
        if !response.status().is_success() {
            return Err(FetchError::Status { url: url(), status: response.status() });
        }
        let bytes = bounded_body(&mut response).await.map_err(broken)?;
        let bytes = bytes.ok_or_else(|| FetchError::TooLong { url: url() })?;
        String::from_utf8(bytes).map_err(|_| FetchError::NotText { url: url() })
    }
}

/// Reads the body of a response. Returns `None` if it has more than [`BYTES_MAX`] bytes.
pub(super) async fn bounded_body(response: &mut Response) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > BYTES_MAX {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(bytes))
}

/// Returns the well-known metadata URLs of an issuer: first that of OAuth (RFC 8414), then that of OpenID Connect.
fn metadata_urls(issuer: &Url) -> [Url; 2] {
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

/// Formats an error together with the errors that caused it.
fn error_chain(error: &reqwest::Error) -> String {
    let mut words = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        words = format!("{words}: {error}");
        source = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_has_two_metadata_urls() {
        let issuer = Url::parse("https://id.example.com/realms/team/").expect("a URL");
        let metadata_urls = metadata_urls(&issuer).map(String::from);
        assert_eq!(
            metadata_urls,
            [
                "https://id.example.com/.well-known/oauth-authorization-server/realms/team",
                "https://id.example.com/realms/team/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn plain_http_is_trusted_for_loopback_only() {
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
