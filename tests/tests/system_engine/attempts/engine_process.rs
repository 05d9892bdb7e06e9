//! Attempts at the process of the engine and its servers: signals, memory, descriptors, limits.

use super::{Attempt, try_all};

const ATTEMPTS: &[Attempt] = &[
    ("SIGKILL", "kill -9 \"$ENGINE\""),
    ("SIGSTOP", "kill -STOP \"$ENGINE\""),
    ("SIGTERM", "kill \"$ENGINE\""),
    ("SIGHUP", "kill -HUP \"$ENGINE\""),
    ("SIGKILL by a pidfd", python!("c(424, c(434, engine, 0), 9, 0, 0)")),
    ("priority", "renice -n 19 -p \"$ENGINE\""),
    ("limits of descriptors", "prlimit --pid \"$ENGINE\" --nofile=8:8"),
    ("limit of memory", "prlimit --pid \"$ENGINE\" --as=1000000:1000000"),
    ("scheduling", "chrt -i -p 0 \"$ENGINE\""),
    ("priority of input and output", "ionice -c 3 -p \"$ENGINE\""),
    ("SIGSEGV", "kill -SEGV \"$ENGINE\""),
    ("processors", "taskset -p 1 \"$ENGINE\""),
    (
        "environment of a server",
        "test -n \"$SERVER\" && tr '\\0' '\\n' < \"/proc/$SERVER/environ\" | grep -q SECRET-CANARY",
    ),
    ("trace a server", python!("c(101, 16, server, 0, 0)")),
    ("memory of a server", python!("open(f'/proc/{server}/mem', 'rb')")),
    ("descriptors of a server", "ls \"/proc/$SERVER/fd\" > /dev/null"),
    ("take a descriptor of a server", python!("c(438, c(434, server, 0), 0, 0)")),
    ("program of a server", "readlink \"/proc/$SERVER/exe\""),
    ("directory of a server", "readlink \"/proc/$SERVER/cwd\""),
    ("write to the input of a server", "echo '{}' > \"/proc/$SERVER/fd/0\""),
    ("SIGKILL to a server", "kill -9 \"$SERVER\""),
    ("SIGSTOP to a server", "kill -STOP \"$SERVER\""),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_agent_reaches_the_process_of_the_engine() {
    try_all("processes", ATTEMPTS).await;
}
