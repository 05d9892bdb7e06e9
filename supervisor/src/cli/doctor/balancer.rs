//! `lockhouse doctor --balancer URL`: what a balancer in front of several hosts does with requests, found out as one of their clients
//! (docs/balancers.md). The hosts answer at `/balancer-check`, and run nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use lockhouse_messages::RequestId;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use thiserror::Error;
use url::Url;

use super::checklist::{Check, Checklist, Outcome};
use crate::cli::command_error::CommandError;

/// Time limit for each request. The longest one is the stream of events, of 2 s.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of the file with the token, in bytes.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;
/// How many connections must reach the same host.
const CONNECTIONS: usize = 8;
/// How many requests of each kind are sent to the hosts of a cluster, of which some must reach the host that fails. With three hosts and
/// requests in turn, the chance that none does is below one in ten thousand.
const TRIES_IN_CLUSTER: usize = 24;
/// The ends after which a request must not be sent again, by their names at the hosts, with the ids and titles of their checks. After the last one, some balancers leave the host
/// out for some seconds.
const ENDS: [(&str, &str, &str); 4] = [
    ("500", "once_after_500", "a request that ends with 500 is not sent again"),
    ("502", "once_after_502", "a request that ends with 502 is not sent again"),
    ("504", "once_after_504", "a request that ends with 504 is not sent again"),
    ("none", "once_without_answer", "a request that ends without an answer is not sent again"),
];
/// The time between the two events of the hosts is 2 s.
const APART_MIN: Duration = Duration::from_secs(1);

const NOT_REACHED: &str = "compare the URL, the certificate and the balancer's log; its checks of the hosts need a Host that is in \
    `hosts` of [http]";
const WRONG_HOST: &str =
    "have the balancer pass on the header Host of the client, and add this name to `hosts` of [http]";
const NOT_AUTHENTICATED: &str = "name a file with a valid token: --token-file FILE";
const MOVES: &str = "let the balancer select the host by the header Authorization, as in packaging/balancers";
const BUFFERED: &str =
    "turn buffering of responses off: `proxy_buffering off` of nginx, `flush_interval -1` of Caddy";
const SENT_AGAIN: &str = "programs can run twice: retry only failed connections and 503. HAProxy: `retry-on conn-failure 503`, and no h2 \
    for clients; nginx: no `non_idempotent`";

/// Why the checks cannot begin.
#[derive(Debug, Error)]
enum UnusableArgument {
    #[error("{0:?} is no URL of a balancer, such as https://lockhouse.example.com/mcp")]
    Url(String),
    #[error("cannot read {path}: {source}")]
    Token { path: String, source: std::io::Error },
    #[error("{0} has no token on its first line")]
    NoToken(String),
    #[error("TLS cannot be used: {0}")]
    Tls(#[from] reqwest::Error),
}

/// The host that answers a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct AnsweringHost {
    /// Distinguishes it from the others.
    name: String,
    is_of_cluster: bool,
}

/// A client of the hosts behind a balancer.
struct BalancerClient {
    client: Client,
    base: Url,
    token: Option<String>,
}

/// Checks the balancer at `url`, with the token in a file.
///
/// # Errors
/// The arguments cannot be used.
pub(super) async fn examine(url: &str, token_file: Option<&Path>) -> Result<Checklist, CommandError> {
    let client = BalancerClient::new(url, token_file).map_err(CommandError::usage)?;
    Ok(Checklist { profile: "balancer", checks: client.checks().await })
}

impl BalancerClient {
    fn new(url: &str, token_file: Option<&Path>) -> Result<Self, UnusableArgument> {
        let base =
            Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let mut base = base.ok_or_else(|| UnusableArgument::Url(url.to_owned()))?;
        base.set_path("/");
        base.set_query(None);
        // Each request on a connection of its own, as those of different clients are.
        let client = Client::builder().pool_max_idle_per_host(0).timeout(REQUEST_TIMEOUT);
        let client = client.redirect(reqwest::redirect::Policy::none()).build()?;
        Ok(Self { client, base, token: token_file.map(read_token).transpose()? })
    }

    /// Makes the checks, up to the first one without which the others say nothing.
    async fn checks(&self) -> Vec<Check> {
        let is_passed = |check: &Check| matches!(check.outcome, Outcome::Pass(_));
        let mut checks = vec![self.reaches().await];
        if checks.iter().all(is_passed) {
            checks.push(self.authenticates().await);
        }
        if checks.iter().all(is_passed) {
            checks.extend([self.streams().await, self.stays().await]);
        }
        let answering = self.host().await.unwrap_or_default();
        if checks.iter().all(|check| is_passed(check) || check.id == "streams") {
            for (end, id, title) in ENDS {
                checks.push(Check { id, title, outcome: self.sends_once(end, &answering).await });
            }
        }
        checks
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut url = self.base.clone();
        url.set_path(path);
        let request = self.client.request(method, url);
        self.token.iter().fold(request, |request, token| request.bearer_auth(token))
    }

    async fn get(&self, path: &str) -> Result<Response, String> {
        self.request(Method::GET, path).send().await.map_err(|error| reason(&error))
    }

