//! Tests of upstream servers with `auth = "per_user"`: each user's calls use that user's own credentials and nobody else's, however
//! many users call at once, while tokens are renewed, revoked and lost, and the service restarts.

mod account_server;
pub(crate) mod browser;
mod forgotten_user;
pub(crate) mod npm_provider;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use account_server::AccountServer;
use browser::{Browser, field};
use futures_util::future::join_all;
use lockhouse_tests::{
    CommandOutput, Daemon, HttpServer, Lockhouse, Table, ensure, equal, fixture_server, free_port, is_full,
};
use serde_json::{Value, json};

use crate::access::token;

/// The secret that encrypts what users have.
pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef-a-key-of-users";
/// Returns an expression of Python that makes a call of a server, and whose value is the user for whom the server takes the caller.
fn caller_at(server: &str, name: &str) -> String {
    match server {
        "process" => "call_tool('process', 'env', {})['USER_SECRET'].removeprefix('SECRET-OF-')".to_owned(),
        _ => format!("str(call_tool('{server}', 'look', {{'at': '{name}'}}))"),
    }
}

/// A service with upstream servers of each kind, and users with a token each.
struct Service {
    lockhouse: Lockhouse,
    port: u16,
    /// Those with OAuth logins, and last the one whose users have a secret.
    servers: Vec<AccountServer>,
    users: Vec<(String, String)>,
}

impl Service {
    fn new(users: usize, servers: usize) -> Self {
        Self::with_config(users, servers, "")
    }

    /// Returns a service with a further text at the end of its configuration.
    fn with_config(users: usize, servers: usize, further: &str) -> Self {
        let port = free_port();
        let servers: Vec<AccountServer> = (0..servers).map(|_| AccountServer::start()).collect();
        let lockhouse = Lockhouse::new();
        lockhouse.file("credentials/lockhouse-users", KEY);
        let mut config = format!(
            "[users]\nkey = \"${{cred:lockhouse-users}}\"\nurl = \"http://127.0.0.1:{port}\"\n\
             [servers.process]\ncommand = \"{}\"\nauth = \"per_user\"\nuser_secret = \"USER_SECRET\"\n",
            fixture_server().display()
        );
        let mut policy = "version = 1\n[servers.process]\nallow = [\"*\"]\n".to_owned();
        for (number, server) in servers.iter().enumerate() {
            let secret = if number + 1 == servers.len() { "user_secret = \"X-Api-Key\"\n" } else { "" };
            config +=
                &format!("[servers.s{number}]\nurl = \"{}\"\nauth = \"per_user\"\n{secret}", server.url());
            policy += &format!("[servers.s{number}]\nallow = [\"*\"]\n");
        }
        let lockhouse = lockhouse.config(&(config + further)).policy(&policy);
        let names = (0..users).map(|number| format!("user-{number}"));
        let users = names.map(|name| (name.clone(), token(&lockhouse, &[&name]))).collect();
        Self { lockhouse, port, servers, users }
    }

    async fn daemon(&self) -> Daemon {
        let listen = format!("127.0.0.1:{}", self.port);
        let mut command = self.lockhouse.command(&["serve", "--listen", &listen]);
        command.env("CREDENTIALS_DIRECTORY", self.lockhouse.path("credentials"));
        Daemon::open(command).await
    }

    fn names(&self) -> Vec<String> {
        let numbered = (0..self.servers.len()).map(|number| format!("s{number}"));
        numbered.chain(["process".to_owned()]).collect()
    }

    /// Logs a user in to a server, as that user does in a browser. Returns the text of the last page.
    async fn log_in(&self, (name, token): &(String, String), server: &str) -> String {
        let has_secret = server == "process" || server == format!("s{}", self.servers.len() - 1);
        let secret = has_secret.then(|| format!("SECRET-OF-{name}"));
        Browser::default().log_in(&self.page(server), token, secret.as_deref(), name).await
    }

    fn page(&self, server: &str) -> String {
        format!("http://127.0.0.1:{}/login/{server}", self.port)
    }

