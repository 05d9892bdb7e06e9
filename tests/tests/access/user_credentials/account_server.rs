//! An upstream server that knows its users: with an authorization server, and with secrets in a header. It counts the calls whose
//! argument names another user than the credential.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lockhouse_tests::{HttpAnswer, HttpRequest, HttpServer};
use parking_lot::Mutex;
use serde_json::json;
use url::form_urlencoded;

pub(super) struct AccountServer {
    server: HttpServer,
    accounts: Arc<Mutex<Accounts>>,
}

/// What was issued, and to whom.
#[derive(Default)]
struct Accounts {
    /// Whether the list of tools needs a login too.
    is_private: bool,
    issued: usize,
    codes: HashMap<String, String>,
    access: HashMap<String, String>,
    refresh: HashMap<String, String>,
    expired: HashSet<String>,
    calls: usize,
    crossed: usize,
    renewals: usize,
}

impl AccountServer {
    pub(super) fn start() -> Self {
        Self::serve(Accounts::default())
    }

    /// Starts a server that answers nothing without a login.
    pub(super) fn start_private() -> Self {
        Self::serve(Accounts { is_private: true, ..Accounts::default() })
    }

    fn serve(accounts: Accounts) -> Self {
        let accounts = Arc::new(Mutex::new(accounts));
        let known = accounts.clone();
        let server =
            HttpServer::start_knowing(move |url| move |request: &HttpRequest| answer(&url, &known, request));
        Self { server, accounts }
    }

    pub(super) fn url(&self) -> String {
        self.server.url("/mcp")
    }

    /// Ends the validity of all access tokens. The refresh tokens stay valid.
    pub(super) fn expire_all(&self) {
        let mut accounts = self.accounts.lock();
        let tokens: Vec<String> = accounts.access.keys().cloned().collect();
        accounts.expired.extend(tokens);
    }

    pub(super) fn calls(&self) -> usize {
        self.accounts.lock().calls
    }

    /// The number of calls with the credential of another user than the one that their argument names.
    pub(super) fn crossed(&self) -> usize {
        self.accounts.lock().crossed
    }

    pub(super) fn renewals(&self) -> usize {
        self.accounts.lock().renewals
    }

    pub(super) fn has_tokens_of(&self, user: &str) -> bool {
        self.accounts.lock().refresh.values().any(|owner| owner == user)
    }
}

fn answer(url: &str, accounts: &Mutex<Accounts>, request: &HttpRequest) -> HttpAnswer {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let fields = |text: &str| form_urlencoded::parse(text.as_bytes()).into_owned().collect::<HashMap<_, _>>();
    let mut accounts = accounts.lock();
    match path {
        "/.well-known/oauth-protected-resource/mcp" => {
            HttpAnswer::json(200, &json!({"resource": format!("{url}/mcp"), "authorization_servers": [url]}))
        }
        "/.well-known/oauth-authorization-server" => HttpAnswer::json(
            200,
            &json!({
                "issuer": url, "authorization_endpoint": format!("{url}/authorize"), "token_endpoint": format!("{url}/token"),
                "registration_endpoint": format!("{url}/register"), "revocation_endpoint": format!("{url}/revoke"),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            }),
        ),
        "/register" => {
            let redirects = request.message()["redirect_uris"].clone();
            HttpAnswer::json(201, &json!({"client_id": "us", "redirect_uris": redirects}))
        }
        "/authorize" => {
            let asked = fields(query);
            accounts.issued += 1;
            let code = format!("CODE-{}", accounts.issued);
            accounts.codes.insert(code.clone(), asked["user"].clone());
            let back = format!("{}?code={code}&state={}", asked["redirect_uri"], asked["state"]);
            HttpAnswer::status(302).with("Location", &back)
        }
        "/token" => accounts.issue(&fields(&request.body)),
        "/revoke" => {
            let token = &fields(&request.body)["token"];
            accounts.refresh.remove(token);
            accounts.access.remove(token);
            HttpAnswer::status(200)
        }
        "/mcp" => accounts.serve_mcp(url, request),
        _ => HttpAnswer::status(404),
    }
}

impl Accounts {
    fn issue(&mut self, asked: &HashMap<String, String>) -> HttpAnswer {
        let is_renewal = asked.get("grant_type").is_some_and(|grant| grant == "refresh_token");
        let user = match is_renewal {
            true => asked.get("refresh_token").and_then(|token| self.refresh.remove(token)),
            false => asked.get("code").and_then(|code| self.codes.remove(code)),
        };
        let Some(user) = user else { return HttpAnswer::json(400, &json!({"error": "invalid_grant"})) };
        self.renewals += usize::from(is_renewal);
        self.issued += 1;
        let (access, refresh) = (format!("TOKEN-{}", self.issued), format!("REFRESH-TOKEN-{}", self.issued));
        self.access.insert(access.clone(), user.clone());
        self.refresh.insert(refresh.clone(), user);
        // Renewed by a client that has it for some seconds, since it expires in half a minute.
        let lasts = 33;
        let tokens = json!({"access_token": access, "token_type": "Bearer", "expires_in": lasts, "refresh_token": refresh});
        HttpAnswer::json(200, &tokens)
    }

    fn serve_mcp(&mut self, url: &str, request: &HttpRequest) -> HttpAnswer {
        let secret = request.headers.get("x-api-key").and_then(|secret| secret.strip_prefix("SECRET-OF-"));
        let token = request.headers.get("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let of_token =
            token.filter(|token| !self.expired.contains(*token)).and_then(|token| self.access.get(token));
        let user = secret.map(str::to_owned).or(of_token.cloned());
        let needs_user = self.is_private || request.rpc() == "tools/call";
        let user = match user {
            None if needs_user => {
                let metadata = format!("{url}/.well-known/oauth-protected-resource/mcp");
                let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
                return HttpAnswer::status(401).with("WWW-Authenticate", &challenge);
            }
            user => user.unwrap_or_default(),
        };
        if let Some(answer) = request.as_mcp(false) {
            return answer;
        }
        self.calls += 1;
        self.crossed += usize::from(request.message()["params"]["arguments"]["at"] != user.as_str());
        HttpAnswer::json(200, &request.result(&json!({"content": [{"type": "text", "text": user}]})))
    }
}
