//! The login of a person in a browser: the authorization code grant with PKCE (RFC 7636) at the issuer of access tokens. The token
//! is verified like that of an AI client.

use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::BASE64URL_NOPAD;
use parking_lot::Mutex;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use url::{Url, form_urlencoded};

use super::OauthSettings;
use super::jwks_fetch::{FetchError, JwksFetcher, bounded_body};
use super::{KeySource, trusted_url};

/// Maximum time for the response with a token.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Time after which the addresses of the issuer are fetched again.
const ENDPOINTS_LIFETIME: Duration = Duration::from_secs(600);
/// Bytes of randomness in a state and a verifier.
const RANDOM_BYTES: usize = 32;

/// Lockhouse as a client of the issuer.
#[derive(Clone)]
pub struct CodeClient {
    pub client_id: String,
    /// `None` for a public client.
    pub client_secret: Option<String>,
    pub scopes: Vec<String>,
}

/// Prints no secret.
impl std::fmt::Debug for CodeClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeClient").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// Logs people in at the issuer of access tokens.
#[derive(Debug)]
pub struct CodeLogin {
    client: CodeClient,
    issuer: String,
    /// What tokens must be for.
    resource: String,
    metadata: JwksFetcher,
    issuer_url: Url,
    /// The addresses of the issuer, and when they were fetched. Anybody can begin a login, and asks the issuer for nothing.
    endpoints: Mutex<Option<(Instant, Endpoints)>>,
}

/// A login whose browser is at the issuer. It has secrets, so it has no `Debug`.
pub struct BegunLogin {
    /// Where the browser goes.
    pub address: Url,
    /// What the browser brings back.
    pub state: String,
    verifier: String,
    redirect: String,
}

/// Why nobody is logged in.
#[derive(Debug, thiserror::Error)]
pub enum CodeLoginError {
    #[error("the kernel provides no random numbers: {0}")]
    Random(#[from] getrandom::Error),
    #[error("the issuer's metadata cannot be used: {0}")]
    Metadata(String),
    #[error("the issuer has no {0} that can be used")]
    NoEndpoint(&'static str),
    #[error("another issuer answered")]
    OtherIssuer,
    #[error("the issuer cannot be reached")]
    Unreachable,
    /// The text is the error code of the answer.
    #[error("the issuer refused the login: {0}")]
    Refused(String),
    #[error("the issuer's answer is no token")]
    Answer,
}

/// The addresses of the issuer (RFC 8414).
#[derive(Clone, Debug, Deserialize)]
struct Endpoints {
    authorization_endpoint: String,
    token_endpoint: String,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: String,
}

impl CodeLogin {
    /// # Errors
    /// TLS cannot be used.
    pub fn new(settings: &OauthSettings, client: CodeClient) -> Result<Self, reqwest::Error> {
        let issuer = settings.issuer_text.clone();
        let source = KeySource::Issuer(settings.issuer.clone());
        let metadata = JwksFetcher::new(source, issuer.clone())?;
        let resource = settings.resource.to_string();
        let issuer_url = settings.issuer.clone();
        Ok(Self { client, issuer, resource, metadata, issuer_url, endpoints: Mutex::default() })
    }

    /// Begins a login. The browser returns to `redirect`.
    ///
    /// # Errors
    /// [`CodeLoginError`] if the issuer cannot be used.
    pub async fn begin(&self, redirect: &str) -> Result<BegunLogin, CodeLoginError> {
        let endpoints = self.endpoints().await?;
        let address = trusted_url(&endpoints.authorization_endpoint);
        let mut address = address.map_err(|_| CodeLoginError::NoEndpoint("authorization endpoint"))?;
        let (state, verifier) = (random()?, random()?);
        let challenge = BASE64URL_NOPAD.encode(digest(&SHA256, verifier.as_bytes()).as_ref());
        let scope = self.client.scopes.join(" ");
        address.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.client.client_id),
            ("redirect_uri", redirect),
            ("scope", &scope),
            ("resource", &self.resource),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        Ok(BegunLogin { address, state, verifier, redirect: redirect.to_owned() })
    }

    /// Exchanges the code with which the browser returned, and returns the access token. `issuer` is the issuer that the
    /// browser brings (RFC 9207).
    ///
    /// # Errors
    /// [`CodeLoginError`] if there is no token.
    pub async fn finish(
        &self,
        login: BegunLogin,
        code: &str,
        issuer: Option<&str>,
    ) -> Result<String, CodeLoginError> {
        if issuer.is_some_and(|issuer| issuer != self.issuer) {
            return Err(CodeLoginError::OtherIssuer);
        }
        let endpoints = self.endpoints().await?;
        let address = trusted_url(&endpoints.token_endpoint);
        let address = address.map_err(|_| CodeLoginError::NoEndpoint("token endpoint"))?;
        let CodeClient { client_id, client_secret, .. } = &self.client;
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &login.redirect),
            ("code_verifier", &login.verifier),
            ("resource", &self.resource),
        ];
        let request = self.metadata.client().post(address).timeout(TIMEOUT);
        let request = match client_secret {
            Some(secret) => request.basic_auth(client_id, Some(secret)),
            None => {
                fields.push(("client_id", client_id));
                request
            }
        };
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
        let mut response = request.send().await.map_err(|_| CodeLoginError::Unreachable)?;
        let body = bounded_body(&mut response).await.map_err(|_| CodeLoginError::Unreachable)?;
        let body = body.ok_or(CodeLoginError::Answer)?;
        if !response.status().is_success() {
            let error = serde_json::from_slice::<ErrorAnswer>(&body).map(|answer| answer.error);
            return Err(CodeLoginError::Refused(error.unwrap_or_else(|_| response.status().to_string())));
        }
        let answer: TokenAnswer = serde_json::from_slice(&body).map_err(|_| CodeLoginError::Answer)?;
        Ok(answer.access_token)
    }

    async fn endpoints(&self) -> Result<Endpoints, CodeLoginError> {
        let known = self.endpoints.lock().clone();
        if let Some((_, endpoints)) = known.filter(|(at, _)| at.elapsed() < ENDPOINTS_LIFETIME) {
            return Ok(endpoints);
        }
        let metadata = self.metadata.fetch_metadata(&self.issuer_url).await;
        let endpoints: Endpoints =
            metadata.map_err(|error: FetchError| CodeLoginError::Metadata(error.to_string()))?;
        *self.endpoints.lock() = Some((Instant::now(), endpoints.clone()));
        Ok(endpoints)
    }
}

fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(BASE64URL_NOPAD.encode(&bytes))
}
