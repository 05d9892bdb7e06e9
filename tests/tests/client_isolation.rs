//! Tests of the isolation between AI clients: no client can access another client's sessions, results, skills, runs or
//! messages. Each case tests that the attempt of another client fails and, as a control, that the owner has access.

mod all_transports;
mod client;
mod over_http;

use lockhouse_tests::{
    ClientUser, Daemon, HttpClient, Issuer, Lockhouse, Session, Signer, Table, UserReply, descendants, equal,
    is_alive, is_full,
};

use client::Client;
use rmcp::service::ClientLifecycleMode;

use crate::access::client_certificates::{Authority, TLS, connect, with_token};
use crate::http::tls::install_certificate;

/// A policy under which saving a skill and calling the tool `add` require approval, and calling the tool `count` is
/// allowed.
const POLICY: &str = "\
version = 1
[servers.fixture]
allow = [\"count\"]
ask = [\"add\"]
[servers.skills]
ask = [\"save\"]
";
const AUDIENCE: &str = "https://lockhouse.example.com/mcp";

fn lockhouse(config: &str) -> Lockhouse {
    let always = "[limits]\nshown_bytes = 256\n[runs]\nwait_seconds = 2.5\n";
    Lockhouse::new().server("fixture", &[]).policy(POLICY).config(&format!("{always}{config}"))
}

fn token(lockhouse: &Lockhouse, name: &str) -> String {
    lockhouse.run(&["token", "create", name]).stdout.trim_end().to_owned()
}

async fn at_a_socket(lockhouse: &Lockhouse) -> Daemon {
    let location = format!("unix:{}", lockhouse.path("run/mcp.sock").display());
    Daemon::open(lockhouse.command(&["serve", "--listen", &location])).await
}

/// Runs all isolation cases twice, so that each of the two AI clients is once the owner and once the client that
/// attempts access. `pair` names the two clients in the table.
async fn in_both_directions(
    table: &mut Table,
    pair: &str,
    lockhouse: &Lockhouse,
    (one, other): (HttpClient, HttpClient),
) {
    for (way, first, second) in [("first", &one, &other), ("second", &other, &one)] {
        let pair = format!("{pair}, the {way} one's");
        let clients = (Client::Http(first.clone()), Client::Http(second.clone()));
        all_transports::all(table, &pair, lockhouse, (&clients.0, &clients.1)).await;
        over_http::all(table, &pair, (first, second)).await;
    }
}

/// Two AI clients over standard input and output that share an engine.
#[tokio::test]
async fn clients_of_a_shared_engine_are_isolated() {
    let lockhouse = lockhouse("[sharing]\nengine = \"shared\"\nidle_seconds = 2\ndirectory = \"/\"\n");
    let clients = (Client::Stdio(lockhouse.serve().await), Client::Stdio(lockhouse.serve().await));
    let engines = lockhouse.run(&["status", "--json"]).json();
    assert_eq!(engines[0]["clients"].as_array().map(Vec::len), Some(2), "{engines}");
    let mut table = Table::new("isolation of the clients of a shared engine");
    for (way, owner, other) in [("first", &clients.0, &clients.1), ("second", &clients.1, &clients.0)] {
        let pair = format!("a shared engine, the {way} one's");
        all_transports::all(&mut table, &pair, &lockhouse, (owner, other)).await;
    }
    table.finish();
}

#[tokio::test]
async fn clients_with_two_tokens_are_isolated() {
    let lockhouse = lockhouse("");
    let (one, other) = (token(&lockhouse, "one"), token(&lockhouse, "other"));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("isolation: two tokens");
    in_both_directions(
        &mut table,
        "two tokens",
        &lockhouse,
        (daemon.http_client(Some(&one)), daemon.http_client(Some(&other))),
    )
    .await;
    table.finish();
}

#[tokio::test]
async fn clients_with_a_token_and_with_peer_credentials_are_isolated() {
    let lockhouse = lockhouse("[http]\nauth = [\"token\", \"peer\"]\n");
    let one = token(&lockhouse, "one");
    let daemon = at_a_socket(&lockhouse).await;
    let mut table = Table::new("isolation: a token and a user");
    in_both_directions(
        &mut table,
        "a token and a user",
        &lockhouse,
        (daemon.http_client(Some(&one)), daemon.http_client(None)),
    )
    .await;
    table.finish();
}

#[tokio::test]
async fn clients_with_two_oauth_subjects_are_isolated() {
    let signer = Signer::es256("key");
    let issuer = Issuer::start(&[&signer]);
    let config = format!(
        "[http]\nauth = \"oauth\"\n[http.oauth]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\n[http.oauth.scopes]\nall = [\"*\"]\n",
        issuer.name()
    );
    let lockhouse = lockhouse(&config);
    let [one, other] = ["one", "other"].map(|subject| signer.sign(&issuer.claims(subject, AUDIENCE, "all")));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("isolation: two subjects");
    in_both_directions(
        &mut table,
        "two subjects",
        &lockhouse,
        (daemon.http_client(Some(&one)), daemon.http_client(Some(&other))),
    )
    .await;
    table.finish();
}

#[tokio::test]
async fn clients_with_two_certificates_are_isolated() {
    let authority = Authority::new("clients");
    let lockhouse = lockhouse(&format!(
        "[http]\nauth = [\"certificate\", \"token\"]\n[http.client_certificates]\nauthorities = \"ca.pem\"\n{TLS}"
    ));
    install_certificate(&lockhouse, "daemon");
    lockhouse.file("config/lockhouse/ca.pem", authority.pem());
    let token = token(&lockhouse, "one");
    let daemon = lockhouse.daemon().await;
    let [one, other] = [1, 2].map(|number| authority.issue(&format!("client-{number}@example.com"), number));
    let mut table = Table::new("isolation: two certificates, and one with a token");
    let clients = (connect(&daemon, Some(&one)), connect(&daemon, Some(&other)));
    in_both_directions(&mut table, "two certificates", &lockhouse, clients).await;
    if !is_full() {
        return table.finish();
    }
    // The token is the credential of a request that has one.
    let clients = (connect(&daemon, Some(&one)), with_token(connect(&daemon, Some(&one)), &token));
    in_both_directions(&mut table, "a certificate and a token", &lockhouse, clients).await;
    table.finish();
}

#[tokio::test]
async fn clients_of_two_stdio_processes_are_isolated() {
    let lockhouse = lockhouse("");
    let mut table = Table::new("isolation: two processes");
    let person = ClientUser::replying(UserReply::NoReply);
    let of_the_other = ClientUser::replying(UserReply::AcceptEmpty);
    let clients = [ClientUser::default(), ClientUser::default()];
    let [one, other] = clients.map(|person| {
        let command = lockhouse.command(&["serve"]);
        async move { Client::Stdio(Session::connect_as(person, command, Session::latest()).await) }
    });
    let (one, other) = (one.await, other.await);
    all_transports::all(&mut table, "two processes", &lockhouse, (&one, &other)).await;
    // Questions for one client's user are never sent to the other client's user.
    let era = ClientLifecycleMode::Initialize;
    let asked = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), era.clone()).await;
    let beside = Session::connect_as(of_the_other.clone(), lockhouse.command(&["serve"]), era).await;
    // A first run, so that servers and workers are started.
    asked.run_code("python", "1").await;
    let running = asked.start_code("python", all_transports::ASKS);
    lockhouse_tests::wait_until("the user is asked", async || {
        (person.received_requests().len() == 1).then_some(())
    })
    .await;
    beside.run_code("python", "1").await;
    table.row("two processes: approval", lockhouse_tests::equal(of_the_other.received_requests().len(), 0));
    let answer = beside.run_asking(all_transports::ASKS).await;
    table.row(
        "two processes: approval: control",
        lockhouse_tests::ensure(answer["value"] == 3 && of_the_other.received_requests().len() == 1, &answer),
    );
    running.abort();
    table.finish();
}

/// A server with `share = false` has a process for each AI client, and one without has one for all.
#[tokio::test]
async fn clients_have_processes_of_their_own_of_a_server_that_is_not_shared() {
    let mut table = Table::new("processes of a server");
    for (share, expected) in [("share = false\n", [1, 1, 2]), ("", [1, 2, 3])] {
        let fixture = env!("CARGO_BIN_EXE_fixture-server");
        let lockhouse = Lockhouse::new()
            .policy("version = 1\n[servers.counter]\nallow = [\"*\"]\n")
            .config(&format!("[servers.counter]\ncommand = {fixture:?}\n{share}"));
        let (one, other) = (token(&lockhouse, "one"), token(&lockhouse, "other"));
        let daemon = lockhouse.daemon().await;
        let servers =
            || descendants(daemon.pid()).iter().filter(|it| it.command.contains("fixture-server")).count();
        let (one, other) = (daemon.http_client(Some(&one)), daemon.http_client(Some(&other)));
        let mut counted = Vec::new();
        for client in [&one, &other, &one] {
            // The server counts the calls that it has got, including this one.
            let code = "from mcp_tools.counter import echo, count\necho(value=1)\ncount()['echo']";
            let answer = client.run_code("python", code).await;
            counted.push(answer["value"].as_u64().unwrap_or_default());
        }
        table.row(format!("{share:?}: the calls that each client sees"), equal(counted, expected.to_vec()));
        let processes = if share.is_empty() { 1 } else { 2 };
        table.row(format!("{share:?}: processes"), equal(servers(), processes));
        let left = descendants(daemon.pid());
        table.row(format!("{share:?}: it ends"), equal(daemon.terminate().await.status, Some(0)));
        let alive = left.iter().filter(|process| is_alive(process.pid)).count();
        table.row(format!("{share:?}: nothing is left"), equal(alive, 0));
    }
    table.finish();
}