    /// Returns whom each server took for the caller of a program of this user, or the error.
    async fn callers(&self, daemon: &Daemon, (name, token): &(String, String)) -> Vec<String> {
        let mut code = "from mcp_tools import ToolError, call_tool\nfound = []\n".to_owned();
        for server in self.names() {
            code += &format!(
                "try: found.append({})\nexcept ToolError as error: found.append(error.code)\n",
                caller_at(&server, name)
            );
        }
        code += "found";
        let answer = daemon.http_client(Some(token)).run_code("python", &code).await;
        let found = answer["value"].as_array().unwrap_or_else(|| panic!("{answer}"));
        found.iter().map(|found| found.as_str().unwrap_or_default().to_owned()).collect()
    }

    fn stored(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut directories = vec![self.lockhouse.path("state/lockhouse/users")];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                if entry.path().is_dir() { directories.push(entry.path()) } else { files.push(entry.path()) }
            }
        }
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        files
    }
}

/// Returns how many users and servers there are, and how often each user calls all servers in each round.
fn size() -> (usize, usize, usize) {
    if is_full() { (6, 5, 40) } else { (3, 2, 4) }
}

#[tokio::test]
async fn no_credential_is_ever_used_for_another_user() {
    let (users, servers, runs) = size();
    let service = Service::new(users, servers);
    let mut table = Table::new("credentials of users");
    let daemon = service.daemon().await;

    let before = service.callers(&daemon, &service.users[0]).await;
    table.row("without a login", equal(before, vec!["login_required".to_owned(); servers + 1]));
    for user in &service.users {
        for server in service.names() {
            let page = service.log_in(user, &server).await;
            let is_done = page.contains("You are logged in") || page.contains("is stored");
            table.row(format!("{} logs in to {server}", user.0), ensure(is_done, &page));
        }
    }
    let mut daemon = Some(daemon);
    for round in ["first", "second", "third"] {
        let running = match daemon.take() {
            Some(running) => running,
            None => service.daemon().await,
        };
        let all = service.users.iter().map(|user| {
            let running = &running;
            let service = &service;
            async move { (user, join_all((0..runs).map(|_| service.callers(running, user))).await) }
        });
        for (user, found) in join_all(all).await {
            let expected = vec![vec![user.0.clone(); servers + 1]; runs];
            table.row(format!("{} is themselves everywhere, {round} round", user.0), equal(found, expected));
        }
        // The next process finds access tokens that are not valid any more, and renews them.
        service.servers.iter().for_each(AccountServer::expire_all);
        running.kill().await;
    }
    let calls: usize = service.servers.iter().map(AccountServer::calls).sum();
    let renewals: usize = service.servers.iter().map(AccountServer::renewals).sum();
    let crossed: usize = service.servers.iter().map(AccountServer::crossed).sum();
    table.row("calls at the servers", equal(calls, 3 * runs * users * servers));
    table.row("renewals at the servers", ensure(renewals >= 2 * users * (servers - 1), renewals));
    table.row("calls with the credential of another user", equal(crossed, 0));

    let daemon = service.daemon().await;
    let code = "from mcp_tools import call_tool\ncall_tool('s0', 'look', {'at': 'somebody else'})";
    daemon.http_client(Some(&service.users[0].1)).run_code("python", code).await;
    table.row("control: the servers see a wrong user", equal(service.servers[0].crossed(), 1));

    let (ada, bob) = (&service.users[0], &service.users[1]);
    let page = Browser::default().log_out(&service.page("s0"), &ada.1).await;
    table.row("logout", ensure(page.contains("no credentials for s0 here any more"), &page));
    table.row("the tokens are revoked", equal(service.servers[0].has_tokens_of(&ada.0), false));
    table
        .row("control: those of another user are not", equal(service.servers[0].has_tokens_of(&bob.0), true));
    let found = service.callers(&daemon, ada).await;
    table.row("after the logout", equal(found[0].as_str(), "login_required"));
    table.row("the other servers", equal(found[1..].to_vec(), vec![ada.0.clone(); servers]));
    let page = service.log_in(ada, "s0").await;
    table.row("another login", ensure(page.contains("You are logged in"), &page));
    table.row("after it", equal(service.callers(&daemon, ada).await, vec![ada.0.clone(); servers + 1]));

    let records = service.lockhouse.records();
    let logins = |outcome: &str| {
        let is_it = |record: &&Value| {
            record["event"] == "login"
                && record["outcome"] == outcome
                && record["client"].as_str().is_some_and(|client| client.ends_with(&ada.0))
        };
        records.iter().filter(is_it).count()
    };
    let calls = records.iter().filter(|record| record["event"] == "call");
    let named = |record: &&Value| {
        record["account"].as_str() == record["client"].as_str().map(|name| format!("token:{name}")).as_deref()
    };
    let (right, wrong): (Vec<&Value>, Vec<&Value>) = calls.partition(named);
    table.row("records of calls name whose credentials they used", ensure(wrong.is_empty(), &wrong));
    table
        .row("control: there are some", ensure(right.len() >= 3 * runs * users * (servers + 1), right.len()));
    table.row("records of logins", equal((logins("granted"), logins("logged out")), (servers + 2, 1)));
    table.finish();
}