    async fn reaches(&self) -> Check {
        let outcome = match self.get("/live").await {
            Err(reason) => Outcome::Fail { found: reason, fix: NOT_REACHED },
            Ok(response) if response.status() == StatusCode::MISDIRECTED_REQUEST => Outcome::Fail {
                found: "the hosts do not know the name under which they are asked (421)".to_owned(),
                fix: WRONG_HOST,
            },
            Ok(response) => {
                let status = response.status();
                let is_alive = response.text().await.is_ok_and(|text| text.trim() == "alive");
                let found = format!("another answer comes from there ({status})");
                Outcome::require(is_alive, "a host answers", &found, NOT_REACHED)
            }
        };
        Check { id: "reaches", title: "the balancer reaches Lockhouse", outcome }
    }

    async fn authenticates(&self) -> Check {
        let outcome = match self.host().await {
            Ok(_) => Outcome::Pass("the token is accepted".to_owned()),
            Err(found) => Outcome::Fail { found, fix: NOT_AUTHENTICATED },
        };
        Check { id: "authenticates", title: "the checks are those of a client", outcome }
    }

    /// Returns what distinguishes the host that answers now.
    async fn host(&self) -> Result<AnsweringHost, String> {
        let response = self.get("/balancer-check").await?;
        match response.status() {
            StatusCode::OK => {
                let text = response.text().await.map_err(|error| reason(&error))?;
                let mut lines = text.lines().map(|line| line.trim().to_owned());
                let name = lines.next().unwrap_or_default();
                Ok(AnsweringHost { name, is_of_cluster: lines.any(|line| line == "cluster") })
            }
            status => Err(format!("the hosts answer {status}")),
        }
    }

    async fn stays(&self) -> Check {
        let mut hosts = Vec::new();
        for _ in 0..CONNECTIONS {
            hosts.push(self.host().await);
        }
        let failed = hosts.iter().find_map(|host| host.clone().err());
        hosts.dedup();
        let found = failed
            .unwrap_or_else(|| format!("{CONNECTIONS} connections of one client reach different hosts"));
        let is_cluster = matches!(&hosts[..], [Ok(AnsweringHost { is_of_cluster: true, .. }), ..]);
        if is_cluster && hosts.iter().all(Result::is_ok) {
            let found = "the hosts are a cluster, of which any may serve it".to_owned();
            return Check { id: "stays", title: "a client stays at one host", outcome: Outcome::Pass(found) };
        }
        let held = format!("{CONNECTIONS} connections reach the same one");
        let outcome = Outcome::require(hosts.len() == 1 && hosts[0].is_ok(), &held, &found, MOVES);
        Check { id: "stays", title: "a client stays at one host", outcome }
    }

    async fn streams(&self) -> Check {
        let times = async {
            let mut response = self.get("/balancer-check/events").await?;
            let mut times = Vec::new();
            while let Some(_event) = response.chunk().await.map_err(|error| reason(&error))? {
                times.push(Instant::now());
            }
            Ok::<_, String>(times)
        };
        let outcome = match times.await {
            Err(reason) => Outcome::Fail { found: reason, fix: BUFFERED },
            Ok(times) => {
                let apart = times.first().zip(times.last()).map(|(first, last)| last.duration_since(*first));
                let is_prompt = apart.is_some_and(|apart| apart >= APART_MIN);
                Outcome::require(
                    is_prompt,
                    "none waits for the next one",
                    "an event waits for the end",
                    BUFFERED,
                )
            }
        };
        Check { id: "streams", title: "events come as they are sent", outcome }
    }

    /// Sends a request that fails so at one host, and succeeds if it comes there again, or to another host. In a cluster, it may come to
    /// another one first: of several requests, one that comes to this host must fail.
    async fn sends_once(&self, end: &str, host: &AnsweringHost) -> Outcome {
        let path = format!("/balancer-check/fail/{end}/{}", host.name);
        for _ in 0..if host.is_of_cluster { TRIES_IN_CLUSTER } else { 1 } {
            let id = RequestId::generate().to_string();
            let request = self.request(Method::POST, &path).header("Idempotency-Key", id).body("{}");
            match request.send().await {
                Ok(response) if response.status() == StatusCode::OK => {}
                Ok(response) => {
                    return Outcome::Pass(format!("the client gets {}", response.status().as_u16()));
                }
                Err(_) => return Outcome::Pass("the client gets no answer".to_owned()),
            }
        }
        Outcome::Fail { found: "it came twice".to_owned(), fix: SENT_AGAIN }
    }
}

fn read_token(path: &Path) -> Result<String, UnusableArgument> {
    let shown = path.display().to_string();
    let read = || {
        let size = std::fs::metadata(path)?.len();
        if size > TOKEN_BYTES_MAX {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        std::fs::read_to_string(path)
    };
    let text = read().map_err(|source| UnusableArgument::Token { path: shown.clone(), source })?;
    let token = text.lines().next().map(str::trim).filter(|token| !token.is_empty());
    token.map(str::to_owned).ok_or(UnusableArgument::NoToken(shown))
}

/// Returns why a request failed, without the URL.
fn reason(error: &reqwest::Error) -> String {
    let mut source: &dyn std::error::Error = error;
    while let Some(deeper) = source.source() {
        source = deeper;
    }
    source.to_string()
}
