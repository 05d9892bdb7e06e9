//! Tests of `status`, `reload` and `stop` with `--all-users`: root reaches the processes of all accounts, and no account
//! delays, hides or impersonates another one.

use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal, fixture_server};
use nix::unistd::geteuid;
use serde_json::{Value, json};

/// The accounts of the scene. They have no name and no other process.
const RUNTIME: u64 = 61_511;
const STATE: u64 = 61_512;
const OWN_ROOT: u64 = 61_513;
const HOSTILE: u64 = 61_514;

/// Starts Lockhouse for three accounts, and a fourth one that only attacks, in namespaces without other processes. Runs the
/// commands of root, and prints what they print and what became of the processes.
const SCENE: &str = r#"
import json, os, socket, subprocess, sys, time
program, base, fixture = sys.argv[1:]
subprocess.run(['mount', '-t', 'tmpfs', 'none', '/run'], check=True)
os.makedirs('/run/user', mode=0o755)

def home(uid):
    return f'{base}/{uid}'

def environment(uid, runtime=True):
    below = {f'XDG_{name}_HOME': f'{home(uid)}/{name}' for name in ['CONFIG', 'STATE', 'CACHE']}
    below['HOME'], below['PATH'], below['COLUMNS'] = home(uid), os.environ['PATH'], '10000'
    return {**below, **({'XDG_RUNTIME_DIR': f'/run/user/{uid}'} if runtime else {})}

def account(uid):
    for path in [home(uid), f'{home(uid)}/CONFIG/lockhouse', f'/run/user/{uid}', f'/run/user/{uid}/lockhouse']:
        os.makedirs(path, mode=0o700, exist_ok=True)
    with open(f'{home(uid)}/CONFIG/lockhouse/policy.toml', 'w') as file:
        file.write('version = 1\n')
    for root, directories, files in os.walk(home(uid)):
        for name in ['.', *directories, *files]:
            os.chown(os.path.join(root, name), uid, uid)
    for path in [f'/run/user/{uid}', f'/run/user/{uid}/lockhouse']:
        os.chown(path, uid, uid)

def started(uid, command, runtime=True, before=()):
    as_user = ['setpriv', '--reuid', str(uid), '--regid', str(uid), '--clear-groups', *command]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return subprocess.Popen([*before, *as_user], env=environment(uid, runtime), cwd=home(uid), **pipes)

def root(*arguments):
    begun = time.monotonic()
    done = subprocess.run([program, *arguments], env=environment(0), capture_output=True, text=True)
    took = time.monotonic() - begun
    return {'status': done.returncode, 'stdout': done.stdout, 'stderr': done.stderr, 'seconds': took}

def wait(what, condition):
    for _ in range(2000):
        if condition(): return
        time.sleep(0.01)
    raise SystemExit(f'not in time: {what}')

def alive(process):
    return process.poll() is None

for uid in [0, 61511, 61512, 61513, 61514]:
    account(uid)
serve = [program, 'serve']
honest = {
    61511: started(61511, serve),
    61512: started(61512, serve, runtime=False),
    61513: started(61513, serve, before=['unshare', '--mount', 'sh', '-c',
        'mount -t tmpfs none /run && mkdir -p /run/user/61513 && chown 61513:61513 /run/user/61513 && exec "$@"', 'sh']),
}
socket_of = {
    61511: f'/run/user/61511/lockhouse/control-{honest[61511].pid}.sock',
    61512: f'{home(61512)}/STATE/lockhouse/run/control-{honest[61512].pid}.sock',
    61513: f'/proc/{honest[61513].pid}/root/run/user/61513/lockhouse/control-{honest[61513].pid}.sock',
}
for uid, path in socket_of.items():
    wait(path, lambda: os.path.exists(path))
def ready():
    rows = json.loads(root('status', '--all-users', '--json')['stdout'])
    return len(rows) == 3 and all(row['ready'] for row in rows)
wait('all are ready', ready)