#[tokio::test]
async fn what_is_stored_is_encrypted_and_bound_to_its_user_server_and_key() {
    let service = Service::new(2, 2);
    let mut daemon = service.daemon().await;
    let mut table = Table::new("stored credentials");
    for user in &service.users {
        for server in service.names() {
            service.log_in(user, &server).await;
        }
    }
    let files = service.stored();
    table.row("a file of each user and server", equal(files.len(), 6));
    let has = |file: &Path, words: &str| {
        let content = std::fs::read(file).unwrap_or_default();
        content.windows(words.len()).any(|part| part == words.as_bytes())
    };
    let readable = files.iter().any(|file| has(file, "SECRET") || has(file, "TOKEN") || has(file, "user-"));
    table.row("nothing of them can be read", ensure(!readable, &files));
    table.row(
        "control: before",
        equal(service.callers(&daemon, &service.users[1]).await, vec!["user-1".to_owned(); 3]),
    );

    // The files of one user in the place of those of the other, under the same names.
    let (one, other): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.parent() == files[0].parent());
    for (from, to) in one.iter().zip(&other) {
        std::fs::copy(from, to).expect("a copy");
    }
    daemon.kill().await;
    daemon = service.daemon().await;
    let mut found = Vec::new();
    for user in &service.users {
        found.push(service.callers(&daemon, user).await);
    }
    let names: Vec<usize> = ["user-0", "user-1"]
        .iter()
        .map(|name| found.concat().iter().filter(|found| found == name).count())
        .collect();
    table
        .row("files of another user are of no use", ensure(names.contains(&3) && names.contains(&0), &found));

    service.lockhouse.file("credentials/lockhouse-users", KEY.to_uppercase());
    daemon.kill().await;
    daemon = service.daemon().await;
    let found = service.callers(&daemon, &service.users[0]).await;
    table.row("with another key", ensure(found.iter().all(|found| !found.starts_with("user-")), &found));
    let crossed: usize = service.servers.iter().map(AccountServer::crossed).sum();
    table.row("calls with the credential of another user", equal(crossed, 0));
    table.finish();
}

