//! Tests of `lockhouse server login`, and of how the OAuth tokens that it obtains are stored, used and renewed.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lockhouse_tests::{
    Desktop, HttpAnswer, HttpRequest, HttpServer, Lockhouse, OTHER_ACCOUNT, SseStream, Table,
    ambiguous_heads, ensure, equal, get_as, get_confined, loopback_addresses,
};
use serde_json::{Value, json};

const LOOK: &str = "from mcp_tools import ToolError, call_tool\n\
    try: r = call_tool('web', 'look', {})\nexcept ToolError as e: r = [e.code, str(e)]\nr";

/// The behaviour of the test's HTTP server, which is both the OAuth authorization server and the upstream MCP server.
#[derive(Clone, Copy)]
pub(crate) struct Behaviour {
    /// The lifetime of the first access token in seconds.
    pub(crate) lasts: u64,
    /// Whether the authorization server issues a new access token for a refresh token.
    pub(crate) renews: bool,
    /// Whether the upstream server refuses `tools/call` requests with the first access token.
    pub(crate) revokes: bool,
    /// Whether the user consents to the login in the browser.
    pub(crate) consents: bool,
}

pub(crate) const COOPERATIVE: Behaviour =
    Behaviour { lasts: 3600, renews: true, revokes: false, consents: true };

/// Starts the HTTP server, which issues the access tokens `SEKRET-1`, `SEKRET-2` and so on. Each refresh token can be
/// used once.
pub(crate) fn start_authorization_server(behaviour: Behaviour) -> HttpServer {
    HttpServer::start_knowing(|url| {
        let issued = AtomicUsize::new(0);
        move |request: &HttpRequest| answer(&url, behaviour, &issued, request)
    })
}

fn answer(url: &str, behaviour: Behaviour, issued: &AtomicUsize, request: &HttpRequest) -> HttpAnswer {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    match path {
        "/.well-known/oauth-protected-resource/mcp" => {
            let metadata = json!({"resource": format!("{url}/mcp"), "authorization_servers": [url]});
            HttpAnswer::json(200, &metadata)
        }
        "/.well-known/oauth-authorization-server" => HttpAnswer::json(
            200,
            &json!({
                "issuer": url, "authorization_endpoint": format!("{url}/authorize"), "token_endpoint": format!("{url}/token"),
                "registration_endpoint": format!("{url}/register"), "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }),
        ),
        "/register" => HttpAnswer::json(
            201,
            &json!({"client_id": "us", "redirect_uris": request.message()["redirect_uris"]}),
        ),
        "/authorize" => {
            let part = |name: &str| {
                query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}="))).expect("a part")
            };
            let back = part("redirect_uri").replace("%3A", ":").replace("%2F", "/");
            let outcome = if behaviour.consents { "code=SEKRET-CODE" } else { "error=access_denied" };
            HttpAnswer::status(302).with("Location", &format!("{back}?{outcome}&state={}", part("state")))
        }
        "/token" => {
            let count = issued.load(Ordering::SeqCst);
            let renewal = format!("refresh_token=SEKRET-REFRESH-{count}");
            let is_renewal = request.body.contains("grant_type=refresh_token");
            if is_renewal && !(behaviour.renews && request.body.split('&').any(|part| part == renewal)) {
                return HttpAnswer::json(400, &json!({"error": "invalid_grant"}));
            }
            let next = issued.fetch_add(1, Ordering::SeqCst) + 1;
            let lasts = if is_renewal { 3600 } else { behaviour.lasts };
            HttpAnswer::json(
                200,
                &json!({
                    "access_token": format!("SEKRET-{next}"), "token_type": "Bearer", "expires_in": lasts,
                    "refresh_token": format!("SEKRET-REFRESH-{next}"),
                }),
            )
        }
        "/mcp" => {
            let token =
                request.headers.get("authorization").and_then(|value| value.strip_prefix("Bearer SEKRET-"));
            let number = token.and_then(|number| number.parse::<usize>().ok());
            let is_revoked = behaviour.revokes && request.rpc() == "tools/call" && number == Some(1);
            if number.is_none() || is_revoked {
                let challenge =
                    format!("Bearer resource_metadata=\"{url}/.well-known/oauth-protected-resource/mcp\"");
                return HttpAnswer::status(401).with("WWW-Authenticate", &challenge);
            }
            request.as_mcp(false).unwrap_or_else(|| {
                let text = json!({"type": "text", "text": format!("token {}", number.unwrap_or(0))});
                HttpAnswer::json(200, &request.result(&json!({"content": [text]})))
            })
        }
        _ => HttpAnswer::status(404),
    }
}

fn lockhouse(server: &HttpServer) -> Lockhouse {
    let config = format!("[servers.web]\nurl = \"{}\"\nstart_timeout_seconds = 10\n", server.url("/mcp"));
    Lockhouse::new().config(&config).policy("version = 1\n[servers.web]\nallow = [\"*\"]\n")
}

/// Runs `lockhouse server login`. `bring` gets the URL to which the authorization server redirects the browser, and
/// must request that URL or type it into the command's standard input. Returns the exit status of the command, and one
/// text: its standard output after the login URL, followed by its standard error.
fn log_in(lockhouse: &Lockhouse, bring: impl FnOnce(&str, &mut dyn Write)) -> (Option<i32>, String) {
    let mut command = lockhouse.command(&["server", "login", "web", "--no-browser"]);
    command.env("LOCKHOUSE_LOG", "trace");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut stderr = child.stderr.take().expect("stderr");
    let complaints = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        text
    });
    let mut stdin = child.stdin.take().expect("stdin");
    let mut said = String::new();
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines().map_while(Result::ok);
    if let Some(address) = lines.by_ref().find(|line| line.trim().starts_with("http://")) {
        let asked = HttpServer::browse(address.trim());
        bring(asked.headers.get("location").expect("the way back"), &mut stdin);
    }
    lines.for_each(|line| said.push_str(&line));
    let status = child.wait().expect("its end").code();
    (status, said + &complaints.join().expect("what it complained of"))
}

