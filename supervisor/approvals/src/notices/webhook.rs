//! Sends notices to a URL, signed as the Standard Webhooks specification says, version 1.0.0.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use data_encoding::BASE64;
use lockhouse_base::url_protection::is_protected;
use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use url::Url;

use super::DeliveryError;
use super::message::Message;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The sizes that the specification permits for the key, in bytes.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A receiver that gets each notice in a POST request. Its debug output hides the path of the URL, which may be a secret.
#[derive(Clone)]
pub struct Webhook {
    url: Url,
    key: hmac::Key,
    client: Client,
}

/// Why a webhook cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error("url: expected an https URL, or an http URL of a loopback address")]
    Url,
    #[error(
        "secret: expected whsec_ and then 24 to 64 bytes in Base64, as `openssl rand -base64 32` prints them"
    )]
    Key,
    #[error("TLS cannot be used: {0}")]
    Tls(#[from] reqwest::Error),
}

impl Webhook {
    /// Creates the receiver with the URL and the secret of the specification, `whsec_BASE64`.
    ///
    /// # Errors
    /// The URL or the secret cannot be used.
    pub fn new(url: &str, secret: &str) -> Result<Self, WebhookError> {
        let url = Url::parse(url).map_err(|_| WebhookError::Url)?;
        if !is_protected(&url) {
            return Err(WebhookError::Url);
        }
        let key = secret.trim().strip_prefix("whsec_").and_then(|key| BASE64.decode(key.as_bytes()).ok());
        let key = key.filter(|key| KEY_BYTES.contains(&key.len())).ok_or(WebhookError::Key)?;
        // No redirect is followed: the target could belong to someone else.
        let client = Client::builder().redirect(Policy::none()).connect_timeout(CONNECT_TIMEOUT).build()?;
        Ok(Self { url, key: hmac::Key::new(HMAC_SHA256, &key), client })
    }

    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Sends a message. The body of the response is not read.
    pub(super) async fn send(&self, message: &Message) -> Result<(), DeliveryError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", now)
            .header("webhook-signature", self.signature(message, now))
            .body(message.body.clone());
        let response = request.send().await.map_err(|error| DeliveryError::Request(error.without_url()))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(DeliveryError::Status(status.as_u16())),
        }
    }

    fn signature(&self, message: &Message, timestamp: u64) -> String {
        let Message { id, body } = message;
        let tag = hmac::sign(&self.key, format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", BASE64.encode(tag.as_ref()))
    }
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("host", &self.host()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn a_message_has_the_signature_of_the_specification() {
        let webhook = Webhook::new("https://example.com/hook", SECRET).expect("valid");
        let message =
            Message { id: "msg_p5jXN8AQM9LWM0D4loKWxJek".into(), body: r#"{"test": 2432232314}"#.into() };
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(webhook.signature(&message, 1_614_265_330), expected);
    }

    #[test]
    fn a_webhook_is_protected_or_of_this_host_and_has_a_key() {
        let error = |url: &str, secret: &str| Webhook::new(url, secret).err().map(|error| error.to_string());
        for url in ["https://example.com/hook", "http://127.0.0.1:80/", "http://localhost/"] {
            assert_eq!(error(url, SECRET), None, "{url}");
        }
        for url in
            ["http://example.com/", "ftp://example.com/", "example.com", "http://127.0.0.1.example.com/"]
        {
            assert!(error(url, SECRET).is_some_and(|error| error.starts_with("url:")), "{url}");
        }
        for secret in ["", "whsec_", "whsec_AAAA", &SECRET[6..], "whsec_!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!"] {
            let error = error("https://example.com/", secret).expect("refused");
            assert!(error.starts_with("secret:"), "{secret}: {error}");
        }
        let shown = format!("{:?}", Webhook::new("https://example.com/SECRET", SECRET).expect("valid"));
        assert!(shown.contains("example.com") && !shown.contains("SECRET"), "{shown}");
    }
}
