//! Tests of hosts that lack a sandbox protection, and of workers that omit a sandbox layer: Lockhouse refuses to run
//! code there, or reports reduced protection, each with the reason.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use lockhouse_sandbox::{Layer, Layers};
use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal, native_worker, target_directory};
use serde_json::{Value, json};

/// Kernel features that a simulated host lacks, each with the expected behaviour of `lockhouse run` and `lockhouse
/// doctor`.
const MISSING_FEATURES: &[(&str, Expected)] = &[
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
    /// Lockhouse runs no code. The error message contains this reason.
    Refused(&'static str),
    /// Lockhouse runs code and warns that the protection is reduced. The warning contains this text.
    Reduced(&'static str),
}

/// Returns the command `lockhouse ARGUMENTS`, run as if the kernel lacked the feature `lack`.
pub(crate) fn command_without(lockhouse: &Lockhouse, lack: &str, arguments: &[&str]) -> Command {
    let inner = lockhouse.command(arguments);
    let mut command = Command::new(target_directory().join("lacking"));
    command.arg(lack).arg("--").arg(inner.get_program()).args(inner.get_args());
    command.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

pub(crate) fn run_without(lockhouse: &Lockhouse, lack: &str, arguments: &[&str]) -> CommandOutput {
    CommandOutput::run(&mut command_without(lockhouse, lack, arguments), b"")
}

/// Runs an MCP server until it has answered one `run_code` request or has exited. Returns its exit status and its
/// standard error.
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
        // The server may have exited already.
        let _ = writeln!(to, "{message}");
    }
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    while lines.next().is_some_and(|line| !line.unwrap().contains("\"id\":2")) {}
    drop(to);
    let output = server.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_host_without_a_protection_is_refused_or_reported_as_reduced() {
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("hosts without a protection");
    for language in ["python", "typescript"] {
        let run = ["run", "-c", "1 + 1", "--language", language];
        let control = lockhouse.run(&run);
        table.row(format!("{language}: control"), ensure(control.stdout == "2\n", &control));
        for (lack, expected) in MISSING_FEATURES {
            let finished = run_without(&lockhouse, lack, &run);
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

#[test]
fn a_reduced_sandbox_is_mentioned_once_a_day_and_when_it_changes() {
    let lockhouse = Lockhouse::new();
    let said = |lack: &str| {
        let finished = run_without(&lockhouse, lack, &["run", "-c", "1 + 1", "--language", "python"]);
        assert_eq!((finished.status, finished.stdout.as_str()), (Some(0), "2\n"), "{finished:?}");
        finished.stderr.contains("reduced sandbox:")
    };
    let mut table = Table::new("what `lockhouse run` mentions");
    table.row("the first time", equal(said("namespaces"), true));
    table.row("the second time", equal(said("namespaces"), false));
    table.row("another protection", equal(said("landlock=3"), true));
    let file = lockhouse.path("cache/lockhouse/reduced-sandbox");
    let text = std::fs::read_to_string(&file).unwrap();
    let yesterday = text.replacen(|letter: char| letter.is_ascii_digit(), "1", 1);
    std::fs::write(&file, yesterday).unwrap();
    table.row("another day", equal(said("landlock=3"), true));
    table.finish();
}

#[test]
fn doctor_shows_what_is_missing_and_only_the_names_of_the_rest() {
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("doctor");
    let has = |text: &str, title: &str| text.lines().any(|line| line.starts_with(title));
    let short = run_without(&lockhouse, "landlock=3", &["doctor"]).stdout;
    table.row("what is missing", ensure(has(&short, "Landlock: TCP "), &short));
    table.row("not what holds", ensure(!has(&short, "system-call filter "), &short));
    table.row("its name", ensure(short.contains("protections hold: system-call filter; "), &short));
    table.row("a short report", ensure(short.lines().count() <= 20, &short));
    let all = run_without(&lockhouse, "landlock=3", &["doctor", "--all"]).stdout;
    let has_both = has(&all, "Landlock: TCP ") && has(&all, "system-call filter ");
    table.row("--all: everything", ensure(has_both && !all.contains("protections hold"), &all));
    table.finish();
}

/// On a host without a required protection, `lockhouse serve` must exit at once and write the reason to standard error,
/// which AI clients show to their user.
#[test]
fn lockhouse_does_not_serve_without_a_required_protection() {
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("`serve` on hosts without a protection");
    for (lack, expected) in MISSING_FEATURES.iter().filter(|(lack, _)| *lack != "capset") {
        let (status, stderr) = serve_one_program(command_without(&lockhouse, lack, &["serve"]));
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
fn with_require_full_reduced_protection_is_refused() {
    let lockhouse = Lockhouse::new().config("[pool]\nrequire_full = true\n");
    let mut table = Table::new("with require_full");
    for (lack, expected) in MISSING_FEATURES {
        let finished = run_without(&lockhouse, lack, &["run", "-c", "1 + 1", "--language", "typescript"]);
        let (Expected::Refused(words) | Expected::Reduced(words)) = expected;
        let told = finished.status == Some(7) && finished.stderr.contains(words);
        table.row(format!("without {lack}"), ensure(told, &finished));
    }
    table.finish();
}

/// Returns the report that `lockhouse doctor --json` has printed, and the exit status of the command.
fn report(finished: &CommandOutput) -> (Value, Option<i32>) {
    (finished.json(), finished.status)
}

#[test]
fn doctor_names_missing_protections_and_how_to_enable_them() {
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
    for (lack, expected) in MISSING_FEATURES.iter().filter(|(lack, _)| *lack != "capset") {
        let (report, status) = report(&run_without(&lockhouse, lack, &["doctor", "--json"]));
        let absent = report["protections"].as_array().unwrap().iter().any(|row| row["verdict"] == "absent");
        let (level, code) = match expected {
            Expected::Refused(_) => ("none", Some(7)),
            Expected::Reduced(_) => ("reduced", Some(0)),
        };
        table.row(
            format!("without {lack}"),
            ensure(absent && report["level"] == level && status == code, &report),
        );
        let strict = run_without(&lockhouse, lack, &["doctor", "--require", "full"]);
        table.row(format!("without {lack}, --require full"), ensure(strict.status == Some(7), &strict));
    }
    table.finish();
}

/// Configures a TypeScript worker that applies only these sandbox layers, but reports that its sandbox is complete.
fn with_layers(lockhouse: Lockhouse, layers: Layers) -> Lockhouse {
    let on: Vec<&str> = Layer::ALL.into_iter().filter(|layer| layers.has(*layer)).map(Layer::name).collect();
    let script = format!("#!/bin/sh\nexec {} --layers {}\n", native_worker().display(), on.join(","));
    let script = lockhouse.file("worker", script);
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    lockhouse.config(&format!("[javascript]\nworker = {script:?}\n"))
}

#[test]
fn a_missing_sandbox_layer_is_detected_before_code_is_sent() {
    let mut table = Table::new("sandboxes without a layer");
    let run = ["run", "-c", "call 39", "--language", "typescript"];
    let whole = with_layers(Lockhouse::new(), Layers::ALL).run(&run);
    table.row("control: the whole seal", ensure(whole.status == Some(0), &whole));
    let root = nix::unistd::geteuid().is_root();
    for layer in Layer::ALL {
        let finished = with_layers(Lockhouse::new(), Layers::ALL.without(layer)).run(&run);
        let words = match layer {
            // Same message as on a host without namespaces.
            Layer::Namespaces => "no namespaces (left out)",
            Layer::Privileges if root => "an ordinary user: the user is root",
            // An ordinary user's worker has capabilities only in its user namespace.
            Layer::Privileges => "no capabilities: some are left",
            Layer::Descriptors => "no inherited descriptors: also open: [",
            Layer::Limits => "resource limits: memory above the limit was given",
            Layer::Hardening => "not dumpable: dumpable: Ok(true)",
            Layer::Mdwe => "no new executable memory: memory became executable",
            Layer::Landlock => "Landlock: files: files: succeeded without Landlock, succeeded with it",
            Layer::Seccomp => "system-call filter: ",
        };
        // Changing the user also makes a process undumpable.
        let is_held_otherwise = layer == Layer::Hardening && root;
        let words = if is_held_otherwise { "" } else { words };
        let served = layer == Layer::Namespaces || is_held_otherwise;
        let told = (finished.status == Some(0)) == served && finished.stderr.contains(words);
        table.row(format!("without {}", layer.name()), ensure(told, &finished));
    }
    table.finish();
}
