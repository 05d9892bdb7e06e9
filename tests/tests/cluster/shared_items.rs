//! What all hosts share: logins of users, of which each token is renewed once, and skills.

use futures_util::future::join_all;
use lockhouse_tests::{HttpClient, Lockhouse, Table, ensure, equal, is_full, wait_until};
use serde_json::{Value, json};

use super::hosts::{HOSTS, Hosts};
use super::nats::Nats;
use crate::access::user_credentials::KEY;
use crate::access::user_credentials::browser::Browser;
use crate::access::user_credentials::npm_provider::NpmServer;

/// Adds the secrets of a host, all of which have the same.
fn with_secrets(lockhouse: Lockhouse) -> Lockhouse {
    lockhouse.file("credentials/shared", "0123456789abcdef0123456789abcdef-a-key-of-hosts");
    lockhouse.file("credentials/lockhouse-users", KEY);
    lockhouse
}

fn config(server: &NpmServer) -> String {
    format!(
        "shared_key = \"${{cred:shared}}\"\n[users]\nkey = \"${{cred:lockhouse-users}}\"\nurl = \"http://127.0.0.1:PORT\"\n\
         [servers.s0]\nurl = \"{}/mcp\"\nauth = \"per_user\"\n",
        server.base
    )
}

/// Returns whom the server took for the caller of a program of this client, or the error; the whole answer, if it has no value.
async fn caller(client: &HttpClient, name: &str) -> Value {
    let code = format!(
        "from mcp_tools import ToolError, call_tool\ntry: found = str(call_tool('s0', 'look', {{'at': '{name}'}}))\n\
         except ToolError as e: found = e.code\nfound"
    );
    let answer = client.run_code("python", &code).await;
    if answer["value"].is_null() { answer } else { answer["value"].clone() }
}

/// Waits until each host answers a client of the user like this.
async fn each_answers(hosts: &Hosts, user: usize, expected: &str) {
    for host in 0..HOSTS {
        wait_until("each host knows the login", async || {
            let (client, name) = user_at(hosts, user, host);
            (caller(&client, name).await == expected).then_some(())
        })
        .await;
    }
}

const USERS: usize = 2;