fn follow_redirect_in_browser(way_back: &str, _: &mut dyn Write) {
    let page = HttpServer::browse(way_back);
    assert_eq!(page.path, "200", "{page:?}");
}

fn token_files(lockhouse: &Lockhouse) -> Vec<PathBuf> {
    let found = std::fs::read_dir(lockhouse.path("state/lockhouse/tokens")).into_iter().flatten().flatten();
    found
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect()
}

fn renewals(server: &HttpServer) -> usize {
    server.requests().iter().filter(|request| request.body.contains("grant_type=refresh_token")).count()
}

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[test]
fn the_token_of_a_login_is_sent_to_its_server_only() {
    let server = start_authorization_server(COOPERATIVE);
    let lockhouse = lockhouse(&server);
    let mut table = Table::new("login and logout");
    let before = lockhouse.answer("python", LOOK)["value"].take();
    let advised = before[1].as_str().is_some_and(|text| text.contains("run `lockhouse server login web`"));
    table.row("without a token", ensure(before[0] == "upstream_unavailable" && advised, &before));
    let (status, said) = log_in(&lockhouse, |way_back, stdin| {
        let stray = way_back.replace("state=", "state=x");
        assert_eq!(HttpServer::browse(&stray).path, "404", "an answer to another login");
        follow_redirect_in_browser(way_back, stdin);
    });
    table.row("login", ensure(status == Some(0) && said.contains("Logged in to web"), &said));
    table.row("no secret is said", ensure(!said.contains("SEKRET"), &said));
    let files = token_files(&lockhouse);
    table.row("one file", equal(&files.len(), &1));
    table.row("its mode", equal(&mode(&files[0]), &0o600));
    table.row("its directory's mode", equal(&mode(files[0].parent().expect("a directory")), &0o700));
    let mut run = lockhouse.command(&["run", "-c", LOOK, "--language", "python", "--json"]);
    let finished = lockhouse_tests::CommandOutput::run(run.env("LOCKHOUSE_LOG", "trace"), b"");
    table.row("a call with it", equal(&finished.json()["value"], &json!("token 1")));
    table.row("no secret in the log", ensure(!finished.stderr.contains("SEKRET"), &finished.stderr));
    std::fs::set_permissions(&files[0], std::fs::Permissions::from_mode(0o640)).expect("a mode");
    let exposed = lockhouse.answer("python", LOOK)["value"].take();
    table.row("a file that others can read", ensure(exposed[0] == "upstream_unavailable", &exposed));
    std::fs::set_permissions(&files[0], std::fs::Permissions::from_mode(0o600)).expect("a mode");
    table.row("and no longer", equal(&lockhouse.answer("python", LOOK)["value"], &json!("token 1")));
    let out = lockhouse.run(&["server", "logout", "web"]);
    table.row("logout", ensure(out.status == Some(0) && token_files(&lockhouse).is_empty(), &out));
    let again = lockhouse.run(&["server", "logout", "web"]);
    table.row("logout again", ensure(again.stdout.contains("no stored token"), &again));
    let records = lockhouse.records();
    let logins: Vec<&Value> = records.iter().filter(|record| record["event"] == "login").collect();
    let outcomes: Vec<&str> = logins.iter().filter_map(|login| login["outcome"].as_str()).collect();
    table.row("recorded", equal(&outcomes, &vec!["answered", "granted", "logged out"]));
    let whose = logins.iter().all(|login| login["server"] == "web" && login["uid"].is_u64());
    table.row("with the server and the user", ensure(whose, &logins));
    let secrets = format!("{records:?}").matches("SEKRET").count();
    table.row("and no secret", equal(&secrets, &0));
    table.finish();
}

