//! Tests of the properties of running workers that `/proc` shows, such as their seccomp mode and capabilities.

use lockhouse_tests::{LANGUAGES, Lockhouse, Process, Table, children, ensure, wait_until};

fn status(pid: u32, field: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.map(|value| value.trim().to_owned())
}

/// Returns all worker processes: the child processes of the supervisor's child processes.
fn workers(supervisor: u32) -> Vec<Process> {
    children(supervisor).iter().flat_map(|zygote| children(zygote.pid)).collect()
}

fn name(process: &Process) -> String {
    let program = process.command.split(' ').next().unwrap_or_default();
    format!("{program} {}", process.pid)
}

#[tokio::test]
async fn every_worker_is_sandboxed_while_code_runs_in_it() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let own = status(std::process::id(), "NoNewPrivs");
    assert_eq!(own.as_deref(), Some("0"), "control: this test itself is not sealed");
    let python =
        session.start_code("python", "from mcp_tools.fixture import slow\nslow(ms=3000)['waited_ms']");
    let typescript = session.start_code("typescript", "(await fixture.slow({ms: 3000})).waited_ms");
    wait_until("both programs wait for their tool", async || {
        let calls = lockhouse.audit().into_iter().filter(|record| record["event"] == "call").count();
        (calls == 2).then_some(())
    })
    .await;
    // A worker that has just been forked is not sandboxed yet.
    let needed = [
        ("Seccomp", "2"),
        ("NoNewPrivs", "1"),
        ("CapEff", "0000000000000000"),
        ("CapPrm", "0000000000000000"),
    ];
    let sealed = wait_until("every worker is sealed", async || {
        let workers = workers(session.pid());
        let is_sealed = |worker: &Process| {
            needed.iter().all(|(field, value)| status(worker.pid, field).as_deref() == Some(*value))
        };
        (workers.len() >= 2 && workers.iter().all(is_sealed)).then_some(workers)
    })
    .await;
    let mut table = Table::new("workers in /proc");
    for worker in &sealed {
        let Ok(descriptors) = std::fs::read_dir(format!("/proc/{}/fd", worker.pid)) else {
            // Workers are not dumpable, so even their own user cannot inspect them.
            println!("left out, since only root may look: the descriptors of {}", name(worker));
            continue;
        };
        let target = |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_link(entry.unwrap().path());
        let found: Vec<String> =
            descriptors.map(|entry| target(entry).unwrap().display().to_string()).collect();
        let regular = found.iter().any(|target| target.starts_with('/') && target != "/dev/null");
        table.row(format!("{}: no file is open", name(worker)), ensure(!regular, found));
        let uid = status(worker.pid, "Uid").unwrap_or_default();
        table.row(format!("{}: not root", name(worker)), ensure(!uid.starts_with("0\t"), uid));
        let environment = std::fs::read(format!("/proc/{}/environ", worker.pid)).unwrap_or_default();
        table.row(format!("{}: no environment", name(worker)), ensure(environment.is_empty(), environment));
    }
    for zygote in children(session.pid()) {
        let environment = std::fs::read(format!("/proc/{}/environ", zygote.pid)).unwrap_or_default();
        if !zygote.command.contains("fixture-server") {
            table.row(
                format!("{}: no environment", name(&zygote)),
                ensure(environment.is_empty(), environment),
            );
        }
    }
    table.finish();
    for (language, running) in LANGUAGES.into_iter().zip([python, typescript]) {
        let answer = lockhouse_tests::structured(running.await.unwrap());
        assert_eq!(answer["value"], 3000, "{language}: {answer}");
    }
}

#[tokio::test]
async fn a_worker_serves_one_execution_and_exits() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut pids = Vec::new();
    for _ in 0..5 {
        let answer = session.run_code("python", "import os\nos.getpid()").await;
        pids.push(answer["value"].as_u64().expect("a pid") as u32);
    }
    let distinct: std::collections::HashSet<&u32> = pids.iter().collect();
    assert_eq!(distinct.len(), 5, "{pids:?}");
    wait_until("every worker that served has ended", async || {
        pids.iter().all(|pid| !lockhouse_tests::is_alive(*pid)).then_some(())
    })
    .await;
}
