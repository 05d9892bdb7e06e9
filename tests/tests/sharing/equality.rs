//! Tests of what must be equal for AI clients to share an engine.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal, fixture_server};
use serde_json::json;

use super::{SHARED, add, engines, lockhouse, pid_of, the_engine, upstream_servers};

pub(super) async fn connect(command: Command) -> Session {
    Session::connect(command, Session::latest()).await
}

pub(super) fn with_variable(lockhouse: &Lockhouse, name: &str, value: &str) -> Command {
    let mut command = lockhouse.command(&["serve"]);
    command.env(name, value);
    command
}

/// Starts Lockhouse as Codex does: behind a directory for this one process, and behind one of Codex's package.
fn like_codex(lockhouse: &Lockhouse, process: &str) -> Command {
    let own = lockhouse.path("home/.codex/tmp").join(process);
    for name in ["apply_patch", "applypatch"] {
        with_program(lockhouse, &format!("home/.codex/tmp/{process}/{name}"));
    }
    let package = lockhouse.path("lib/node_modules/codex/codex-path");
    with_program(lockhouse, "lib/node_modules/codex/codex-path/rg");
    let path = std::env::var("PATH").unwrap();
    with_variable(lockhouse, "PATH", &format!("{}:{}:{path}", own.display(), package.display()))
}

/// Creates a link to the fixture server.
fn with_program(lockhouse: &Lockhouse, name: &str) {
    let path = lockhouse.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = std::os::unix::fs::symlink(fixture_server(), path);
}

fn quoted(path: &Path) -> String {
    format!("{:?}", path.display().to_string())
}

/// Returns a configuration with the fixture server in Lockhouse's own format.
pub(super) fn with_server(keys: &str) -> String {
    format!("{SHARED}[servers.fixture]\ncommand = {}\n{keys}", quoted(&fixture_server()))
}

pub(super) fn own_format(config: &str) -> Lockhouse {
    Lockhouse::new().policy("version = 1\n[servers.fixture]\nallow = [\"*\"]\n").config(config)
}

#[tokio::test]
async fn clients_share_servers_only_with_equal_values_policy_and_directory() {
    let mut table = Table::new("which clients share an engine");
    let token = with_server("env = { TOKEN = \"${env:TOKEN}\" }\n");
    let cases: [(&str, Lockhouse, [fn(&Lockhouse) -> Command; 2], usize); 10] = [
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
            "directories that Codex puts into the search path",
            own_format(&with_server("")),
            [|l| like_codex(l, "a"), |l| like_codex(l, "b")],
            1,
        ),
        (
            "Codex and a client that changes nothing",
            own_format(&with_server("")),
            [|l| like_codex(l, "a"), |l| l.command(&["serve"])],
            1,
        ),
        (
            "a program of a server in such a directory",
            own_format(&with_server("").replacen(&quoted(&fixture_server()), "\"its-server\"", 1)),
            [
                |l| {
                    with_program(l, "home/.codex/tmp/a/its-server");
                    like_codex(l, "a")
                },
                |l| {
                    with_program(l, "home/.codex/tmp/b/its-server");
                    like_codex(l, "b")
                },
            ],
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

/// A Python program that changes what its process may do, and then executes its arguments.
const RESTRICTED: &str = r#"
import ctypes, os, resource, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
what, *command = sys.argv[1:]
def call(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), what)
if os.geteuid() != 0 and what in ("filter", "landlock"):
    libc.prctl(38, 1, 0, 0, 0)
if what == "filter":
    allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
    call(317, 1, 0, ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(allow))))
elif what == "landlock":
    rights = ctypes.create_string_buffer(struct.pack("Q", 1 << 12))
    ruleset = libc.syscall(444, rights, 8, 0)
    call(446, ruleset, 0)
elif what == "umask":
    os.umask(0o077)
elif what == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
os.execv(command[0], command)
"#;

fn restricted(lockhouse: &Lockhouse, what: &str) -> Command {
    let serve = lockhouse.command(&["serve"]);
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", RESTRICTED, what]).arg(serve.get_program()).args(serve.get_args()).env_clear();
    command.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(serve.get_current_dir().unwrap());
    command
}

/// The servers of a client in a sandbox must be in it too.
#[tokio::test]
async fn a_client_in_a_sandbox_uses_no_engine_outside() {
    let mut table = Table::new("clients with other rights");
    for (what, has_own_process, engines_in_all) in [
        ("nothing: control", false, 1),
        ("filter", true, 2),
        ("landlock", true, 2),
        ("umask", false, 2),
        ("limit", false, 2),
    ] {
        let lockhouse = lockhouse();
        let outside = lockhouse.serve().await;
        assert_eq!(add(&outside).await, json!(42));
        let client = connect(restricted(&lockhouse, what)).await;
        table.row(format!("{what}: it works"), equal(add(&client).await, json!(42)));
        let engines = engines(&lockhouse);
        let of_client = engines.iter().filter(|engine| pid_of(engine) == client.pid()).count();
        table.row(format!("{what}: it has an engine in its process"), equal(of_client == 1, has_own_process));
        table.row(format!("{what}: engines"), equal(engines.len(), engines_in_all));
        if has_own_process {
            let told = client.log().contains("this process may run in a sandbox");
            table.row(format!("{what}: its log says why"), ensure(told, client.log()));
        }
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

/// The servers of a shared engine get the search path that is compared, whichever client has started it.
#[tokio::test]
async fn servers_of_a_shared_engine_get_no_directory_of_one_client() {
    let mut found = Vec::new();
    for start in [|l: &Lockhouse| l.command(&["serve"]), |l: &Lockhouse| like_codex(l, "a")] {
        let lockhouse = own_format(&with_server(""));
        let client = connect(start(&lockhouse)).await;
        assert_eq!(add(&client).await, json!(42));
        let servers = upstream_servers(pid_of(&the_engine(&lockhouse)));
        let environment = std::fs::read(format!("/proc/{}/environ", servers[0].pid)).unwrap();
        let variables = environment.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        found
            .extend(variables.filter(|variable| variable.starts_with("PATH=")).map(|path| path.into_owned()));
    }
    assert_eq!(found[0], found[1]);
    assert!(found[0].contains("/bin") && !found[1].contains("codex"), "{found:?}");
}
