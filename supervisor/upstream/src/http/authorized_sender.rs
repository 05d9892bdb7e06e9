//! Sends HTTP requests with the credentials of a server.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use lockhouse_mcp::client::http::HttpSender;
use lockhouse_mcp::client::{FailureSignal, HttpError};
use reqwest::{RequestBuilder, Response};

use crate::auth::{Challenge, TokenProvider};

/// Sends HTTP requests to the endpoint of one upstream server, with its access token.
pub(super) struct AuthorizedSender {
    authority: TokenProvider,
    /// `HOST:PORT` for error messages.
    host_and_port: String,
    failure_signal: FailureSignal,
}

impl AuthorizedSender {
    pub(super) fn new(
        authority: TokenProvider,
        host_and_port: String,
        failure_signal: FailureSignal,
    ) -> Self {
        Self { authority, host_and_port, failure_signal }
    }

    async fn send_with(
        &self,
        request: RequestBuilder,
        token: Option<&HeaderValue>,
    ) -> Result<Response, HttpError> {
        let request = match token {
            Some(token) => request.header(AUTHORIZATION, token),
            None => request,
        };
        request.send().await.map_err(|error| {
            let fault = HttpError::from_reqwest(&error, &self.host_and_port);
            if error.is_connect() {
                self.failure_signal.suspect();
            }
            fault
        })
    }
}

impl HttpSender for AuthorizedSender {
    /// Sends a request with the server's access token, if there is one. If the server refuses the token, sends the
    /// request again with a renewed token.
    fn send(&self, request: RequestBuilder) -> BoxFuture<'_, Result<Response, HttpError>> {
        async move {
            let again = request.try_clone();
            let token = self.authority.token().await?;
            let response = self.send_with(request, token.as_ref()).await?;
            let Some(challenge) = Challenge::from_response(&response) else { return Ok(response) };
            let renewed = self.authority.renewed(token, &challenge).await?;
            let response = match again {
                Some(request) => self.send_with(request, Some(&renewed)).await?,
                None => response,
            };
            match Challenge::from_response(&response) {
                Some(challenge) => Err(self.authority.refused(&challenge)),
                None => Ok(response),
            }
        }
        .boxed()
    }

    fn redact(&self, text: &str) -> String {
        self.authority.redact(text)
    }
}