#[tokio::test]
async fn the_page_belongs_to_the_user_whose_token_is_entered_and_to_the_browser_that_began() {
    let service = Service::new(2, 2);
    let _daemon = service.daemon().await;
    let mut table = Table::new("the page of logins");
    let [(ada, token), (_, of_bob)] = service.users.as_slice() else { panic!("two users") };
    let (page, mut browser) = (service.page("s0"), Browser::default());

    let shown = browser.get(&page).await;
    table.row("the form", ensure(shown.status == 200 && shown.body.contains("name=\"token\""), &shown));
    table.row("no script, no frame", ensure(shown.policy.contains("default-src 'none'; "), &shown.policy));
    table.row(
        "an unknown server has a form too",
        equal(browser.get(&service.page("absent")).await.status, 200),
    );
    let unknown = browser.post(&service.page("absent"), &field("token", token)).await;
    table.row("but no login", equal(unknown.status, 404));
    let wrong = browser.post(&page, &field("token", &format!("{token}x"))).await;
    table.row("a wrong token", equal(wrong.status, 401));
    let hostile = browser.post(&page, &(field("token", token) + "&" + &field("secret", "<b>\u{7}"))).await;
    let is_refused = hostile.status == 422 && !hostile.body.contains("<b>");
    table.row("a secret for a server with logins", ensure(is_refused, &hostile));
    let missing = browser.post(&service.page("s1"), &field("token", token)).await;
    table.row(
        "a missing secret",
        ensure(missing.status == 422 && missing.body.contains("asks for a secret"), &missing),
    );

    let back = browser.begin(&page, token, ada).await;
    let stolen = Browser::default().get(&back).await;
    table.row("another browser does not complete the login", ensure(stolen.status == 400, &stolen));
    let mut of_another = Browser::default();
    of_another.begin(&page, of_bob, "user-1").await;
    table.row("nor does that of another user", equal(of_another.get(&back).await.status, 400));
    let other_state = back.replace("state=", "state=x");
    table.row("nor another state", equal(browser.get(&other_state).await.status, 400));
    let done = browser.get(&back).await;
    table.row("control: the browser that began does", ensure(done.body.contains("You are logged in"), &done));
    table.row("once", equal(browser.get(&back).await.status, 400));

    let back = browser.begin(&page, token, ada).await.replace("code=", "code=x");
    let failed = browser.get(&back).await;
    table.row("a wrong code", ensure(failed.status == 502 && failed.body.contains("Not logged in"), &failed));
    let cross = reqwest::Client::builder().no_proxy().build().expect("a client").post(&page);
    let cross = cross.header("Origin", "https://evil.example.com").body(field("token", token)).send().await;
    table.row("a form of another site", equal(cross.expect("an answer").status().as_u16(), 403));
    table.finish();
}

#[tokio::test]
async fn a_call_asks_for_the_login_of_its_user_and_waits_for_it() {
    let service = Service::new(1, 2);
    let daemon = service.daemon().await;
    let mut table = Table::new("a call without a login");
    let user = &service.users[0];
    let client = daemon.http_client(Some(&user.1)).with_capabilities(json!({"elicitation": {"url": {}}}));
    for (server, action, expected) in [
        ("s1", "decline", "login_required"),
        ("s0", "accept", user.0.as_str()),
        ("process", "accept", user.0.as_str()),
    ] {
        let code = format!(
            "from mcp_tools import ToolError, call_tool\n\
             try: r = {}\nexcept ToolError as error: r = error.code\nr",
            caller_at(server, &user.0)
        );
        let mut message = client.calling("run_code", json!({"language": "python", "code": code}));
        let asked = client.post(&message).await.answer()["result"].clone();
        let (key, question) =
            asked["inputRequests"].as_object().and_then(|asked| asked.iter().next()).expect("a question");
        table.row(
            format!("{server}: the page"),
            equal(question["params"]["url"].clone(), json!(service.page(server))),
        );
        if action == "accept" {
            service.log_in(user, server).await;
        }
        message["params"]["requestState"] = asked["requestState"].clone();
        message["params"]["inputResponses"] = json!({key: {"action": action}});
        let mut answer = client.post(&message).await.answer()["result"]["structuredContent"].clone();
        while answer["status"] == "running" {
            answer = client.call("get_result", json!({"handle": answer["handle"], "wait_s": 60})).await;
        }
        table.row(format!("{server}: {action}"), equal(answer["value"].clone(), json!(expected)));
    }
    table.finish();
}

