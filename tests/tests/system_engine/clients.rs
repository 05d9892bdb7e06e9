//! Tests of AI clients on a host whose engines belong to the system.

use lockhouse_tests::{CommandOutput, Table, ensure, equal};

use super::host::{Host, OTHER_PERSON, PERSON, can_manage};

const ADD_ONLY: &str = "version = 1\n[servers.fixture]\nallow = [\"add\"]\n";
const ADD: &str = "from fixture import add\nadd(a=40, b=2)['sum']";
/// A program that returns the account that it runs as, and what it can see of the host.
const WHO: &str = "import os\n[os.getuid(), os.path.exists('/etc/passwd')]";

#[tokio::test(flavor = "multi_thread")]
async fn a_persons_clients_use_the_engine_of_the_system_and_nothing_else() {
    if !can_manage() {
        return;
    }
    let mut host = Host::managed(ADD_ONLY).await;
    let mut table = Table::new("clients of a person");
    let client = host.client().await;
    table.row("a call", equal(client.run_code("python", ADD).await["value"].clone(), 42.into()));
    let who = client.run_code("python", WHO).await;
    table.row("a program does not run as the person", ensure(who["value"][0] != PERSON, &who));
    let server = "pgrep -P \"$ENGINE\" fixture-server | head -n 1";
    let engine = host.engine().unwrap_or_default();
    let limits = run(host.shell_as(0, &format!("ENGINE={engine}; cat /proc/$({server})/limits")));
    let is_confined = limits
        .stdout
        .lines()
        .any(|line| line.starts_with("Max msgqueue size") && line.split_whitespace().nth(4) == Some("0"));
    table.row("a server in the account of the engine has a sandbox", ensure(is_confined, &limits));
    let other = Host::lockhouse_as(&host, OTHER_PERSON, &["serve"]);
    let refused = run(other);
    let is_refused = refused.status == Some(7) && refused.stderr.contains("cannot be reached");
    table.row("another person has no engine", ensure(is_refused, &refused));
    for arguments in
        [&["run", "-c", "1+1", "--language", "python"][..], &["serve", "--http"], &["engine", "--setup", "x"]]
    {
        let refused = run(host.lockhouse_as(PERSON, arguments));
        let is_refused = refused.status == Some(2) && !refused.stdout.contains('2');
        table.row(arguments.join(" "), ensure(is_refused, &refused));
    }
    host.kill_engine();
    let lost = client.run_code("python", "1+1").await;
    table.row("without the engine nothing runs", ensure(lost["value"] != 2, &lost));
    host.start_engine().await;
    let again = client.run_code("python", "1+1").await;
    table.row("the client finds the next engine", equal(again["value"].clone(), 2.into()));
    table.finish();
}

fn run(mut command: std::process::Command) -> CommandOutput {
    CommandOutput::run(&mut command, b"")
}
