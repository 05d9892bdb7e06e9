//! Tests of servers with `exchange`: the OAuth token with which a user authenticates becomes a token of this user for the server.

mod per_run;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use data_encoding::{BASE64, BASE64URL_NOPAD};
use lockhouse_tests::{
    Daemon, HttpAnswer, HttpRequest, HttpServer, Issuer, Lockhouse, Signer, Table, ensure, equal,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::access::token;

const AUDIENCE: &str = "https://lockhouse.example.com/mcp";
const SECRET: &str = "exchange-secret";

/// What an authorization server or an upstream server has received.
#[derive(Default)]
struct Received {
    /// The forms of requests for tokens, each with the credentials of the client.
    forms: Vec<(BTreeMap<String, String>, String)>,
    /// The tokens of calls.
    tokens: Vec<String>,
    /// The error with which the next requests for tokens are refused.
    error: Option<&'static str>,
}

type Shared = Arc<Mutex<Received>>;

fn form(request: &HttpRequest) -> BTreeMap<String, String> {
    form_urlencoded::parse(request.body.as_bytes()).into_owned().collect()
}

fn client_of(request: &HttpRequest) -> String {
    let basic = request.headers.get("authorization").and_then(|value| value.strip_prefix("Basic "));
    basic.map_or_else(String::new, |basic| {
        String::from_utf8_lossy(&BASE64.decode(basic.as_bytes()).expect("Base64")).into_owned()
    })
}

/// Returns the subject of a JSON Web Token.
fn subject(jwt: &str) -> String {
    let payload = jwt.split('.').nth(1).expect("a payload");
    let claims: Value =
        serde_json::from_slice(&BASE64URL_NOPAD.decode(payload.as_bytes()).expect("it")).expect("JSON");
    claims["sub"].as_str().expect("a subject").to_owned()
}

/// Starts an identity provider. The text of a token that it issues is its kind, its user, its resource, its number and its scopes.
fn identity_provider(received: &Shared) -> HttpServer {
    let received = received.clone();
    HttpServer::start(move |request: &HttpRequest| {
        let (form, mut received) = (form(request), received.lock());
        let (user, resource) = (subject(&form["subject_token"]), form["resource"].clone());
        let is_assertion = form["requested_token_type"].ends_with(":id-jag");
        received.forms.push((form.clone(), client_of(request)));
        if let Some(error) = received.error {
            return HttpAnswer::json(400, &json!({"error": error, "error_description": "no"}));
        }
        let number = received.forms.len();
        let scope = form.get("scope").map_or("", String::as_str).replace(' ', "+");
        let (kind, token_type) = if is_assertion { ("JAG", "N_A") } else { ("TOKEN", "Bearer") };
        HttpAnswer::json(
            200,
            &json!({"access_token": format!("{kind}~{user}~{resource}~{number}~{scope}"), "issued_token_type": form["requested_token_type"],
                    "token_type": token_type, "expires_in": 300}),
        )
    })
}

/// Starts an upstream server with an authorization server that takes assertions. A call says who the server takes the caller for.
fn upstream(received: &Shared) -> HttpServer {
    let received = received.clone();
    HttpServer::start_knowing(move |url| {
        move |request: &HttpRequest| {
            let mut received = received.lock();
            match request.path.as_str() {
                "/.well-known/oauth-protected-resource/mcp" => HttpAnswer::json(
                    200,
                    &json!({"resource": format!("{url}/mcp"), "authorization_servers": [url]}),
                ),
                "/.well-known/oauth-authorization-server" => HttpAnswer::json(
                    200,
                    &json!({"issuer": url, "authorization_endpoint": format!("{url}/authorize"), "token_endpoint": format!("{url}/token"),
                            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]}),
                ),
                "/token" => {
                    let form = form(request);
                    let assertion =
                        form.get("assertion").and_then(|text| text.strip_prefix("JAG~")).map(str::to_owned);
                    received.forms.push((form, client_of(request)));
                    match assertion {
                        Some(user) => HttpAnswer::json(
                            200,
                            &json!({"access_token": format!("TOKEN~{user}"), "token_type": "Bearer"}),
                        ),
                        None => HttpAnswer::json(400, &json!({"error": "invalid_grant"})),
                    }
                }
                "/mcp" => serve(&mut received, &url, request),
                _ => HttpAnswer::status(404),
            }
        }
    })
}

