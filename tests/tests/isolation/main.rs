//! Nothing lets one client see what is another's: every pair of clients, and everything that one of them may have. Each row
//! is what the other one gets, and each has its control: what the one gets whose it is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod cells;
mod client;
mod over_http;

use lockhouse_tests::{Door, Issuer, Lockhouse, Person, Says, Session, Signer, Table};

use client::Client;
use rmcp::service::ClientLifecycleMode;

/// A draft of a skill and an approval need a person; the rest needs nobody.
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

async fn at_a_socket(lockhouse: &Lockhouse) -> Door {
    let place = format!("unix:{}", lockhouse.path("run/mcp.sock").display());
    Door::open(lockhouse.command(&["serve", "--listen", &place])).await
}

/// Both ways round, since which of two comes first is chance.
async fn both(
    table: &mut Table,
    pair: &str,
    lockhouse: &Lockhouse,
    door: &Door,
    (one, other): (Option<&str>, Option<&str>),
) {
    for (way, first, second) in [("first", one, other), ("second", other, one)] {
        let pair = format!("{pair}, the {way} one's");
        let clients = (Client::http(door, first), Client::http(door, second));
        cells::all(table, &pair, lockhouse, (&clients.0, &clients.1)).await;
        over_http::all(table, &pair, door, (first, second)).await;
    }
}

#[tokio::test]
async fn two_tokens() {
    let lockhouse = lockhouse("");
    let (one, other) = (token(&lockhouse, "one"), token(&lockhouse, "other"));
    let door = lockhouse.door().await;
    let mut table = Table::new("isolation: two tokens");
    both(&mut table, "two tokens", &lockhouse, &door, (Some(&one), Some(&other))).await;
    table.finish();
}

#[tokio::test]
async fn a_token_and_a_user_of_the_machine() {
    let lockhouse = lockhouse("[http]\nauth = [\"token\", \"peer\"]\n");
    let one = token(&lockhouse, "one");
    let door = at_a_socket(&lockhouse).await;
    let mut table = Table::new("isolation: a token and a user");
    both(&mut table, "a token and a user", &lockhouse, &door, (Some(&one), None)).await;
    table.finish();
}

#[tokio::test]
async fn two_subjects_of_an_authorization_server() {
    let signer = Signer::es256("key");
    let issuer = Issuer::start(&[&signer]);
    let config = format!(
        "[http]\nauth = \"oauth\"\n[http.oauth]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\n[http.oauth.scopes]\nall = [\"*\"]\n",
        issuer.name()
    );
    let lockhouse = lockhouse(&config);
    let [one, other] = ["one", "other"].map(|subject| signer.sign(&issuer.claims(subject, AUDIENCE, "all")));
    let door = lockhouse.door().await;
    let mut table = Table::new("isolation: two subjects");
    both(&mut table, "two subjects", &lockhouse, &door, (Some(&one), Some(&other))).await;
    table.finish();
}

#[tokio::test]
async fn two_processes_over_standard_input_that_share_their_state() {
    let lockhouse = lockhouse("");
    let mut table = Table::new("isolation: two processes");
    let person = Person::who_says(Says::Nothing);
    let of_the_other = Person::who_says(Says::Bare);
    let clients = [Person::default(), Person::default()];
    let [one, other] = clients.map(|person| {
        let command = lockhouse.command(&["serve"]);
        async move { Client::Stdio(Session::connect_as(person, command, Session::latest()).await) }
    });
    let (one, other) = (one.await, other.await);
    cells::all(&mut table, "two processes", &lockhouse, (&one, &other)).await;
    // Who is asked for the one is never the person of the other.
    let era = ClientLifecycleMode::Initialize;
    let asked = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), era.clone()).await;
    let beside = Session::connect_as(of_the_other.clone(), lockhouse.command(&["serve"]), era).await;
    // Its servers and workers are there from then on.
    asked.run_code("python", "1").await;
    let running = asked.start_code("python", cells::ASKS);
    lockhouse_tests::wait_until("the person is asked", async || (person.asked().len() == 1).then_some(()))
        .await;
    beside.run_code("python", "1").await;
    table.row("two processes: approval", lockhouse_tests::equal(of_the_other.asked().len(), 0));
    let answer = beside.run_asking(cells::ASKS).await;
    table.row(
        "two processes: approval: control",
        lockhouse_tests::ensure(answer["value"] == 3 && of_the_other.asked().len() == 1, &answer),
    );
    running.abort();
    table.finish();
}
