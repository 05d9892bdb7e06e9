//! Attempts at the sockets of the engine: to answer approvals, and to take its place.

use super::{Attempt, try_all};

const ATTEMPTS: &[Attempt] = &[
    (
        "approve its own call with lines",
        "python3 \"$TOOLS/approve.py\" \"$SOCKETS\" & approver=$!
         run 'from fixture import echo; echo(value=7)' | grep -q '\"value\": *{\"value\": *7}' && wait $approver",
    ),
    (
        "approve its own call with lockhouse approvals",
        "mkfifo \"$HOME/answers\" 2>/dev/null; exec 3<>\"$HOME/answers\"; rm -f \"$HOME/answers.watching\"
         lockhouse approvals --json < \"$HOME/answers\" 2>/dev/null | python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get(\"watching\"): open(sys.argv[1] + \".watching\", \"w\").close()
    question = message.get(\"ask\")
    if question:
        answer = {\"id\": question[\"id\"], \"digest\": question[\"digest\"], \"decision\": \"approve\", \"scope\": \"once\"}
        print(json.dumps({\"supervisor\": message[\"supervisor\"], \"answer\": answer}), file=open(sys.argv[1], \"w\"), flush=True)
' \"$HOME/answers\" & approver=$!
         n=0; until [ -e \"$HOME/answers.watching\" ] || [ $n -ge 50 ]; do n=$((n + 1)); sleep 0.1; done
         run 'from fixture import echo; echo(value=7)' | grep -q '\"value\": *{\"value\": *7}'; done=$?; kill $approver
         pkill -P $$ -f 'lockhouse approvals'; exit $done",
    ),
    ("remove the control socket", "rm \"$SOCKETS\"/control*.sock"),
    (
        "listen in place of the engine",
        "rm -f \"$SOCKETS\"/control*.sock && python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' \"$SOCKETS/control-1.sock\"",
    ),
    ("rename the directory of the sockets", "mv \"$SOCKETS\" \"$SOCKETS.old\""),
    ("a file of its own beside the sockets", "touch \"$SOCKETS/mine\""),
    ("change the mode of a socket", "chmod 0777 \"$SOCKETS\"/control*.sock"),
    ("change the owner's permissions of the directory", "chmod 0777 \"$SOCKETS\""),
    ("mount over the sockets", "test -O \"$SOCKETS\" && unshare -r -m mount -t tmpfs none \"$SOCKETS\""),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_agent_approves_calls_or_takes_the_place_of_the_engine() {
    try_all("sockets", ATTEMPTS).await;
}
