//! The OAuth redirect endpoint of `lockhouse server login`: an HTTP listener on the loopback address that waits for the
//! request with the login's `state` parameter.

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const PATH: &str = "/callback";
/// The maximum size in bytes of a request to the redirect endpoint.
const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// How long a request to the redirect endpoint may take. The limit is needed because browsers open connections in
/// advance and send nothing on them.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECTIONS_MAX: usize = 16;

/// The loopback listener for the OAuth redirect.
pub(super) struct Callback {
    listener: TcpListener,
    address: String,
}

impl Callback {
    /// Listens on `port` of the loopback address, or on any free port if `port` is 0.
    pub(super) async fn listen(port: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let address = format!("http://127.0.0.1:{}{PATH}", listener.local_addr()?.port());
        Ok(Self { listener, address })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Waits for the redirect whose `state` parameter is `state`, and returns its full address.
    pub(super) async fn wait_for_redirect(&self, state: &str) -> String {
        let mut requests = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if requests.len() < CONNECTIONS_MAX => {
                    if let Ok((stream, _)) = accepted {
                        requests.push(timeout(REQUEST_TIMEOUT, self.handle_request(stream, state)));
                    }
                }
                Some(Ok(Some(address))) = requests.next(), if !requests.is_empty() => return address,
            }
        }
    }

    async fn handle_request(&self, mut stream: TcpStream, state: &str) -> Option<String> {
        let mut request = Vec::new();
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).await.ok()?;
            request.extend_from_slice(&piece[..read]);
            if read == 0 || request.len() > REQUEST_BYTES_MAX {
                return None;
            }
        }
        let found = matching_query(&request, state).map(|query| format!("{}?{query}", self.address));
        let (status, words) = match found {
            Some(_) => (
                "200 OK",
                "Lockhouse has received the answer. You can close this page; the terminal shows the result.",
            ),
            None => ("404 Not Found", "This request does not belong to the login in progress."),
        };
        let page = format!("<!doctype html><meta charset=utf-8><title>Lockhouse</title><p>{words}</p>\n");
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
            page.len()
        );
        stream.write_all(format!("{head}{page}").as_bytes()).await.ok()?;
        let _ = stream.shutdown().await;
        found
    }
}

/// Returns the query string of a GET request for the callback path if its `state` parameter is `state`. `None` for any
/// other request.
fn matching_query(request: &[u8], state: &str) -> Option<String> {
    let request = std::str::from_utf8(request).ok()?;
    let target = request.lines().next()?.strip_prefix("GET ")?.split(' ').next()?;
    let query = target.strip_prefix(PATH)?.strip_prefix('?')?;
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.any(|(key, value)| key == "state" && value == state).then(|| query.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_with_the_state_completes_the_login() {
        for (request, answer) in [
            ("GET /callback?code=a&state=s%201 HTTP/1.1\r\n\r\n", Some("code=a&state=s%201")),
            ("GET /callback?error=denied&state=s+1 HTTP/1.1\r\n\r\n", Some("error=denied&state=s+1")),
            ("GET /callback?code=a&state=other HTTP/1.1\r\n\r\n", None),
            ("GET /favicon.ico HTTP/1.1\r\n\r\n", None),
            ("POST /callback?code=a&state=s%201 HTTP/1.1\r\n\r\n", None),
        ] {
            assert_eq!(matching_query(request.as_bytes(), "s 1").as_deref(), answer, "{request}");
        }
    }
}