#[test]
fn the_list_of_tools_has_a_login_of_the_service_that_no_call_uses() {
    let server = AccountServer::start_private();
    let config = format!(
        "[users]\nkey = \"${{cred:lockhouse-users}}\"\n[servers.s0]\nurl = \"{}\"\nauth = \"per_user\"\n",
        server.url()
    );
    let lockhouse = Lockhouse::new().config(&config).policy("version = 1\n[servers.s0]\nallow = [\"*\"]\n");
    lockhouse.file("credentials/lockhouse-users", KEY);
    let command = |arguments: &[&str]| {
        let mut command = lockhouse.command(arguments);
        command.env("CREDENTIALS_DIRECTORY", lockhouse.path("credentials"));
        command
    };
    // Opens the address that the command prints, as a person does in a browser.
    let log_in = |arguments: &[&str], user: &str| {
        let mut child = command(&[&["server", "login", "s0", "--no-browser"], arguments].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines().map_while(Result::ok);
        let address = lines.by_ref().find(|line| line.trim().starts_with("http://")).expect("an address");
        let consented = HttpServer::browse(&format!("{}&user={user}", address.trim()));
        let _page = HttpServer::browse(consented.headers.get("location").expect("the way back"));
        lines.for_each(drop);
        child.wait().expect("an end").success()
    };
    let run = |code: &str| {
        let mut command = command(&["run", "-", "--language", "python", "--json"]);
        CommandOutput::run(&mut command, code.as_bytes()).json()["value"].clone()
    };
    let listed = "from mcp_tools import search_tools\nlen(search_tools('look'))";
    let caller = "from mcp_tools import ToolError, call_tool\n\
                  try: r = str(call_tool('s0', 'look', {'at': 'ada'}))\nexcept ToolError as error: r = error.code\nr";
    let mut table = Table::new("the login for the list of tools");
    table.row("no login", equal((run(listed), run(caller)), (json!(0), json!("login_required"))));
    table.row("the service logs in", equal(log_in(&["--service"], "service"), true));
    table.row(
        "it lists, and calls nothing",
        equal((run(listed), run(caller)), (json!(1), json!("login_required"))),
    );
    table.row("the user logs in", equal(log_in(&[], "ada"), true));
    table.row("a call is the user's", equal(run(caller), json!("ada")));
    let logout = command(&["server", "logout", "s0"]).output().expect("an end");
    table.row("the user logs out", ensure(logout.status.success(), &logout));
    table.row("the list stays", equal((run(listed), run(caller)), (json!(1), json!("login_required"))));
    table.finish();
}

#[test]
fn a_server_with_credentials_of_users_needs_a_key_and_a_place_for_them() {
    let mut table = Table::new("configuration of credentials of users");
    let key = "[users]\nkey = \"${cred:lockhouse-users}\"\n";
    for (what, users, server, reason) in [
        ("no key", "", "url = \"https://a.example.com/mcp\"", "set key of [users]"),
        (
            "a key in the file",
            "[users]\nkey = \"secret\"\n",
            "url = \"https://a.example.com/mcp\"",
            "one placeholder",
        ),
        ("a program without a secret", key, "command = \"true\"", "needs user_secret"),
        ("direct use", key, "url = \"https://a.example.com/mcp\"\nexpose = \"direct\"", "expose = \"code\""),
        ("a socket", key, "url = \"unix:/run/a.sock\"\nuser_secret = \"A\"", "http or https URL"),
        (
            "a fixed token",
            key,
            "url = \"https://a.example.com/mcp\"\nbearer_token = \"${env:HOME}\"",
            "needs user_secret",
        ),
        ("control", key, "url = \"https://a.example.com/mcp\"", ""),
    ] {
        let lockhouse = Lockhouse::new()
            .config(&format!("{users}[servers.a]\n{server}\nauth = \"per_user\"\nstart = \"lazy\"\n"));
        lockhouse.file("credentials/lockhouse-users", KEY);
        let mut command = lockhouse.command(&["server", "list", "--json"]);
        command.env("CREDENTIALS_DIRECTORY", lockhouse.path("credentials"));
        let listed = String::from_utf8(command.output().expect("an end").stdout).expect("UTF-8");
        let is_skipped = listed.contains("\"left_out\"") && listed.contains(&reason.replace('"', "\\\""));
        let is_right = if reason.is_empty() {
            !listed.contains("needs") && !listed.contains("expected")
        } else {
            is_skipped
        };
        table.row(what, ensure(is_right, &listed));
    }
    let lockhouse = Lockhouse::new().config("[servers.a]\ncommand = \"true\"\nuser_secret = \"A\"\n");
    let refused = lockhouse.run(&["server", "list"]);
    table.row(
        "a secret without auth",
        ensure(refused.stderr.contains("auth = \"per_user\" with it"), &refused),
    );
    table.finish();
}
