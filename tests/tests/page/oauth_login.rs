//! Tests of the login of people at the page of a service, at the issuer of their access tokens.

use std::collections::HashMap;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::BASE64URL_NOPAD;
use lockhouse_tests::{
    HttpAnswer, HttpRequest, HttpServer, Lockhouse, Page, Signer, Table, ensure, equal, request,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

const AUDIENCE: &str = "https://lockhouse.example.com/mcp";
const SECRET: &str = "page-secret";

/// What the issuer knows of a login.
#[derive(Default)]
struct Issued {
    /// The challenges of codes.
    challenges: HashMap<String, String>,
    /// The forms of requests for tokens.
    forms: Vec<HashMap<String, String>>,
    /// The claims that the next tokens have besides the usual ones.
    more: Value,
}

/// Starts an issuer at which everybody is `ada`. The code is the state.
fn issuer(signer: &Signer, issued: &Arc<Mutex<Issued>>) -> HttpServer {
    let (signer, issued) = (signer.clone(), issued.clone());
    HttpServer::start_knowing(move |url| {
        move |request: &HttpRequest| {
            let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
            let mut issued = issued.lock();
            match path {
                "/.well-known/oauth-authorization-server" => HttpAnswer::json(
                    200,
                    &json!({"issuer": url, "jwks_uri": format!("{url}/keys"), "authorization_endpoint": format!("{url}/authorize"),
                            "token_endpoint": format!("{url}/token")}),
                ),
                "/keys" => HttpAnswer::json(200, &json!({"keys": [signer.public()]})),
                "/authorize" => {
                    let asked: HashMap<String, String> =
                        form_urlencoded::parse(query.as_bytes()).into_owned().collect();
                    issued.challenges.insert(asked["state"].clone(), asked["code_challenge"].clone());
                    let back = format!(
                        "{}?code={}&state={}&iss={url}",
                        asked["redirect_uri"], asked["state"], asked["state"]
                    );
                    HttpAnswer::status(302).with("Location", &back)
                }
                "/token" => {
                    let form: HashMap<String, String> =
                        form_urlencoded::parse(request.body.as_bytes()).into_owned().collect();
                    let challenge = issued.challenges.remove(&form["code"]);
                    let is_proven = challenge == Some(pkce_challenge(&form["code_verifier"]));
                    let is_client = request.headers.contains_key("authorization");
                    issued.forms.push(form);
                    if !is_proven || !is_client {
                        return HttpAnswer::json(400, &json!({"error": "invalid_grant"}));
                    }
                    let now = std::time::SystemTime::now()
                        .duration_since(std::time::UNIX_EPOCH)
                        .expect("now")
                        .as_secs();
                    let mut claims = json!({"iss": url, "sub": "ada", "aud": AUDIENCE, "exp": now + 600, "iat": now, "scope": "all"});
                    for (name, value) in issued.more.as_object().into_iter().flatten() {
                        claims[name] = value.clone();
                    }
                    HttpAnswer::json(
                        200,
                        &json!({"access_token": signer.sign(&claims), "token_type": "Bearer"}),
                    )
                }
                _ => HttpAnswer::status(404),
            }
        }
    })
}

/// Returns the challenge of a verifier (RFC 7636).
fn pkce_challenge(verifier: &str) -> String {
    BASE64URL_NOPAD.encode(digest(&SHA256, verifier.as_bytes()).as_ref())
}

/// Returns where a browser is sent from an address.
async fn redirection(address: &str) -> String {
    let client =
        reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
    let answer = client.get(address).send().await.expect("an answer");
    answer.headers()["location"].to_str().expect("text").to_owned()
}

/// Sends a GET request. Returns the status, the address of a redirection and the cookie.
async fn get(page: &Page, path: &str, cookie: &str) -> (u16, String, String) {
    let headers = [("Cookie", cookie)];
    let reply = page.send(request(&page.address, "GET", path, &headers, "")).await;
    let cookie = reply.header("set-cookie").split(';').next().unwrap_or_default().to_owned();
    (reply.status, reply.header("location"), cookie)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_at_the_issuer_of_their_tokens() {
    let signer = Signer::es256("k1");
    let issued = Arc::new(Mutex::new(Issued::default()));
    let issuer = issuer(&signer, &issued);
    let config = format!(
        "[http]\nauth = \"oauth\"\n[http.oauth]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\n[http.oauth.scopes]\nall = [\"*\"]\n\
         [page]\nlisten = \"127.0.0.1:0\"\nclient_id = \"page\"\nclient_secret = \"${{cred:page}}\"\nscopes = [\"openid\", \"all\"]\n",
        issuer.url("").trim_end_matches('/')
    );
    let policy = "version = 1\n[roles.leads]\nmembers = [\"claim:groups=leads\"]\nmay = [\"approve\"]\n";
    let lockhouse = Lockhouse::new().config(&config).policy(policy);
    lockhouse.file("credentials/page", SECRET);
    let mut command = lockhouse.command(&["page", "--service"]);
    command.env("CREDENTIALS_DIRECTORY", lockhouse.path("credentials"));
    let page = Page::spawn_service(command).await;
    let mut table = Table::new("logins at the issuer");
    let ways = page
        .send(request(&page.address, "GET", "/api/login/ways", &[("Sec-Fetch-Site", "same-origin")], ""))
        .await
        .json();
    table.row("the page offers it", equal(ways, json!({"oauth": true})));

    issued.lock().more = json!({"groups": ["leads"]});
    let (status, address, cookie) = get(&page, "/oauth/begin", "").await;
    let asked = Url::parse(&address).expect("a URL");
    let query: HashMap<String, String> = asked.query_pairs().into_owned().collect();
    table.row("the browser is sent to the issuer", equal((status, asked.path()), (303, "/authorize")));
    for (name, value) in [
        ("response_type", "code".to_owned()),
        ("client_id", "page".to_owned()),
        ("redirect_uri", format!("http://{}/oauth/return", page.address)),
        ("scope", "openid all".to_owned()),
        ("resource", AUDIENCE.to_owned()),
        ("code_challenge_method", "S256".to_owned()),
    ] {
        table.row(name, equal(query[name].clone(), value));
    }
    let returned = redirection(&address).await;
    let back =
        returned.split_once(&page.address).map(|(_, path)| path.to_owned()).expect("a return to the page");
    table.row("another browser", equal(get(&page, &back, "lockhouse_page_login=other").await.0, 403));
    table.row("its state is used up", equal(get(&page, &back, &cookie).await.0, 403));

    let begin = async || {
        let (_, address, cookie) = get(&page, "/oauth/begin", "").await;
        let returned = redirection(&address).await;
        let back = returned
            .split_once(&page.address)
            .map(|(_, path)| path.to_owned())
            .expect("a return to the page");
        (back, cookie)
    };
    let (back, cookie) = begin().await;
    table.row("another issuer", equal(get(&page, &back.replace("&iss=", "&iss=x"), &cookie).await.0, 502));
    let (back, cookie) = begin().await;
    let (status, link, _) = get(&page, &back, &cookie).await;
    let token = link.strip_prefix("/#token=").unwrap_or_default().to_owned();
    table.row("the browser comes back", ensure(status == 303 && token.len() == 64, (status, &link)));
    let browser = page.browser_of(&token).await;
    let hello = browser.events().await.next("hello").await;
    table.row("who it is", equal(json!([hello["user"], hello["may"]]), json!(["oauth:ada", ["approve"]])));
    table.row("the link works once", equal(page.log_in(&token).await.error_code(), "no_session".into()));

    for (name, more) in [
        ("a token for another service", json!({"aud": "https://other.example.com", "groups": ["leads"]})),
        ("a person without a role", json!({"groups": ["others"]})),
        ("a token that has expired", json!({"exp": 1, "groups": ["leads"]})),
    ] {
        issued.lock().more = more;
        let (back, cookie) = begin().await;
        table.row(name, equal(get(&page, &back, &cookie).await.0, 403));
    }
    let (_, cookie) = begin().await;
    table.row("nothing from the issuer", equal(get(&page, "/oauth/return", &cookie).await.0, 403));
    let forms = &issued.lock().forms;
    let is_secret_sent = forms.iter().any(|form| form.values().any(|value| value == SECRET));
    table.row("the secret is in no form", ensure(!is_secret_sent, forms));
    table.finish();
}