SOCKET = '''
import os, socket, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(f'/run/user/61514/lockhouse/control-{os.getpid()}.sock')
listener.listen(64)
held = []
while True:
    held.append(listener.accept()[0])
    if sys.argv[1] == 'flood':
        try:
            while True: held[-1].sendall(b'\\\\0\\\\0\\\\0\\\\5hello' * 4096)
        except OSError: pass
'''.replace('\\\\\\\\', '\\\\')
hostile = {kind: started(61514, ['/usr/bin/python3', '-c', SOCKET, kind]) for kind in ['silent', 'flood']}
for kind, process in hostile.items():
    wait(kind, lambda: os.path.exists(f'/run/user/61514/lockhouse/control-{process.pid}.sock'))
# A link to the process of another account, a socket under the number of another process, and a service of root.
os.symlink(socket_of[61511], '/run/user/61514/lockhouse/control-99991.sock')
claiming = socket.socket(socket.AF_UNIX)
claiming.bind('/run/user/61514/lockhouse/control-99992.sock')
os.chown('/run/user/61514/lockhouse/control-99992.sock', 61514, 61514)
claiming.listen(8)
received = []
claiming.setblocking(False)
# A program with the name of Lockhouse that ignores SIGTERM and has no socket.
import shutil
stubborn = f'{home(61514)}/lockhouse'
shutil.copy('/usr/bin/python3', stubborn)
with open(f'{home(61514)}/serve', 'w') as file:
    file.write('import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint("ready", flush=True)\nwhile True: time.sleep(9)\n')
os.chmod(stubborn, 0o755)
hostile['stubborn'] = started(61514, [stubborn, 'serve'])
hostile['stubborn'].stdout.readline()

result = {'pids': {uid: process.pid for uid, process in honest.items()}, 'stubborn': hostile['stubborn'].pid}
for command in ['status', 'reload', 'stop']:
    as_user = started(61511, [program, command, '--all-users'])
    as_user.stdin.close()
    result[f'{command} of a user'] = as_user.wait()
result['alone'] = root('status', '--json')
result['status'] = root('status', '--all-users', '--json')
result['table'] = root('status', '--all-users')
with open(f'{home(61511)}/CONFIG/lockhouse/policy.toml', 'w') as file:
    file.write('version = 1\n[servers.x]\nallow = ["y"]\n')
with open(f'{home(61512)}/CONFIG/lockhouse/policy.toml', 'w') as file:
    file.write('nonsense')
result['reload'] = root('reload', '--all-users', '--json')
result['status after'] = root('status', '--all-users', '--json')
try:
    connection = claiming.accept()[0]
    connection.settimeout(1)
    received = connection.recv(100)
except OSError:
    received = b''
result['sent to a service of root'] = received.decode('latin1')
result['alive before'] = [uid for uid, process in honest.items() if alive(process)]
result['stop'] = root('stop', '--all-users', '--reason', 'an incident', '--json')
result['alive after'] = [uid for uid, process in honest.items() if alive(process)]
result['stubborn after'] = hostile['stubborn'].poll()
def records(uid):
    directory = f'{home(uid)}/STATE/lockhouse/audit'
    for name in sorted(os.listdir(directory)):
        if name.endswith('.jsonl') and name != 'segments.jsonl':
            with open(f'{directory}/{name}') as file:
                yield from (json.loads(line) for line in file)
kinds = ['reload', 'termination', 'process']
result['records'] = {uid: [r for r in records(uid) if r['event'] in kinds] for uid in [0, *honest]}
print(json.dumps(result))
"#;

/// Runs the scene. `None` without the rights to make its namespaces and accounts.
fn scene() -> Option<Value> {
    if !geteuid().is_root() {
        return None;
    }
    let lockhouse = Lockhouse::outside_tmp();
    std::fs::set_permissions(lockhouse.path(""), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "python3",
        "-c",
        SCENE,
    ]);
    command.arg(lockhouse.program()).arg(lockhouse.path("accounts")).arg(fixture_server());
    let finished = CommandOutput::run(&mut command, b"");
    if finished.stderr.contains("Operation not permitted") {
        println!("skipped: no namespaces with accounts of their own ({})", finished.stderr);
        return None;
    }
    assert_eq!(finished.status, Some(0), "{finished:?}");
    Some(finished.json())
}

fn printed(result: &Value, name: &str) -> Value {
    let text = result[name]["stdout"].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}: {}", result[name]))
}

/// Returns the row of a process in the output of a command.
fn row(rows: &Value, pid: &Value) -> Value {
    rows.as_array().into_iter().flatten().find(|row| row["pid"] == *pid).cloned().unwrap_or_default()
}