#[test]
fn removing_a_server_removes_its_token() {
    let server = start_authorization_server(COOPERATIVE);
    let lockhouse = lockhouse(&server);
    let (status, said) = log_in(&lockhouse, follow_redirect_in_browser);
    assert_eq!((status, token_files(&lockhouse).len()), (Some(0), 1), "control: {said}");
    let removed = lockhouse.run(&["server", "remove", "web"]);
    assert!(removed.status == Some(0) && removed.stdout.contains("removed its login token"), "{removed:?}");
    assert!(token_files(&lockhouse).is_empty());
}

#[test]
fn the_redirect_url_can_be_pasted_and_must_match_the_login() {
    let paste = |way_back: &str, stdin: &mut dyn Write| writeln!(stdin, "{way_back}").expect("a terminal");
    let mut table = Table::new("redirects of a login");
    for (name, behaviour, status, words) in [
        ("pasted", COOPERATIVE, 0, "Logged in to web"),
        ("refused by the person", Behaviour { consents: false, ..COOPERATIVE }, 7, "access_denied"),
    ] {
        let (found, said) = log_in(&lockhouse(&start_authorization_server(behaviour)), paste);
        table.row(name, ensure(found == Some(status) && said.contains(words), (found, &said)));
    }
    let (found, said) = log_in(&lockhouse(&start_authorization_server(COOPERATIVE)), |_, stdin| {
        writeln!(stdin, "http://127.0.0.1/callback?code=SEKRET-CODE&state=forged").expect("a terminal");
    });
    table.row("of another login", ensure(found == Some(7) && !said.contains("SEKRET-CODE"), (found, &said)));
    for place in ["http://169.254.169.254", "http://10.255.255.1"] {
        let inward = HttpServer::start_knowing(|url| {
            move |request: &HttpRequest| match request.path.as_str() {
                "/mcp" => HttpAnswer::status(401).with("WWW-Authenticate", "Bearer"),
                "/.well-known/oauth-protected-resource/mcp" => HttpAnswer::json(
                    200,
                    &json!({"resource": format!("{url}/mcp"), "authorization_servers": [place]}),
                ),
                _ => HttpAnswer::status(404),
            }
        });
        let (found, said) = log_in(&lockhouse(&inward), paste);
        let is_refused = said.contains("the authorization failed") && !said.contains("no answer within");
        table.row(
            format!("metadata that leads to {place}"),
            ensure(found == Some(7) && is_refused, (found, &said)),
        );
    }
    let open = HttpServer::start(|request| request.as_mcp(false).unwrap_or(HttpAnswer::status(500)));
    let (found, said) = log_in(&lockhouse(&open), paste);
    table.row(
        "a server without authorization",
        ensure(found == Some(7) && said.contains("does not ask"), (found, &said)),
    );
    table.finish();
}

