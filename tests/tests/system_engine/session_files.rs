//! Tests of the server `files` on a managed host: a helper in the session of the person uses the files.

use lockhouse_tests::{Session, Table, ensure, equal, wait_until};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::host::{ENGINE, Host, PERSON, can_manage};
use super::session_servers::{HostileLauncher, kill_launchers, processes};

const POLICY: &str = "version = 1
[servers.fixture]
allow = [\"add\"]
[servers.files]
allow = [\"read\", \"list\", \"stat\", \"write\", \"mkdir\"]
";

/// Starts a host whose engine lets programs use files of the person, and a client of the person.
async fn host_with_files() -> (Host, Session) {
    let mut host = Host::managed(POLICY).await;
    host.kill_engine();
    let home = host.path("home").display().to_string();
    let accounts = std::fs::read_to_string(host.path("etc/passwd")).unwrap();
    host.write("etc/passwd", &format!("{accounts}ann:x:{PERSON}:{PERSON}::{home}:/bin/sh\n"));
    host.write("home/documents/report.txt", "quarterly");
    host.write("home/documents/large.bin", &"0123456789abcdef".repeat(200_000));
    host.write("home/private.txt", "not for programs");
    host.write("engine/secret.txt", "not for the person");
    std::fs::create_dir_all(host.path("home/out")).unwrap();
    symlink(host.path("home/private.txt"), host.path("home/documents/link.txt")).unwrap();
    nix::unistd::mkfifo(&host.path("home/documents/pipe"), nix::sys::stat::Mode::from_bits_truncate(0o644))
        .unwrap();
    host.write("home/documents/hello.sh", "#!/bin/sh\necho hello\n");
    symlink(host.path("home/private.sh"), host.path("home/documents/other.sh")).unwrap();
    host.write("home/private.sh", "#!/bin/sh\necho other\n");
    for script in ["home/documents/hello.sh", "home/private.sh"] {
        std::fs::set_permissions(host.path(script), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    host.give_to_person("home");
    // As on a host whose engine has no access to home directories.
    std::fs::set_permissions(host.path("home"), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(host.path("engine/secret.txt"), Some(ENGINE), Some(ENGINE)).unwrap();
    let path = host.path("engine/config/lockhouse/config.toml");
    let secret = host.path("engine/secret.txt");
    let files = format!(
        "[servers.files]\nread = [\"~/documents\", \"~/later\", {secret:?}]\nwrite = [\"~/out\", \"~/new/**\"]\nfile_mib = 4\n"
    );
    let server = format!(
        "[servers.mine]\ncommand = \"/usr/bin/python3\"\nargs = [{:?}]\nrun_as = \"user\"\nstart = \"lazy\"\n\
         sandbox = {{ profile = \"default\", read = [\"~/documents\", \"~/private.sh\"] }}\n",
        host.path("tools/shell_server.py")
    );
    let configured = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, configured + &files + &server).unwrap();
    let rule = format!(
        "[[servers.mine.rules]]\ntool = \"run\"\neffect = \"allow\"\nwhen = {{ script = {{ under = \"{home}/documents\" }} }}\n"
    );
    std::fs::write(host.path("engine/config/lockhouse/policy.toml"), POLICY.to_owned() + &rule).unwrap();
    host.start_engine().await;
    let client = host.client().await;
    (host, client)
}

/// Returns the value of a program, or its error message without the traceback.
async fn outcome(client: &Session, code: &str) -> Value {
    let answer = client.run_code("python", code).await;
    match answer.get("error") {
        Some(error) if !error.is_null() => error["message"].clone(),
        _ => answer["value"].clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_use_files_with_the_rights_of_the_person() {
    if !can_manage() {
        return;
    }
    let (mut host, client) = host_with_files().await;
    let home = host.path("home").display().to_string();
    let mut table = Table::new("files of the person");
    for (name, code, expected) in [
        ("read", "open('~/documents/report.txt').read()", json!("quarterly")),
        (
            "read 3 MB",
            "import hashlib\ndata = open('~/documents/large.bin', 'rb').read()\n[len(data), hashlib.sha256(data).hexdigest()]",
            json!([3_200_000, "69cc92e41a3c392a040d45bd229a7e094995e7626c894611fc5864f2c4817c38"]),
        ),
        (
            "read a part",
            "from files import read\nread(path='~/documents/report.txt', offset=4, length=3)",
            json!({"bytes": 9, "offset": 4, "next_offset": 7, "base64": "dGVy"}),
        ),
        (
            "list",
            "import os\nsorted(os.listdir('~/documents'))",
            json!(["hello.sh", "large.bin", "report.txt"]),
        ),
        (
            "a new file",
            "open('~/out/a.txt', 'w').write('new')\nopen('~/out/a.txt', 'w').write('newer')",
            json!(5),
        ),
        ("3 MB", "open('~/out/b.bin', 'wb').write(b'x' * 3_000_000)", json!(3_000_000)),
        (
            "a folder",
            "import os\nos.makedirs('~/new/deep')\nopen('~/new/deep/c.txt', 'w').write('c')",
            json!(1),
        ),
        ("an upstream server", "from fixture import add\nadd(a=40, b=2)['sum']", json!(42)),
    ] {
        table.row(name, equal(outcome(&client, code).await, expected));
    }
    for (name, content) in [
        ("out/a.txt", "newer".to_owned()),
        ("out/b.bin", "x".repeat(3_000_000)),
        ("new/deep/c.txt", "c".into()),
    ] {
        let path = host.path("home").join(name);
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        table.row(format!("{name} has its content"), ensure(found == content, found.len()));
        table.row(format!("{name} is the person's"), equal(path.metadata().unwrap().uid(), PERSON));
    }
    for (name, code, words) in [
        (
            "a file elsewhere",
            "open('~/private.txt').read()",
            "No such file or directory: '~/private.txt'".to_owned(),
        ),
        (
            "a link to it",
            "open('~/documents/link.txt').read()",
            "a symbolic link in this path leads to a file that is not in `read`".into(),
        ),
        ("a pipe", "open('~/documents/pipe').read()", "it is not a regular file".into()),
        ("a file of the engine", "open('SECRET').read()", "cannot read a folder".into()),
        (
            "a write elsewhere",
            "open('~/documents/d.txt', 'w').write('d')",
            "it is not below a path that programs may write".into(),
        ),
        (
            "a file that is too large",
            "open('~/out/l.bin', 'wb').write(b'x' * 5_000_000)",
            "the limit is 4194304".into(),
        ),
        (
            "no file",
            "open('~/documents/none.txt').read()",
            format!("{home}/documents/none.txt: there is no such file or folder"),
        ),
    ] {
        let code = code.replace("SECRET", &host.path("engine/secret.txt").display().to_string());
        let message = outcome(&client, &code).await;
        table.row(name, ensure(message.as_str().is_some_and(|text| text.contains(&words)), message));
    }
    let helpers = helpers(&host);
    table.row("there is one helper", equal(helpers.len(), 1));
    for pid in &helpers {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::split_whitespace).and_then(|mut values| values.next()).map(str::to_owned)
        };
        table.row("it has the account of the person", equal(value("Uid:"), Some(PERSON.to_string())));
        table.row("it cannot gain privileges", equal(value("NoNewPrivs:"), Some("1".into())));
        table.row("it has a system call filter", equal(value("Seccomp:"), Some("2".into())));
    }
    std::fs::create_dir(host.path("home/later")).unwrap();
    host.write("home/later/x.txt", "later");
    host.give_to_person("home/later");
    table.row(
        "a folder that did not exist",
        equal(outcome(&client, "open('~/later/x.txt').read()").await, json!("later")),
    );
    for pid in helpers {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    }
    let again = wait_until("another helper takes its place", async || {
        let value = outcome(&client, "open('~/documents/report.txt').read()").await;
        (value == "quarterly").then_some(value)
    });
    table.row("a helper that was killed is replaced", equal(again.await, json!("quarterly")));
    let recorded = host.records().into_iter().filter(|record| record["server"] == "files").count();
    table.row("the calls are recorded", ensure(recorded > 20, recorded));
    drop(client);
    host.kill_engine();
    table.finish();
}

/// A policy with a path condition for a server in the session of the person: the engine cannot follow the links.
#[tokio::test(flavor = "multi_thread")]
async fn the_helper_resolves_links_in_arguments_of_servers_of_the_person() {
    if !can_manage() {
        return;
    }
    let (host, client) = host_with_files().await;
    let home = host.path("home").display().to_string();
    let mut table = Table::new("paths in arguments of a server in the session of the person");
    let run = async |name: &str| {
        outcome(&client, &format!("from mine import run\nrun(script='{home}/documents/{name}')")).await
    };
    table.row(
        "a path below the folder",
        equal(run("hello.sh").await, json!({"status": 0, "output": "hello\n"})),
    );
    let message = run("other.sh").await;
    let words = "its symbolic links lead out of the folder";
    table.row(
        "a link that leads out",
        ensure(message.as_str().is_some_and(|text| text.contains(words)), message),
    );
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_helper_answers_harms_the_engine() {
    if !can_manage() {
        return;
    }
    let (mut host, client) = host_with_files().await;
    host.write("tools/hostile_launcher.py", include_str!("hostile_launcher.py"));
    host.write("tools/hostile_helper.py", include_str!("hostile_helper.py"));
    let mut table = Table::new("a hostile helper");
    let read = "open('~/documents/report.txt').read()";
    table.row("control: the helper of the client", equal(outcome(&client, read).await, json!("quarterly")));
    let protocol = "does not keep to the protocol";
    for (mode, words) in [
        ("garbage", protocol),
        ("another answer", protocol),
        ("an endless answer", protocol),
        ("a relative target", protocol),
        ("a target with controls", protocol),
        ("too large a file", protocol),
        ("more content than announced", protocol),
        ("a message with controls", "[2Jxxxxxxx"),
        ("the end", "the helper in the session of the user has ended"),
        ("silence", "did not answer in time"),
    ] {
        kill_launchers(&host);
        let hostile = HostileLauncher::start(&host, &format!("files: {mode}"));
        let answer = client.run_code("python", read).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        let is_plain = !message.contains(['\x1b', '\r']) && message.len() < 2_000;
        table.row(format!("{mode}: the read fails"), ensure(is_plain && message.contains(words), &answer));
        let other = outcome(&client, "from fixture import add\nadd(a=40, b=2)['sum']").await;
        table.row(format!("{mode}: other servers answer"), equal(other, json!(42)));
        drop(hostile);
    }
    kill_launchers(&host);
    let message = outcome(&client, read).await;
    let words = "the server `files` is not available: it runs in the session of its user, and no launcher is connected there";
    table.row(
        "without a launcher",
        ensure(message.as_str().is_some_and(|text| text.contains(words)), message),
    );
    table.row("the engine runs", ensure(host.engine_runs(), host.engine_log()));
    table.finish();
}

fn helpers(host: &Host) -> Vec<i32> {
    processes(host, "file-helper$")
}
