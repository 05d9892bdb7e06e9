//! What another person of the same managed host attempts, with a shell and an engine of their own: at the engine of the first
//! person, and at that person's processes. Each attempt succeeds for whom it is meant: the first person, or root.

use lockhouse_tests::{Table, ensure};

use super::two_people::{ROOT, TwoPeople};
use crate::system_engine::host::{OTHER_PERSON, PERSON, can_manage, refuses_to_all};

/// Whom an attempt is meant for, its name, and a script whose exit status is 0 if it succeeds. The controls are tried in this
/// order on one host: none needs what one before it has ended.
const ATTEMPTS: [(u32, &str, &str); 26] = [
    (ROOT, "approve the call with lines", "python3 \"$TOOLS/approve.py\" \"$SOCKETS\""),
    (
        ROOT,
        "approve the call as sudo does",
        "SUDO_UID=$FIRST pretending 0 lockhouse approve 'fixture.echo { \"value\": 7 }' once 0 \"$QUESTION\" \"$DIGEST\"",
    ),
    (
        PERSON,
        "run a program with the engine",
        "pretending $FIRST python3 \"$TOOLS/client.py\" 40+2 | grep -q '\"value\": *42'",
    ),
    (PERSON, "see what the engine runs", "pretending $FIRST lockhouse status --json | grep -q '\"pid\"'"),
    (
        ROOT,
        "see the questions",
        "sleep 3 | pretending $FIRST timeout 3 lockhouse approvals --json | grep -q '\"ask\"'",
    ),
    (
        ROOT,
        "read a stored file by its handle",
        "(lockhouse result \"$STORED\" --out \"$HOME/stored\" || pretending $FIRST lockhouse result \"$STORED\" --out \"$HOME/stored\") &&
         grep -rq quarterly \"$HOME/stored\"",
    ),
    (
        PERSON,
        "end a session by its name",
        "lockhouse sessions end notes | grep -q ended || pretending $FIRST lockhouse sessions end notes | grep -q ended",
    ),
    (PERSON, "reload the engine", "pretending $FIRST lockhouse reload"),
    (
        PERSON,
        "open the page with the token of another page",
        "python3 -c '
import json, sys, urllib.request
port, token = sys.argv[1:]
headers = {\"Host\": f\"localhost:{port}\", \"Content-Type\": \"application/json\", \"X-Lockhouse-Page\": \"login\"}
body = json.dumps({\"token\": token}).encode()
urllib.request.urlopen(urllib.request.Request(f\"http://127.0.0.1:{port}/api/login\", body, headers))
' \"$PORT\" \"$TOKEN\"",
    ),
    (
        PERSON,
        "environment of a server",
        "tr '\\0' '\\n' < \"/proc/$SERVER/environ\" | grep -q USER-CANARY",
    ),
    (ROOT, "write to the input of a server", "echo '{}' > \"/proc/$SERVER/fd/0\""),
    (PERSON, "take a descriptor of a server", python!("c(438, c(434, server, 0), 0, 0)")),
    (
        ROOT,
        "trace the client",
        "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), 0, 0) != 0)' \"$FRONT\"",
    ),
    (ROOT, "memory of the engine", "head -c 0 \"/proc/$ENGINE/mem\""),
    (ROOT, "read the audit log", "cat \"$LOG\"/*.jsonl | grep -q '\"event\"'"),
    (ROOT, "a code for a key", "pretending 0 lockhouse approvals enroll --person $FIRST"),
    (ROOT, "list the keys", "pretending 0 lockhouse approvals keys --person $FIRST"),
    (PERSON, "a configuration in the person's home", "mkdir -p \"$FIRST_HOME/.config/lockhouse/mine\""),
    (ROOT, "accept the proposal", "pretending 0 lockhouse policy accept \"$PROPOSAL\""),
    (
        PERSON,
        "propose a policy that denies all",
        "echo 'version = 1' > \"$HOME/nothing.toml\" && pretending $FIRST lockhouse policy propose \"$HOME/nothing.toml\"",
    ),
    (
        PERSON,
        "take the place of the launcher",
        "kill -9 \"$LAUNCHER\"; python3 -c '
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.settimeout(1)
connection.connect(sys.argv[1])
try:
    sys.exit(connection.recv(1) == b\"\")
except TimeoutError:
    pass
' \"$SOCKETS/launcher.sock\"",
    ),
    (PERSON, "SIGKILL to the client", "kill -9 \"$FRONT\""),
    (ROOT, "a file in the directory of the sockets", "touch \"$SOCKETS/mine\""),
    (
        ROOT,
        "a race for the path of the socket",
        "mkdir -p \"$HOME/mine\"; tries=0; until ln -sfn \"$HOME/mine\" \"$SOCKETS/front.sock\" || mv -T \"$HOME/mine\" \"$SOCKETS\"; do
         tries=$((tries + 1)); [ $tries -lt 200 ] || exit 1; done",
    ),
    (
        ROOT,
        "a socket of its own in place of the engine's",
        "rm -f \"$SOCKETS/front.sock\"; python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' \"$SOCKETS/front.sock\"",
    ),
    (ROOT, "SIGTERM to the engine", "kill \"$ENGINE\""),
];

#[tokio::test(flavor = "multi_thread")]
async fn another_account_reaches_no_engine_of_a_person() {
    if !can_manage() {
        return;
    }
    let attempts = || ATTEMPTS.iter().filter(|(_, _, script)| !refuses_to_all(script));
    let mut table = Table::new("attempts of another account");
    let mut people = TwoPeople::new().await;
    table.row("control: the other person has an engine", people.serves_other().await);
    for (_, name, script) in attempts() {
        let (succeeds, output) = people.attempt(OTHER_PERSON, script).await;
        table.row(*name, ensure(!succeeds, output));
        table.row(format!("{name}: nothing has changed"), people.is_intact().await);
    }
    table.row("the other person still has an engine", people.serves_other().await);
    table.row("the call waits, and the answer of root counts", people.answer().await);
    for (account, name, script) in attempts() {
        people.ask().await;
        let (succeeds, output) = people.attempt(*account, script).await;
        table.row(format!("{name}: control"), ensure(succeeds, output));
        if succeeds && name.starts_with("approve") {
            table.row(format!("{name}: the call is made"), people.is_answered().await);
        }
    }
    table.finish();
}
