//! Tests that the audit log does not obey a wall clock that was set: nothing is removed too early, and the change is shown.

use std::path::PathBuf;
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Session, Table, ensure, equal};
use serde_json::Value;

use super::ADD;

/// A library that adds a number of seconds, which is in a file, to the wall clock of its process.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    long status = syscall(SYS_clock_gettime, clock, now), seconds = 0;
    const char *path = getenv("CLOCK_OFFSET_FILE");
    FILE *file = clock == CLOCK_REALTIME && path ? fopen(path, "re") : NULL;
    if (file) {
        if (fscanf(file, "%ld", &seconds) == 1)
            now->tv_sec += seconds;
        fclose(file);
    }
    return status;
}
"#;
const DAY: i64 = 24 * 3_600;

struct Clock {
    library: PathBuf,
    offset: PathBuf,
}

impl Clock {
    fn new(lockhouse: &Lockhouse) -> Self {
        let (source, library) = (lockhouse.file("clock.c", CLOCK), lockhouse.path("clock.so"));
        let mut compiler = Command::new("cc");
        let compiled = compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source);
        let compiled = CommandOutput::run(compiled, b"");
        assert_eq!(compiled.status, Some(0), "{compiled:?}");
        let clock = Self { library, offset: lockhouse.file("offset", "0") };
        assert!(clock.offset.exists());
        clock
    }

    fn set(&self, seconds: i64) {
        std::fs::write(&self.offset, seconds.to_string()).unwrap();
    }

    fn command(&self, lockhouse: &Lockhouse, arguments: &[&str]) -> Command {
        let mut command = lockhouse.command(arguments);
        command.env("LD_PRELOAD", &self.library).env("CLOCK_OFFSET_FILE", &self.offset);
        command
    }

    fn run(&self, lockhouse: &Lockhouse) -> CommandOutput {
        let arguments = ["run", "-", "--language", "python", "--json"];
        CommandOutput::run(&mut self.command(lockhouse, &arguments), ADD.as_bytes())
    }
}

fn verification(lockhouse: &Lockhouse) -> Value {
    lockhouse.run(&["audit", "verify", "--json"]).json()
}

fn notes(verification: &Value) -> Vec<String> {
    let notes = verification["notes"].as_array().into_iter().flatten();
    notes.filter_map(|note| note["what"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_clock_that_is_ahead_removes_nothing_and_is_shown() {
    let mut table = Table::new("processes with another clock");
    for (days, words) in
        [(40, "the clock was set forward by 40 days"), (-40, "the clock was set back by 40 days")]
    {
        let lockhouse = Lockhouse::with_fixture();
        let clock = Clock::new(&lockhouse);
        for seconds in [0, days * DAY, days * DAY, 0] {
            clock.set(seconds);
            let answer = clock.run(&lockhouse).json();
            table.row(format!("{days}: it runs at {seconds}"), ensure(answer["value"] == 3, &answer));
        }
        let last =
            lockhouse.records().into_iter().filter_map(|record| record["time"].as_str().map(str::to_owned));
        let (first, last) = (last.clone().min(), last.max());
        let spread = first.zip(last).is_some_and(|(first, last)| first[..7] != last[..7]);
        table.row(format!("{days}: control: the clock was another"), ensure(spread, lockhouse.segments()));
        table.row(format!("{days}: segments"), equal(lockhouse.segments().len(), 4));
        let verified = verification(&lockhouse);
        let is_whole = verified["state"] == "verified" && verified["programs"] == 1;
        table.row(format!("{days}: verified, with the program"), ensure(is_whole, &verified));
        let notes = notes(&verified);
        let told = notes.iter().filter(|note| note.contains("the clock was set")).count();
        table.row(
            format!("{days}: both jumps are shown"),
            equal(told, 2).map_err(|error| format!("{error} {notes:?}")),
        );
        table.row(
            format!("{days}: the first one"),
            ensure(notes.iter().any(|note| note.contains(words)), &notes),
        );
        let queried = lockhouse.run(&["audit", "query", "--event", "clock"]);
        table.row(
            format!("{days}: records"),
            equal(queried.stdout.lines().count(), 2).map_err(|e| format!("{e} {queried:?}")),
        );
    }
    table.finish();
}

#[tokio::test]
async fn a_clock_that_is_set_while_a_process_runs_removes_nothing_and_is_shown() {
    let lockhouse = Lockhouse::with_fixture();
    let clock = Clock::new(&lockhouse);
    let session = Session::connect(clock.command(&lockhouse, &["serve"]), Session::latest()).await;
    for days in [0, 40, 0] {
        clock.set(days * DAY);
        assert_eq!(session.run_code("python", ADD).await["value"], 3, "{days}");
    }
    session.close().await;
    let verified = verification(&lockhouse);
    assert!(verified["state"] == "verified" && verified["programs"] == 1, "{verified}");
    let told: Vec<String> =
        notes(&verified).into_iter().filter(|note| note.contains("the clock was set")).collect();
    assert!(told.len() == 2 && told[0].contains("forward") && told[1].contains("back"), "{told:?}");
    let calls = lockhouse.records().iter().filter(|record| record["event"] == "call").count();
    assert_eq!(calls, 3);
}
