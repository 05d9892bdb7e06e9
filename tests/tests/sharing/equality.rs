//! Tests of what must be equal for AI clients to share an engine.

use std::os::fd::AsRawFd;
use std::process::Command;

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal, fixture_server};
use serde_json::json;

use super::{SHARED, add, engines, lockhouse, pid_of, the_engine, upstream_servers};

async fn connect(command: Command) -> Session {
    Session::connect(command, Session::latest()).await
}

fn with_variable(lockhouse: &Lockhouse, name: &str, value: &str) -> Command {
    let mut command = lockhouse.command(&["serve"]);
    command.env(name, value);
    command
}

/// Returns a configuration with the fixture server in Lockhouse's own format.
fn with_server(keys: &str) -> String {
    format!("{SHARED}[servers.fixture]\ncommand = {:?}\n{keys}", fixture_server().display().to_string())
}

fn own_format(config: &str) -> Lockhouse {
    Lockhouse::new().policy("version = 1\n[servers.fixture]\nallow = [\"*\"]\n").config(config)
}

#[tokio::test]
async fn clients_share_servers_only_with_equal_values_policy_and_directory() {
    let mut table = Table::new("which clients share an engine");
    let token = with_server("env = { TOKEN = \"${env:TOKEN}\" }\n");
    let cases: [(&str, Lockhouse, [fn(&Lockhouse) -> Command; 2], usize); 7] = [
        (
            "equal values of a variable",
            own_format(&token),
            [|l| with_variable(l, "TOKEN", "a"), |l| with_variable(l, "TOKEN", "a")],
            1,
        ),
        (
            "different values of a variable",
            own_format(&token),
            [|l| with_variable(l, "TOKEN", "a"), |l| with_variable(l, "TOKEN", "b")],
            2,
        ),
        (
            "different values of a variable that nothing uses",
            own_format(&with_server("")),
            [|l| with_variable(l, "TOKEN", "a"), |l| with_variable(l, "TOKEN", "b")],
            1,
        ),
        (
            "a different search path for programs",
            own_format(&with_server("")),
            [|l| l.command(&["serve"]), |l| with_variable(l, "PATH", "/usr/local/bin:/usr/bin:/bin:/opt")],
            2,
        ),
        (
            "a different policy",
            own_format(&with_server("")),
            [
                |l| l.command(&["serve"]),
                |l| {
                    let path = l.file("other.toml", "version = 1\n[servers.fixture]\nallow = [\"a*\"]\n");
                    l.command(&["serve", "--policy", path.to_str().unwrap()])
                },
            ],
            2,
        ),
        (
            "a different directory, in which the server is started",
            own_format(&with_server("").replace("directory = \"/\"\n", "")),
            [
                |l| l.command(&["serve"]),
                |l| {
                    let mut command = l.command(&["serve"]);
                    command.current_dir("/");
                    command
                },
            ],
            2,
        ),
        (
            "a different directory, in which no server is started",
            own_format(&with_server("cwd = \"/\"\n").replace("directory = \"/\"\n", "")),
            [
                |l| l.command(&["serve"]),
                |l| {
                    let mut command = l.command(&["serve"]);
                    command.current_dir("/");
                    command
                },
            ],
            1,
        ),
    ];
    for (case, lockhouse, commands, expected) in cases {
        let (one, other) = (connect(commands[0](&lockhouse)).await, connect(commands[1](&lockhouse)).await);
        let answers = [add(&one).await, add(&other).await];
        table.row(format!("{case}: answers"), equal(answers, [json!(42), json!(42)]));
        let engines = engines(&lockhouse);
        table.row(case, ensure(engines.len() == expected, &engines));
        let clients: usize =
            engines.iter().map(|engine| engine["clients"].as_array().map_or(0, Vec::len)).sum();
        table.row(format!("{case}: both clients are at a shared engine"), equal(clients, 2));
    }
    table.finish();
}

