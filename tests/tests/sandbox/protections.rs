//! Hosts that lack something, and seals that lack a layer: each is refused, or served as reduced, in words.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use lockhouse_tests::{Finished, Lockhouse, Table, ensure, native_worker, target_directory};
use lockhouse_worker::sandbox::{Layer, Layers};
use serde_json::{Value, json};

/// What a host lacks; the exit status and the words of `run`; the verdict of the protection in `doctor`.
const LACKS: &[(&str, Expected)] = &[
    ("landlock", Expected::Refused("Landlock: files")),
    ("landlock=1", Expected::Reduced("Landlock ABI 1; for TCP it takes ABI 4 (Linux 6.7)")),
    (
        "landlock=4",
        Expected::Reduced("Landlock ABI 4; for signals and abstract sockets it takes ABI 6 (Linux 6.12)"),
    ),
    ("namespaces", Expected::Reduced("no namespaces (unshare: Operation not permitted)")),
    ("mount", Expected::Reduced("no namespaces (make an empty root: Permission denied)")),
    ("mdwe", Expected::Reduced("no memory-deny-write-execute (Linux 6.3)")),
    ("seccomp", Expected::Refused("system-call filter: seccomp: Function not implemented")),
    ("no_new_privs", Expected::Refused("no new privileges: PR_SET_NO_NEW_PRIVS")),
    ("pidfd", Expected::Refused("workers named by descriptor: pidfd_open refused")),
    ("close_range", Expected::Refused("no inherited descriptors: close_range: Function not implemented")),
    ("capset", Expected::Refused("give up every capability (capset): Operation not permitted")),
];