fn serve(received: &mut Received, url: &str, request: &HttpRequest) -> HttpAnswer {
    let token = request.headers.get("authorization").and_then(|value| value.strip_prefix("Bearer "));
    if request.rpc() == "tools/call" {
        received.tokens.extend(token.map(str::to_owned));
    }
    let user = token.and_then(|token| match token.split('~').collect::<Vec<_>>()[..] {
        ["TOKEN", user, resource, ..] if resource == format!("{url}/mcp") => Some(user),
        _ => None,
    });
    if user.is_none() && request.rpc() == "tools/call" {
        let challenge =
            format!("Bearer resource_metadata=\"{url}/.well-known/oauth-protected-resource/mcp\"");
        return HttpAnswer::status(401).with("WWW-Authenticate", &challenge);
    }
    if request.rpc() == "tools/list" {
        let tools = ["look", "change"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
        let result = json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"});
        return HttpAnswer::json(200, &request.result(&result));
    }
    if let Some(answer) = request.as_mcp(false) {
        return answer;
    }
    let user = user.unwrap_or_default();
    HttpAnswer::json(200, &request.result(&json!({"content": [{"type": "text", "text": user}]})))
}

/// A service with two upstream servers, an issuer of tokens of users, and an identity provider that exchanges them.
struct Service {
    lockhouse: Lockhouse,
    signer: Signer,
    issuer: Issuer,
    provider: HttpServer,
    received: Shared,
    by_token: (HttpServer, Shared),
    by_assertion: (HttpServer, Shared),
}

impl Service {
    fn new() -> Self {
        let signer = Signer::es256("k1");
        let (issuer, received) = (Issuer::start(&[&signer]), Shared::default());
        let provider = identity_provider(&received);
        let of_upstream = || {
            let received = Shared::default();
            (upstream(&received), received)
        };
        let (by_token, by_assertion) = (of_upstream(), of_upstream());
        let config = format!(
            "[http]\nauth = [\"oauth\", \"token\"]\n[http.oauth]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\nresource = \"{AUDIENCE}\"\n\
             [http.oauth.scopes]\nall = [\"*\"]\n\
             [users]\nkey = \"${{cred:lockhouse-users}}\"\nexchange_url = \"{}\"\nexchange_client = \"lockhouse\"\n\
             exchange_secret = \"${{cred:exchange}}\"\n\
             [servers.tokens]\nurl = \"{}\"\nauth = \"per_user\"\nexchange = \"token\"\nexchange_audience = \"crm\"\n\
             [servers.assertions]\nurl = \"{}\"\nauth = \"per_user\"\nexchange = \"assertion\"\n\
             oauth = {{ client_id = \"lockhouse-at-server\", scopes = [\"read\"] }}\n",
            issuer.name(),
            provider.url("/exchange"),
            by_token.0.url("/mcp"),
            by_assertion.0.url("/mcp"),
        );
        let policy =
            "version = 1\n[servers.tokens]\nallow = [\"*\"]\n[servers.assertions]\nallow = [\"*\"]\n";
        let lockhouse = Lockhouse::new().config(&config).policy(policy);
        lockhouse.file("credentials/lockhouse-users", "0123456789abcdef0123456789abcdef");
        lockhouse.file("credentials/exchange", SECRET);
        Self { lockhouse, signer, issuer, provider, received, by_token, by_assertion }
    }

    async fn daemon(&self) -> Daemon {
        let mut command = self.lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("CREDENTIALS_DIRECTORY", self.lockhouse.path("credentials"));
        Daemon::open(command).await
    }

    fn token_of(&self, user: &str) -> String {
        self.signer.sign(&self.issuer.claims(user, AUDIENCE, "all"))
    }
}

/// Lets a user call both servers. Returns for whom the servers take the user, or the errors.
async fn callers(daemon: &Daemon, token: &str) -> Value {
    let code = "from mcp_tools import ToolError, call_tool\nfound = []\nfor server in ['tokens', 'assertions']:\n    \
                try: found.append(str(call_tool(server, 'look', {})))\n    except ToolError as e: found.append([e.code, str(e)])\nfound";
    daemon.http_client(Some(token)).run_code("python", code).await["value"].clone()
}

fn fields(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

const EXCHANGE: (&str, &str) = ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange");
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_a_user_becomes_a_token_of_that_user_for_each_server() {
    let service = Service::new();
    let daemon = service.daemon().await;
    let mut table = Table::new("one login for all servers");
    let (ada, bob) = (service.token_of("ada"), service.token_of("bob"));
    table.row("ada", equal(callers(&daemon, &ada).await, json!(["ada", "ada"])));
    let both = tokio::join!(callers(&daemon, &ada), callers(&daemon, &bob));
    table.row("both at one time", equal(both, (json!(["ada", "ada"]), json!(["bob", "bob"]))));

    let forms = std::mem::take(&mut service.received.lock().forms);
    let (for_tokens, for_assertions) = (service.by_token.0.url("/mcp"), service.by_assertion.0.url("/mcp"));
    let issuer = service.by_assertion.0.url("");
    let of_ada: Vec<_> = forms.iter().filter(|(form, _)| form["subject_token"] == ada).collect();
    let common = [EXCHANGE, ("subject_token", ada.as_str()), ("subject_token_type", ACCESS_TOKEN)];
    let to_token = [
        &common[..],
        &[("requested_token_type", ACCESS_TOKEN), ("resource", &for_tokens), ("audience", "crm")],
    ]
    .concat();
    let id_jag = "urn:ietf:params:oauth:token-type:id-jag";
    let to_assertion = [
        &common[..],
        &[
            ("requested_token_type", id_jag),
            ("resource", &for_assertions),
            ("audience", issuer.trim_end_matches('/')),
            ("scope", "read"),
        ],
    ]
    .concat();
    table.row("requests of ada", equal(of_ada.len(), 2));
    for (name, expected) in [("token exchange", to_token), ("request for an assertion", to_assertion)] {
        let (form, client) =
            of_ada.iter().find(|(form, _)| form["resource"] == fields(&expected)["resource"]).expect("it");
        table.row(name, equal(form.clone(), fields(&expected)));
        table.row(format!("{name}: the client"), equal(client.clone(), format!("lockhouse:{SECRET}")));
    }
    let forms = std::mem::take(&mut service.by_assertion.1.lock().forms);
    let assertion = forms.iter().map(|(form, _)| form["assertion"].clone());
    let assertion = assertion
        .into_iter()
        .find(|text| text.starts_with(&format!("JAG~ada~{for_assertions}~")))
        .expect("it");
    let expected = fields(&[
        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
        ("assertion", &assertion),
        ("scope", "read"),
        ("client_id", "lockhouse-at-server"),
    ]);
    table.row(
        "the assertion at the server's authorization server",
        ensure(forms.iter().any(|(form, _)| *form == expected), &forms),
    );
    table
        .row("the server without assertions issues nothing", equal(service.by_token.1.lock().forms.len(), 0));

    let all: Vec<String> = [&service.by_token.1, &service.by_assertion.1]
        .iter()
        .flat_map(|of| of.lock().tokens.clone())
        .collect();
    let is_exchanged = all.len() == 6 && all.iter().all(|token| token.starts_with("TOKEN~"));
    table.row("no server gets the token of a user", ensure(is_exchanged, &all));
    let records = service.lockhouse.records();
    let accounts: HashMap<&str, usize> = records.iter().filter_map(|record| record["account"].as_str()).fold(
        HashMap::new(),
        |mut counts, name| {
            *counts.entry(name).or_default() += 1;
            counts
        },
    );
    let expected = HashMap::from([
        (format!("ada@{}", service.issuer.name()), 4),
        (format!("bob@{}", service.issuer.name()), 2),
    ]);
    table.row(
        "the records",
        equal(
            accounts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect::<HashMap<_, _>>(),
            expected,
        ),
    );
    let log = daemon.log();
    let is_secret = [SECRET, &ada, "TOKEN~", "JAG~"].iter().all(|secret| !log.contains(secret));
    table.row("the log has no token", ensure(is_secret, &log));
    let stored =
        std::fs::read_dir(service.lockhouse.path("state/lockhouse/users")).into_iter().flatten().count();
    table.row("nothing is stored", equal(stored, 0));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_exchange_no_call_is_made() {
    let service = Service::new();
    let desk = token(&service.lockhouse, &["desk"]);
    let daemon = service.daemon().await;
    let mut table = Table::new("no exchange");
    let reason = |found: &Value, at: usize| {
        format!(
            "{}: {}",
            found[at][0].as_str().unwrap_or_default(),
            found[at][1].as_str().unwrap_or_default()
        )
    };
    let found = callers(&daemon, &desk).await;
    for at in [0, 1] {
        let reason = reason(&found, at);
        let says = reason.starts_with("login_required")
            && reason.contains("must authenticate to Lockhouse with an OAuth token");
        table.row(format!("a token that no other server knows, {at}"), ensure(says, reason));
    }
    service.received.lock().error = Some("access_denied");
    let eve = service.token_of("eve");
    let found = callers(&daemon, &eve).await;
    for at in [0, 1] {
        let reason = reason(&found, at);
        let says = reason.contains("the identity provider gives no token for this user");
        table.row(
            format!("the identity provider refuses, {at}"),
            ensure(says && !reason.contains(&eve), reason),
        );
    }
    let calls = service.by_token.1.lock().tokens.len() + service.by_assertion.1.lock().tokens.len();
    table.row("calls with a token", equal(calls, 0));
    service.received.lock().error = None;
    table.row("control", equal(callers(&daemon, &service.token_of("ada")).await, json!(["ada", "ada"])));
    let url = service.provider.url("/exchange");
    let text = std::fs::read_to_string(service.lockhouse.path("config/lockhouse/config.toml")).expect("it");
    for (name, from, to, words) in [
        (
            "no provider",
            format!("exchange_url = \"{url}\"\n"),
            String::new(),
            "set exchange_url and exchange_client",
        ),
        ("a provider without TLS", url, "http://idp.example.com/token".to_owned(), "expected an https URL"),
        (
            "a secret in the file",
            "${cred:exchange}".to_owned(),
            "secret".to_owned(),
            "expected a placeholder",
        ),
        (
            "a secret of users",
            "exchange = \"token\"".to_owned(),
            "exchange = \"token\"\nuser_secret = \"X-Key\"".to_owned(),
            "no user_secret with it",
        ),
    ] {
        service.lockhouse.file("config/lockhouse/config.toml", text.replace(&from, &to));
        let mut command = service.lockhouse.command(&["server", "list"]);
        command.env("CREDENTIALS_DIRECTORY", service.lockhouse.path("credentials"));
        let output = lockhouse_tests::CommandOutput::run(&mut command, b"");
        let all = format!("{}{}", output.stdout, output.stderr);
        table.row(name, ensure(all.contains(words), all));
    }
    table.finish();
}
