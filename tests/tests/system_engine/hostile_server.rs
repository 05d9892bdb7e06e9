//! What a hostile upstream server attempts that runs in the account of an engine: on a host that nobody manages without a
//! sandbox, where it succeeds, and under the system's engine for a person, which gives it one.

use std::process::Command;

use lockhouse_tests::{Table, ensure, structured};
use serde_json::{Value, json};

use super::host::{Host, can_manage, refuses_to_all};

const POLICY: &str =
    "version = 1\n[servers.fixture]\nallow = [\"add\"]\n[servers.shell]\nallow = [\"run\"]\n";

/// An attempt: its name, and a script whose exit status is 0 if it succeeds. `CONFIG`, `STATE`, `LOG`, `SOCKETS` and `OTHER`,
/// another server, are those of the engine.
const ATTEMPTS: [(&str, &str); 30] = [
    ("read the secrets of the configuration", "grep -q CANARY $CONFIG/config.toml"),
    ("read the policy", "cat $CONFIG/policy.toml"),
    ("write the policy", "echo '# mine' >> $CONFIG/policy.toml"),
    ("replace the policy", "cp $CONFIG/policy.toml $CONFIG/new && mv $CONFIG/new $CONFIG/policy.toml"),
    ("remove the configuration", "mv $CONFIG/config.toml $CONFIG/old && mv $CONFIG/old $CONFIG/config.toml"),
    ("list the state", "ls $STATE"),
    ("write into the state", "touch $STATE/mine"),
    ("read the audit log", "cat $LOG/*.jsonl"),
    ("add to the audit log", "for log in $LOG/*.jsonl; do echo >> $log || exit 1; done"),
    ("remove the audit log", "mv $LOG $LOG.old && mv $LOG.old $LOG"),
    ("list the sockets", "ls $SOCKETS"),
    (
        "connect to the control socket",
        "python3 -c 'import glob, socket, sys; socket.socket(socket.AF_UNIX).connect(glob.glob(sys.argv[1] + \"/control*.sock\")[0])' $SOCKETS",
    ),
    (
        "connect to the engine's own control socket",
        "python3 -c 'import glob, socket, sys; socket.socket(socket.AF_UNIX).connect(glob.glob(sys.argv[1] + \"/run/control-*.sock\")[0])' $STATE",
    ),
    ("a file of its own beside the log", "touch $LOG/mine"),
    ("remove a socket", "rm $STATE/run/control-*.sock"),
    ("SIGKILL to the engine", "kill -9 $ENGINE"),
    ("SIGSTOP to the engine", "kill -STOP $ENGINE && kill -CONT $ENGINE"),
    ("signal 0 to the engine", "kill -0 $ENGINE"),
    ("the engine's limits", "prlimit --pid $ENGINE --nofile=4096:4096"),
    ("the engine's priority", "renice -n 19 -p $ENGINE"),
    ("the engine's processors", "taskset -p 3 $ENGINE"),
    ("SIGKILL to another server", "kill -9 $OTHER"),
    ("SIGSTOP to another server", "kill -STOP $OTHER && kill -CONT $OTHER"),
    ("the environment of another server", "tr '\\0' '\\n' < /proc/$OTHER/environ | grep -q CANARY"),
    (
        "the memory of another server",
        "python3 -c 'import sys; open(f\"/proc/{sys.argv[1]}/mem\", \"rb\")' $OTHER",
    ),
    ("the descriptors of another server", "readlink /proc/$OTHER/fd/0"),
    ("write to another server", "echo '{}' > /proc/$OTHER/fd/0"),
    (
        "trace another server",
        "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), 0, 0) != 0)' $OTHER",
    ),
    ("the limits of another server", "prlimit --pid $OTHER --nofile=4096:4096"),
    ("the program of another server", "readlink /proc/$OTHER/exe"),
];

/// Runs the script in the hostile server. Returns whether it succeeded, with what was seen. An engine that ends meanwhile
/// counts as a success.
async fn attempt(host: &Host, script: &str) -> (bool, Value) {
    let client = host.client().await;
    let warm = client.run_code("python", "from fixture import add\nadd(a=40, b=2)['sum']").await;
    assert_eq!(warm["value"], 42, "{warm}");
    let engine = host.engine().unwrap_or_else(|| client.pid());
    let other = child(engine, "fixture-server");
    let script = format!("{}; ENGINE={engine}; OTHER={other}; {script}", host.places().join("; "));
    let code = format!("from shell import run\nrun(script={})", json!(script));
    match client.start_code("python", &code).await.unwrap() {
        Ok(answer) => {
            let answer = structured(Ok(answer));
            (answer["value"]["status"] == 0, answer)
        }
        Err(error) => (true, error.to_string().into()),
    }
}

/// Returns a process that the engine has started, by the name of its program.
fn child(engine: u32, name: &str) -> String {
    let found = Command::new("pgrep").args(["-P", &engine.to_string(), name]).output().unwrap();
    String::from_utf8_lossy(&found.stdout).lines().next().unwrap_or("none").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_reaches_neither_its_engine_nor_other_servers() {
    if !can_manage() {
        return;
    }
    let managed = Host::managed(POLICY).await;
    let unmanaged = Host::unmanaged(POLICY);
    let mut table = Table::new("30 attempts of a server");
    for (name, script) in ATTEMPTS.iter().filter(|(_, script)| !refuses_to_all(script)) {
        let (succeeds, seen) = attempt(&unmanaged, script).await;
        table.row(format!("{name}: control"), ensure(succeeds, seen));
        let (succeeds, seen) = attempt(&managed, script).await;
        table.row(*name, ensure(!succeeds && seen["value"]["status"].is_number(), seen));
    }
    table.finish();
}

/// Below the system's engine, the sandbox alone keeps a server from the files of the engine.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_the_system_s_engine_is_not_started_with_a_part_of_its_sandbox() {
    if !can_manage() {
        return;
    }
    let mut table = Table::new("servers of an engine of the system");
    for (lack, starts) in [("landlock=2", false), ("landlock=3", true)] {
        let host = Host::managed_without(POLICY, lack).await;
        let client = host.client().await;
        let called = client.run_code("python", "from fixture import add\nadd(a=40, b=2)['sum']").await;
        table.row(format!("{lack}: the call"), ensure((called["value"] == 42) == starts, &called));
        let log = host.engine_log();
        let is_told = log.contains("version 2 of Landlock") && log.contains("an engine of the system");
        table.row(format!("{lack}: the log"), ensure(is_told != starts, log));
    }
    table.finish();
}