#[derive(Clone, Copy)]
enum Expected {
    /// No code runs, for this reason.
    Refused(&'static str),
    /// Code runs, and it is said that this is missing.
    Reduced(&'static str),
}

/// `lockhouse` as on a host that lacks something.
fn lacking_command(lockhouse: &Lockhouse, lack: &str, arguments: &[&str]) -> Command {
    let inner = lockhouse.command(arguments);
    let mut command = Command::new(target_directory().join("lacking"));
    command.arg(lack).arg("--").arg(inner.get_program()).args(inner.get_args());
    command.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

pub(crate) fn lacking(lockhouse: &Lockhouse, lack: &str, arguments: &[&str]) -> Finished {
    Finished::of(&mut lacking_command(lockhouse, lack, arguments), b"")
}

/// Serves until one program is answered, or until the server ends by itself: its exit status and standard error.
fn serve_one_program(mut command: Command) -> (Option<i32>, String) {
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let program = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "run_code", "arguments": {"language": "typescript", "code": "1 + 1"}}});
    let mut server =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut to = server.stdin.take().unwrap();
    for message in [initialize, initialized, program] {
        // It may be gone already.
        let _ = writeln!(to, "{message}");
    }
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    while lines.next().is_some_and(|line| !line.unwrap().contains("\"id\":2")) {}
    drop(to);
    let output = server.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_host_that_lacks_a_protection_is_refused_or_called_reduced_in_words() {
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("hosts that lack something");
    for language in ["python", "typescript"] {
        let run = ["run", "-c", "1 + 1", "--language", language];
        let control = lockhouse.run(&run);
        table.row(format!("{language}: control"), ensure(control.stdout == "2\n", &control));
        for (lack, expected) in LACKS {
            let finished = lacking(&lockhouse, lack, &run);
            let told = match expected {
                Expected::Refused(words) => finished.status == Some(7) && finished.stderr.contains(words),
                Expected::Reduced(words) => {
                    finished.stdout == "2\n" && finished.stderr.contains(&format!("reduced sandbox: {words}"))
                }
            };
            table.row(format!("{language}: without {lack}"), ensure(told, &finished));
        }
    }
    table.finish();
}

/// An AI client shows what a server that ends at once has said.
#[test]
fn nothing_is_served_where_a_required_protection_is_missing() {
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("serve on hosts that lack something");
    for (lack, expected) in LACKS.iter().filter(|(lack, _)| *lack != "capset") {
        let (status, stderr) = serve_one_program(lacking_command(&lockhouse, lack, &["serve"]));
        let told = match expected {
            Expected::Refused(words) => status == Some(7) && stderr.contains(words),
            Expected::Reduced(_) => status == Some(0),
        };
        let finished = (status, stderr);
        table.row(format!("without {lack}"), ensure(told, &finished));
    }
    table.finish();
}

#[test]
fn where_full_protection_is_required_nothing_less_is_served() {
    let lockhouse = Lockhouse::new().config("[pool]\nrequire_full = true\n");
    let mut table = Table::new("with require_full");
    for (lack, expected) in LACKS {
        let finished = lacking(&lockhouse, lack, &["run", "-c", "1 + 1", "--language", "typescript"]);
        let (Expected::Refused(words) | Expected::Reduced(words)) = expected;
        let told = finished.status == Some(7) && finished.stderr.contains(words);
        table.row(format!("without {lack}"), ensure(told, &finished));
    }
    table.finish();
}

/// The report of `doctor --json`, and its exit status.
fn report(finished: &Finished) -> (Value, Option<i32>) {
    (finished.json(), finished.status)
}

#[test]
fn the_doctor_names_what_is_missing_and_how_to_have_it() {
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("doctor");
    let (healthy, status) = report(&lockhouse.run(&["doctor", "--json"]));
    let level = healthy["level"].as_str().unwrap();
    table.row("control: code runs here", ensure(status == Some(0) && level != "none", &healthy));
    for row in healthy["protections"].as_array().unwrap() {
        let texts = ["protection", "needed", "verdict", "found", "second_layer", "without_it", "fix"];
        let is_whole = texts.iter().all(|text| row[text].as_str().is_some_and(|text| !text.is_empty()));
        table.row(format!("{}: every part is told", row["protection"]), ensure(is_whole, row));
    }
    for (lack, expected) in LACKS.iter().filter(|(lack, _)| *lack != "capset") {
        let (report, status) = report(&lacking(&lockhouse, lack, &["doctor", "--json"]));
        let absent = report["protections"].as_array().unwrap().iter().any(|row| row["verdict"] == "absent");
        let (level, code) = match expected {
            Expected::Refused(_) => ("none", Some(7)),
            Expected::Reduced(_) => ("reduced", Some(0)),
        };
        table.row(
            format!("without {lack}"),
            ensure(absent && report["level"] == level && status == code, &report),
        );
        let strict = lacking(&lockhouse, lack, &["doctor", "--require", "full"]);
        table.row(format!("without {lack}, --require full"), ensure(strict.status == Some(7), &strict));
    }
    table.finish();
}

/// A worker that leaves out a layer and says that all is well.
fn with_layers(lockhouse: Lockhouse, layers: Layers) -> Lockhouse {
    let on: Vec<&str> = Layer::ALL.into_iter().filter(|layer| layers.has(*layer)).map(Layer::name).collect();
    let script = format!("#!/bin/sh\nexec {} --layers {}\n", native_worker().display(), on.join(","));
    let script = lockhouse.file("worker", script);
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    lockhouse.config(&format!("[javascript]\nworker = {script:?}\n"))
}

#[test]
fn a_seal_that_lacks_a_layer_is_found_out_before_any_code_is_sent() {
    let mut table = Table::new("seals that lack a layer");
    let run = ["run", "-c", "call 39", "--language", "typescript"];
    let whole = with_layers(Lockhouse::new(), Layers::ALL).run(&run);
    table.row("control: the whole seal", ensure(whole.status == Some(0), &whole));
    let root = nix::unistd::geteuid().is_root();
    for layer in Layer::ALL {
        let finished = with_layers(Lockhouse::new(), Layers::ALL.without(layer)).run(&run);
        let words = match layer {
            // As on a host that gives none.
            Layer::Namespaces => "no namespaces (left out)",
            Layer::Privileges if root => "an ordinary user: the user is root",
            // An ordinary user's worker has capabilities in its user namespace alone.
            Layer::Privileges => "no capabilities: some are left",
            Layer::Descriptors => "no inherited descriptors: also open: [",
            Layer::Limits => "resource limits: memory above the limit was given",
            Layer::Hardening => "not dumpable: dumpable: Ok(true)",
            Layer::Mdwe => "no new executable memory: memory became executable",
            Layer::Landlock => "Landlock: files: files: succeeded without Landlock, succeeded with it",
            Layer::Seccomp => "system-call filter: ",
        };
        // Changing the user makes a process undumpable too.
        let is_held_otherwise = layer == Layer::Hardening && root;
        let words = if is_held_otherwise { "" } else { words };
        let served = layer == Layer::Namespaces || is_held_otherwise;
        let told = (finished.status == Some(0)) == served && finished.stderr.contains(words);
        table.row(format!("without {}", layer.name()), ensure(told, &finished));
    }
    table.finish();
}