#[tokio::test]
async fn some_clients_have_an_engine_of_their_own() {
    let mut table = Table::new("clients with an engine of their own");
    let no_directory = lockhouse();
    no_directory.file("state/lockhouse/run", "not a directory");
    let cases: [(&str, Lockhouse, &[&str], &str); 4] = [
        ("by default", Lockhouse::with_fixture(), &["serve"], ""),
        ("with --own", lockhouse(), &["serve", "--own"], ""),
        ("with a server that is not shared", own_format(&with_server("share = false\n")), &["serve"], ""),
        (
            "if the shared one cannot be started",
            no_directory,
            &["serve"],
            "runs an engine of its own: the shared",
        ),
    ];
    for (case, lockhouse, arguments, log) in cases {
        let client = connect(lockhouse.command(arguments)).await;
        table.row(format!("{case}: it works"), equal(add(&client).await, json!(42)));
        table.row(case, equal(pid_of(&the_engine(&lockhouse)), client.pid()));
        table.row(format!("{case}: its server"), equal(upstream_servers(client.pid()).len(), 1));
        table.row(format!("{case}: its log"), ensure(client.log().contains(log), client.log()));
    }
    table.finish();
}

#[tokio::test]
async fn after_a_reload_new_clients_find_the_engine_under_its_new_policy() {
    let lockhouse = lockhouse();
    let first = lockhouse.serve().await;
    assert_eq!(add(&first).await, json!(42));
    lockhouse.file("config/lockhouse/policy.toml", "version = 1\n[servers.fixture]\nallow = [\"add\"]\n");
    let reloaded = lockhouse.run(&["reload"]);
    assert_eq!(reloaded.status, Some(0), "{reloaded:?}");
    let second = lockhouse.serve().await;
    assert_eq!(add(&second).await, json!(42));
    let engine = the_engine(&lockhouse);
    assert_eq!(engine["clients"].as_array().map(Vec::len), Some(2), "{engine}");
    // A change that requires a restart: the engine keeps its clients, and new clients start another one.
    lockhouse.file("config/lockhouse/config.toml", format!("{SHARED}[limits]\ncalls = 7\n"));
    let reloaded = lockhouse.run(&["reload"]);
    assert_eq!(reloaded.status, Some(0), "{reloaded:?}");
    let third = lockhouse.serve().await;
    assert_eq!([add(&first).await, add(&third).await], [json!(42), json!(42)]);
    assert_eq!(engines(&lockhouse).len(), 2);
}

/// Tests an engine at a socket that systemd holds. The test acts as systemd.
#[tokio::test]
async fn clients_use_the_engine_at_a_socket_of_systemd_if_its_setup_is_equal() {
    let lockhouse = lockhouse().config(&SHARED.replace("idle_seconds = 2", "idle_seconds = 60"));
    let path = lockhouse.path("run/lockhouse/engine.sock");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    // Rust sets close-on-exec on the socket, so a duplicate is inherited.
    let inherited = nix::unistd::dup(&socket).unwrap();
    drop(socket);
    let engine = lockhouse.command(&["engine"]);
    let mut command = tokio::process::Command::new("/bin/bash");
    command
        .arg("-c")
        .arg(format!("LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\" 3<&{}", inherited.as_raw_fd()));
    command.arg(engine.get_program()).args(engine.get_args()).env_clear().current_dir("/");
    command.envs(engine.get_envs().filter_map(|(name, value)| Some((name, value?)))).kill_on_drop(true);
    let engine = command.spawn().unwrap();
    let mut table = Table::new("clients and the engine at a socket of systemd");
    let client = lockhouse.serve().await;
    table.row("an equal setup", equal(add(&client).await, json!(42)));
    table.row("is served there", equal(Some(pid_of(&the_engine(&lockhouse))), engine.id()));
    let other = connect(with_variable(&lockhouse, "TZ", "UTC+5")).await;
    table.row("another setup", equal(add(&other).await, json!(42)));
    table.row("is served by another engine", equal(engines(&lockhouse).len(), 2));
    table.finish();
}