fn user_at(hosts: &Hosts, user: usize, host: usize) -> (HttpClient, &'static str) {
    match user {
        0 => (hosts.client(host), "desk"),
        _ => (hosts.other_client(host), "other"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_at_one_host_serves_all_and_each_token_is_renewed_once() {
    const RUNS: usize = 2;
    let (Some(nats), Some(server)) = (Nats::start().await, NpmServer::start("")) else { return };
    let policy = "version = 1\n[servers.s0]\nallow = [\"*\"]\n";
    let mut hosts = Hosts::start(&nats, &config(&server), |host| with_secrets(host.policy(policy))).await;
    let mut table = Table::new("logins of two users at three hosts");
    for (user, token) in [hosts.token.clone(), hosts.other_token.clone()].iter().enumerate() {
        let (_, name) = user_at(&hosts, user, 0);
        for host in 0..HOSTS {
            let (client, name) = user_at(&hosts, user, host);
            table.row(
                format!("control: {name} at h{host} before"),
                equal(caller(&client, name).await, json!("login_required")),
            );
        }
        // Each user logs in at another host.
        let page = format!("http://127.0.0.1:{}/login/s0", hosts.listening[user]);
        let shown = Browser::default().log_in(&page, token, None, name).await;
        table.row(format!("{name} logs in at h{user}"), equal(shown.contains("You are logged in"), true));
        each_answers(&hosts, user, name).await;
    }
    // A token that was renewed just now is not renewed again.
    for round in 1..=2 {
        let calls = (0..USERS * HOSTS * RUNS).map(|number| user_at(&hosts, number % USERS, number % HOSTS));
        let calls = calls.map(|(client, name)| async move { (caller(&client, name).await, json!(name)) });
        for (found, expected) in join_all(calls).await {
            table.row(format!("round {round}"), equal(found, expected));
        }
        server.get("/expire").await;
    }
    table.row("renewals", equal(server.figure("renewals").await, USERS as u64));
    // Its copies are older than what the others have meanwhile.
    hosts.daemons[0].take().expect("it runs").kill().await;
    each_answers_of(&hosts, &[1, 2], 0, "desk").await;
    hosts.start_host(0).await;
    each_answers(&hosts, 0, "desk").await;
    each_answers(&hosts, 1, "other").await;
    table.row(
        "renewals with a host that was away",
        equal(server.figure("renewals").await, (2 * USERS) as u64),
    );

    let page = format!("http://127.0.0.1:{}/login/s0", hosts.listening[2]);
    Browser::default().log_out(&page, &hosts.token).await;
    each_answers(&hosts, 0, "login_required").await;
    each_answers(&hosts, 1, "other").await;
    table.row("calls with the credential of another user", equal(server.figure("crossed").await, 0));
    table.finish();
}

async fn each_answers_of(hosts: &Hosts, which: &[usize], user: usize, expected: &str) {
    for &host in which {
        let (client, name) = user_at(hosts, user, host);
        wait_until("the host answers", async || (caller(&client, name).await == expected).then_some(()))
            .await;
    }
}

/// A host whose key is another one uses nothing of the others, and the others nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn skills_are_those_of_all_hosts_with_the_same_key() {
    let saves = if is_full() { 20 } else { 7 };
    let Some(nats) = Nats::start().await else { return };
    let config = "shared_key = \"${cred:shared}\"\n";
    let policy = "version = 1\n[servers.skills]\nallow = [\"save\"]\n";
    let hosts = Hosts::start(&nats, config, |host| with_secrets(host.policy(policy))).await;
    let mut table = Table::new("skills of three hosts");
    let save = |host: usize| {
        let code = format!(
            "import skills\nversions = []\nfor n in range({saves}):\n    \
             versions.append(skills.save('f', 'd', code=f'def f(): return ({host}, {{n}})')['version'])\nversions"
        );
        let client = hosts.client(host);
        async move { client.run_code("python", &code).await["value"].clone() }
    };
    let saved = join_all((0..HOSTS).map(save)).await;
    let mut versions: Vec<u64> = saved
        .iter()
        .flat_map(|of| of.as_array().cloned().unwrap_or_default())
        .filter_map(|v| v.as_u64())
        .collect();
    versions.sort_unstable();
    table.row("versions", equal(versions, (1..=(HOSTS * saves) as u64).collect::<Vec<_>>()));
    let import = "from skills.f import f\nf()";
    let last = wait_until("all hosts have the newest version", async || {
        let found = join_all(
            (0..HOSTS)
                .map(|host| hosts.client(host))
                .map(|client| async move { client.run_code("python", import).await["value"].clone() }),
        )
        .await;
        found.iter().all(|value| *value == found[0]).then(|| found[0].clone())
    })
    .await;
    table.row("the newest one is the last of a host", equal(last[1].clone(), json!(saves - 1)));
    let foreign = hosts.other_client(1).run_code("python", import).await;
    let message = foreign["error"]["message"].as_str().unwrap_or_default();
    table.row("another client", ensure(message.contains("there is no skill f"), &foreign));
    let removed = hosts.lockhouses[1].run(&["skills", "remove", "f", "--client", "token:desk", "--yes"]);
    table.row("it is removed on h1", ensure(removed.status == Some(0), &removed));
    for host in 0..HOSTS {
        wait_until("it is removed on each host", async || {
            let answer = hosts.client(host).run_code("python", import).await;
            answer["error"]["message"]
                .as_str()
                .is_some_and(|text| text.contains("there is no skill"))
                .then_some(())
        })
        .await;
    }
    table.finish();
}

/// What each host learns of results is shown by all, in one form, so that the lists of tools do not alternate behind a balancer.
#[tokio::test(flavor = "multi_thread")]
async fn learned_result_types_are_those_of_all_hosts() {
    let Some(nats) = Nats::start().await else { return };
    let hosts = Hosts::start(&nats, "shared_key = \"${cred:shared}\"\n", with_secrets).await;
    let mut table = Table::new("what three hosts learn of one tool");
    let learned = wait_until("all hosts show what each has learned", async || {
        // A host learns from one result at a time.
        for (host, field) in ["a", "b", "c"].iter().enumerate() {
            let code = format!(
                "from mcp_tools.fixture import echo\nfor n in range(2): echo(value={{'id': n, '{field}': 'x'}})"
            );
            hosts.client(host).run_code("python", &code).await;
        }
        let shown = join_all((0..HOSTS).map(|host| described(&hosts, host))).await;
        let fields = shown[0]["observedOutput"]["properties"]["value"]["properties"].as_object()?;
        (fields.len() == 4 && shown.iter().all(|other| *other == shown[0])).then(|| shown[0].clone())
    })
    .await;
    let signature = learned["python"].as_str().unwrap_or_default();
    table.row(
        "the signature",
        ensure(
            ["id: int", "a?: str", "b?: str", "c?: str"].iter().all(|field| signature.contains(field)),
            signature,
        ),
    );
    let mut lists = Vec::new();
    for host in 0..HOSTS {
        lists.push(hosts.client(host).request("tools/list", json!({})).await.answer()["result"].clone());
    }
    table.row("the lists of tools", ensure(lists.iter().all(|list| *list == lists[0]), &lists));
    let forgotten = hosts.lockhouses[2].run(&["tools", "shapes", "--forget", "fixture.echo"]);
    table.row("it is forgotten on h2", ensure(forgotten.stdout.contains("1 tool"), &forgotten));
    for host in 0..HOSTS {
        wait_until("each host has forgotten it", async || {
            described(&hosts, host).await.get("observedOutput").is_none().then_some(())
        })
        .await;
    }
    table.finish();
}

/// Returns how a host describes the tool `echo` to models.
async fn described(hosts: &Hosts, host: usize) -> Value {
    let found =
        hosts.client(host).call("search_tools", json!({"query": "fixture.echo", "detail": "full"})).await;
    found["tools"][0].clone()
}

/// A host with another key uses nothing of the others, and replaces nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_another_key_shares_nothing() {
    let Some(nats) = Nats::start().await else { return };
    let policy = "version = 1\n[servers.skills]\nallow = [\"save\"]\n";
    let config = "shared_key = \"${cred:shared-HOST}\"\n";
    let hosts = Hosts::start(&nats, config, |host| {
        for (name, key) in [("h0", "a"), ("h1", "a"), ("h2", "b")] {
            host.file(&format!("credentials/shared-{name}"), key.repeat(32));
        }
        host.policy(policy)
    })
    .await;
    let mut table = Table::new("skills of hosts with two keys");
    let save = |value: &str| {
        format!("import skills\nskills.save('f', 'd', code='def f(): return {value}')['version']")
    };
    let import = async |host: usize| {
        hosts.client(host).run_code("python", "from skills.f import f\nf()").await["value"].clone()
    };
    table.row(
        "h0 saves",
        equal(hosts.client(0).run_code("python", &save("1")).await["value"].clone(), json!(1)),
    );
    wait_until("h1 has it", async || (import(1).await == json!(1)).then_some(())).await;
    hosts.daemons[2].as_ref().expect("it runs").wait_for_log("sealed with another shared_key").await;
    table.row("h2 does not have it", equal(import(2).await, Value::Null));
    table.row(
        "h2 saves",
        equal(hosts.client(2).run_code("python", &save("2")).await["value"].clone(), json!(1)),
    );
    table.row("h2 has its own", equal(import(2).await, json!(2)));
    table.row(
        "h0 saves again",
        equal(hosts.client(0).run_code("python", &save("3")).await["value"].clone(), json!(2)),
    );
    wait_until("h1 has the new one", async || (import(1).await == json!(3)).then_some(())).await;
    table.row("h2 still has its own", equal(import(2).await, json!(2)));
    table.finish();
}