#[test]
fn a_token_is_refreshed_when_it_expires_or_is_refused() {
    let mut table = Table::new("tokens that end");
    for (name, behaviour, expected, renewed) in [
        ("expired", Behaviour { lasts: 1, ..COOPERATIVE }, json!("token 2"), 1),
        ("refused in a call", Behaviour { revokes: true, ..COOPERATIVE }, json!("token 2"), 1),
        ("good", COOPERATIVE, json!("token 1"), 0),
    ] {
        let server = start_authorization_server(behaviour);
        let lockhouse = lockhouse(&server);
        assert_eq!(log_in(&lockhouse, follow_redirect_in_browser).0, Some(0));
        let both: Vec<Value> = std::thread::scope(|scope| {
            let run = || lockhouse.answer("python", LOOK)["value"].take();
            let (first, second) = (scope.spawn(run), scope.spawn(run));
            [first, second].map(|run| run.join().expect("an answer")).into()
        });
        table.row(
            format!("{name}: by two processes"),
            equal(&both, &vec![expected.clone(), expected.clone()]),
        );
        table.row(format!("{name}: renewed once"), equal(&renewals(&server), &renewed));
        table.row(format!("{name}: kept"), equal(&lockhouse.answer("python", LOOK)["value"], &expected));
    }
    for (name, behaviour, words) in [
        (
            "expired for good",
            Behaviour { lasts: 1, renews: false, ..COOPERATIVE },
            "its token has expired; run `lockhouse server login web`",
        ),
        (
            "refused for good",
            Behaviour { revokes: true, renews: false, ..COOPERATIVE },
            "run `lockhouse server login web`",
        ),
    ] {
        let server = start_authorization_server(behaviour);
        let lockhouse = lockhouse(&server);
        assert_eq!(log_in(&lockhouse, follow_redirect_in_browser).0, Some(0));
        let outcome = lockhouse.answer("python", LOOK)["value"].take();
        let told = outcome[1].as_str().is_some_and(|text| text.contains(words) && !text.contains("SEKRET"));
        table.row(name, ensure(outcome[0] == "upstream_unavailable" && told, &outcome));
    }
    table.finish();
}