#[test]
fn root_reaches_the_processes_of_all_accounts_and_believes_none() {
    let Some(result) = scene() else { return };
    let mut table = Table::new("--all-users");
    for command in ["status", "reload", "stop"] {
        table.row(
            format!("{command}: refused to a user"),
            equal(result[format!("{command} of a user")].clone(), json!(2)),
        );
    }
    table.row("control: without it, root's own only", equal(printed(&result, "alone"), json!([])));
    let (status, pids) = (printed(&result, "status"), &result["pids"]);
    for (uid, place) in
        [(RUNTIME, "the runtime directory"), (STATE, "the state directory"), (OWN_ROOT, "a root of its own")]
    {
        let row = row(&status, &pids[uid.to_string()]);
        let holds = row["uid"] == uid && row["state"] == "answers" && row["ready"] == true;
        table.row(format!("a socket in {place}"), ensure(holds, &row));
        let digest = row["configuration"]["policy"].as_str().map(str::len);
        table.row(format!("its digest: {place}"), equal(digest, Some(64)));
    }
    let of_hostile: Vec<&Value> =
        status.as_array().into_iter().flatten().filter(|row| row["uid"] == HOSTILE).collect();
    let silent = of_hostile.iter().all(|row| row["state"] != "answers");
    table.row("the hostile account answers nowhere", ensure(silent && of_hostile.len() == 3, &of_hostile));
    let count = status.as_array().map(Vec::len);
    table.row("and each process is listed once", equal(count, Some(6)));
    let stubborn = row(&status, &result["stubborn"]);
    table.row("a process without a socket", equal(stubborn["state"].clone(), json!("silent")));
    table.row(
        "nothing is sent to a service of root",
        equal(result["sent to a service of root"].clone(), json!("")),
    );
    let shown = result["table"]["stdout"].as_str().unwrap_or_default();
    table
        .row("the table", ensure(shown.contains("does not answer") && shown.contains("requirements"), shown));

    let reloaded = printed(&result, "reload");
    let outcome = |uid: u64| row(&reloaded, &pids[uid.to_string()])["outcome"].clone();
    table.row("a reload in force", equal(outcome(RUNTIME), json!("in_force")));
    table.row("a reload of files with faults", equal(outcome(STATE), json!("invalid")));
    let report = row(&reloaded, &pids[RUNTIME.to_string()]);
    let digest_after =
        row(&printed(&result, "status after"), &pids[RUNTIME.to_string()])["configuration"]["policy"].clone();
    table.row(
        "each answers what it applied",
        equal(report["digests"]["policy"].clone(), digest_after.clone()),
    );
    let before = row(&status, &pids[RUNTIME.to_string()])["configuration"]["policy"].clone();
    table.row("which is another policy", ensure(before != digest_after, (before, digest_after)));

    table.row("control: they run", equal(result["alive before"].clone(), json!([RUNTIME, STATE, OWN_ROOT])));
    table.row("all have ended", equal(result["alive after"].clone(), json!([])));
    table.row("one that ignores SIGTERM", equal(result["stubborn after"].clone(), json!(-9)));
    let stops = printed(&result, "stop");
    table.row("it says so", equal(row(&stops, &result["stubborn"])["outcome"].clone(), json!("killed")));
    for uid in [RUNTIME, STATE, OWN_ROOT] {
        let records = result["records"][uid.to_string()].as_array().cloned().unwrap_or_default();
        let of =
            |event: &str| records.iter().find(|record| record["event"] == event).cloned().unwrap_or_default();
        let (reload, end) = (of("reload"), of("termination"));
        table.row(
            format!("{uid}: the reload is root's"),
            equal(json!([reload["cause"], reload["uid"]]), json!(["operator", 0])),
        );
        let found = json!([end["target"], end["through"], end["uid"], end["reason"], end["severity"]]);
        let expected = json!(["process", "administrator", 0, "an incident", "high"]);
        table.row(format!("{uid}: and the end"), equal(found, expected));
    }
    let own = result["records"]["0"].as_array().cloned().unwrap_or_default();
    let found =
        own.iter().any(|record| record["target"] == "all processes" && record["reason"] == "an incident");
    table.row("root's own log has it too", ensure(found, &own));
    table.finish();
}