/// Every account of this host can read the address that a browser is opened with. It has nothing with which another
/// account could complete the login.
#[tokio::test(flavor = "multi_thread")]
async fn the_opened_address_has_no_secret_and_leads_only_the_own_account_to_the_server() {
    let server = start_authorization_server(COOPERATIVE);
    let lockhouse = lockhouse(&server);
    let desktop = Desktop::new(&lockhouse);
    let mut command = tokio::process::Command::from(desktop.command(&lockhouse, &["server", "login", "web"]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let login = command.spawn().unwrap();
    let opened = desktop.opened().await;
    let mut table = Table::new("the opened address of a login");
    let port = opened.strip_prefix("http://localhost:").and_then(|rest| rest.strip_suffix("/open"));
    table.row("it has no secret", ensure(port.is_some_and(|port| port.parse::<u16>().is_ok()), &opened));
    let port = port.unwrap_or_default();
    for address in loopback_addresses() {
        if nix::unistd::geteuid().is_root() {
            let refused = get_as(Some(OTHER_ACCOUNT), address, port, "/open", "once");
            table.row(format!("another account at {address}"), equal(refused.as_str(), "403"));
        }
        let confined = get_confined(address, port, "/open", "once");
        table.row(format!("a sandboxed server at {address}"), equal(confined.as_str(), "403"));
        let guessed = get_as(None, address, port, "/callback?code=SEKRET-CODE&state=guessed", "once");
        table.row(format!("another state at {address}"), equal(guessed.as_str(), "404"));
    }
    let host = format!("localhost:{port}");
    let status = |request: String| {
        let mut stream = std::net::TcpStream::connect(&host).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap_or_default().to_owned()
    };
    for (name, request) in ambiguous_heads(&host, "/open") {
        table.row(name, equal(status(request).as_str(), "400"));
    }
    let foreign = "GET /open HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_owned();
    table.row("another host", equal(status(foreign).as_str(), "421"));
    let led = get_as(None, loopback_addresses().last().unwrap(), port, "/open", "once");
    let to = led.strip_prefix("303 ").unwrap_or_default().to_owned();
    let is_complete = to.starts_with(&server.url("/authorize?")) && to.contains("&state=");
    table.row("control: the own account", ensure(is_complete, &led));
    table.row("once", equal(get_as(None, "127.0.0.1", port, "/open", "once").as_str(), "403"));
    let asked = tokio::task::spawn_blocking(move || HttpServer::browse(&to)).await.unwrap();
    let back = asked.headers["location"].clone();
    let received = tokio::task::spawn_blocking(move || HttpServer::browse(&back)).await.unwrap();
    table.row("the redirect back", equal(received.path.as_str(), "200"));
    let said = login.wait_with_output().await.unwrap();
    let said = (said.status.code(), String::from_utf8_lossy(&said.stdout).into_owned());
    table.row("logged in", ensure(said.0 == Some(0) && said.1.contains("Logged in to web"), &said));
    table.finish();
}

/// The metadata of an authorization server names the address that the user's browser opens. A hostile server could name a
/// script, a file, or a page that others can read on the way.
#[test]
fn an_address_that_no_browser_should_open_is_neither_printed_nor_opened() {
    let mut table = Table::new("addresses for consent");
    let hostile = [
        "javascript:alert(1)//",
        "file:///etc/passwd",
        "http://login.example/authorize",
        "vbscript:x",
        "data:text/html,x",
        "not a URL",
    ];
    for (number, address) in hostile.into_iter().enumerate() {
        for member in ["authorization_endpoint", "token_endpoint"] {
            let server = HttpServer::start_knowing(|url| {
                let issued = AtomicUsize::new(0);
                move |request: &HttpRequest| {
                    if request.path != "/.well-known/oauth-authorization-server" {
                        return answer(&url, COOPERATIVE, &issued, request);
                    }
                    let mut metadata = json!({
                        "issuer": url, "authorization_endpoint": format!("{url}/authorize"),
                        "token_endpoint": format!("{url}/token"), "registration_endpoint": format!("{url}/register"),
                        "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                    });
                    metadata[member] = json!(address);
                    HttpAnswer::json(200, &metadata)
                }
            });
            let (status, said) = log_in(&lockhouse(&server), |_, _| ());
            let is_refused = status != Some(0) && said.contains("must begin with https://");
            let is_asked = server.requests().iter().any(|request| request.path.starts_with("/register"));
            table.row(
                format!("{number} {member}: {address}"),
                ensure(is_refused && !is_asked, &(status, said)),
            );
        }
    }
    let server = start_authorization_server(COOPERATIVE);
    let (status, said) = log_in(&lockhouse(&server), follow_redirect_in_browser);
    table.row("control: http on this host", ensure(status == Some(0), &said));
    table.finish();
}

/// Over HTTP+SSE, the request for the event stream shows that the server requires a login.
#[test]
fn a_server_over_sse_gets_its_token_with_every_request() {
    let server = HttpServer::start_knowing(|url| {
        let (issued, opened) = (AtomicUsize::new(0), Mutex::new(None::<SseStream>));
        move |request: &HttpRequest| {
            let is_known =
                request.headers.get("authorization").is_some_and(|value| value == "Bearer SEKRET-1");
            let metadata = "/.well-known/oauth-protected-resource/sse";
            match request.path.as_str() {
                path if path == metadata => {
                    let resource = json!({"resource": format!("{url}/sse"), "authorization_servers": [url]});
                    HttpAnswer::json(200, &resource)
                }
                "/sse" if request.method != "GET" => HttpAnswer::status(405),
                "/sse" | "/messages" if !is_known => {
                    let challenge = format!("Bearer resource_metadata=\"{url}{metadata}\"");
                    HttpAnswer::status(401).with("WWW-Authenticate", &challenge)
                }
                "/sse" => {
                    let (stream, answer) = SseStream::open();
                    stream.write("event: endpoint\ndata: /messages\n\n");
                    *opened.lock().unwrap() = Some(stream);
                    answer
                }
                "/messages" => {
                    opened.lock().unwrap().as_ref().expect("a stream").accept(request, "2024-11-05")
                }
                _ => answer(&url, COOPERATIVE, &issued, request),
            }
        }
    });
    let config = format!("[servers.web]\nurl = \"{}\"\ntransport = \"sse\"\n", server.url("/sse"));
    let lockhouse = Lockhouse::new().config(&config).policy("version = 1\n[servers.web]\nallow = [\"*\"]\n");
    let look = LOOK.replace("{}", "{'at': 'x'}");
    let mut table = Table::new("a login at a server over HTTP+SSE");
    let before = lockhouse.answer("python", &look)["value"].take();
    let told = before[1].as_str().is_some_and(|told| told.contains("run `lockhouse server login web`"));
    table.row("before", ensure(told, &before));
    let (status, said) = log_in(&lockhouse, follow_redirect_in_browser);
    table.row("the login", ensure(status == Some(0) && !said.contains("SEKRET"), said));
    table.row("after", equal(lockhouse.answer("python", &look)["value"].take(), json!("x")));
    table.finish();
}
