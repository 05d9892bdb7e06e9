//! Endurance suite: how long after its deadline each hostile program ends under load, and what it leaves behind.
//!
//! Two clocks measure how late an execution ends. The first is the supervisor's `wall_ms` in the answer: the time from
//! sending code to a worker until the end of the worker is known, without the wait for a worker and the delivery of the
//! answer. The lateness is `wall_ms` minus the timeout. Lockhouse promises at most 250 ms, of which 100 ms are the
//! grace period between interrupt and SIGKILL. The second is the client's clock, from the request to the answer. The
//! time by this clock is checked only if so few executions are in flight that each finds an idle worker.
//!
//! The answer is sent once the program has been sent SIGKILL, and the kernel then destroys the process. The report
//! has a separate figure for the time from the last answer until no process of a program exists.
//!
//! Only executions that reached their deadline count. Executions that ended earlier at another limit would make the
//! figures look better than they are.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lockhouse_tests::{Ending, ensure, equal};

use super::hostile_programs::{self, Hostile};
use super::leftover_resources;
use super::load_client::{Program, ProgramAnswer};
use super::progress::Progress;
use super::report::{Kind, Report, millis};
use super::server::Server;

const TIMEOUT: Duration = Duration::from_millis(400);
/// The promise: the 99th percentile of the lateness is at most this number of ms. The lateness of an execution is the
/// time from its deadline to its end, by either of the two clocks.
const LATE_MS_MAX: f64 = 250.0;
/// The maximum number of executions in flight at which each finds an idle worker of its language.
const UNCONTENDED_IN_FLIGHT: usize = 2;
/// The maximum time from the last answer until the server has no more workers than its idle ones.
const DIES_WITHIN: Duration = Duration::from_secs(5);
/// The maximum number of unexpected answers that the report shows in full. The report also states the number of all
/// of them.
const REPORTED_MAX: usize = 3;

#[derive(Default)]
struct Tally {
    reached: usize,
    latest_ms: f64,
    statuses: BTreeMap<String, usize>,
}

#[derive(Default)]
struct Tallies {
    by_program: BTreeMap<usize, Tally>,
    late_by_answer: Vec<f64>,
    late_by_client: Vec<f64>,
    unexpected: Vec<String>,
    answers: usize,
}

/// Runs `count` hostile programs, with `at_a_time` of them in flight, and reports how late they ended and what they
/// left behind.
pub(crate) async fn deadlines(count: usize, at_a_time: usize) -> Report {
    let mut report = Report::new(format!("deadlines, {at_a_time} at a time"));
    let server = Server::start().await;
    let mut progress = Progress::new("deadlines", count);
    let hostile = hostile_programs::all();
    let mut tallies = Tallies::default();
    let mut numbers = 0..count;
    let programs = || {
        let number = numbers.next()?;
        let Hostile { language, attack } = &hostile[number % hostile.len()];
        Some(Program { number, language, code: attack.source.clone(), timeout: Some(TIMEOUT) })
    };
    server
        .client
        .load(at_a_time, programs, |answered| {
            progress.step();
            tallies.add(&answered, &hostile);
        })
        .await;
    let answered = Instant::now();
    let dead = leftover_resources::until(DIES_WITHIN, || leftover_resources::nothing_runs(server.pid)).await;
    let dying = answered.elapsed();
    report.figure("executions", count as f64, "");
    report.figure("took", progress.seconds(), "s");
    tallies.judge(&mut report, &hostile, count, at_a_time);
    report.figure("from the last answer until no process of a program is alive", millis(dying), "ms");
    report.promise(Kind::Count, "with the last answer the last program is dead", dead);
    report.promise(
        Kind::Count,
        "nothing is left but idle workers, and no zombie",
        server.settled().await.map(drop),
    );
    server.close(&mut report).await;
    report
}

impl Tallies {
    fn add(&mut self, answered: &ProgramAnswer, hostile: &[Hostile]) {
        let which = answered.program.number % hostile.len();
        let tally = self.by_program.entry(which).or_default();
        let status = answered.text("/status").to_owned();
        if !is_expected(&hostile[which], &status, answered.text("/error/message")) {
            self.unexpected.push(answered.to_text());
        }
        *tally.statuses.entry(status).or_default() += 1;
        let Ok(answer) = &answered.answer else { return };
        self.answers += 1;
        let wall_ms =
            answer.pointer("/stats/wall_ms").and_then(|wall| wall.as_f64()).unwrap_or(f64::INFINITY);
        let late = wall_ms - millis(TIMEOUT);
        if late >= 0.0 {
            tally.reached += 1;
            tally.latest_ms = tally.latest_ms.max(late);
            self.late_by_answer.push(late);
            self.late_by_client.push(millis(answered.took) - millis(TIMEOUT));
        }
    }

    fn judge(self, report: &mut Report, hostile: &[Hostile], count: usize, at_a_time: usize) {
        let judged = |p99: f64| ensure(p99 <= LATE_MS_MAX, p99);
        let reached = self.late_by_answer.len();
        let [_, by_answer, _] = report.times("late by the answer's clock", self.late_by_answer);
        let [_, by_client, _] = report.times("late by the client's clock", self.late_by_client);
        for (which, tally) in &self.by_program {
            let name = format!("{}: {}", hostile[*which].language, hostile[*which].attack.name);
            let statuses: Vec<String> =
                tally.statuses.iter().map(|(status, count)| format!("{status} {count}")).collect();
            report.remarked(format!("latest {name}"), tally.latest_ms, "ms", statuses.join(", "));
        }
        report.promise(Kind::Count, "each has its answer", equal(self.answers, count));
        let reported: Vec<&String> = self.unexpected.iter().take(REPORTED_MAX).collect();
        report.promise(
            Kind::Count,
            "each ends at its deadline, at a limit or with an error, as its kind does",
            ensure(reported.is_empty(), (self.unexpected.len(), reported)),
        );
        report.promise(
            Kind::Count,
            "control: at least a third of them reach their deadline",
            ensure(3 * reached >= count, reached),
        );
        report.promise(
            Kind::Measure,
            format!("p99 within {LATE_MS_MAX} ms of the deadline by the answer's clock"),
            judged(by_answer),
        );
        if at_a_time <= UNCONTENDED_IN_FLIGHT {
            let name = format!("p99 within {LATE_MS_MAX} ms of the deadline by the client's clock");
            report.promise(Kind::Measure, name, judged(by_client));
        }
    }
}

fn is_expected(program: &Hostile, status: &str, message: &str) -> bool {
    // C code of the interpreter may abort when memory cannot be allocated.
    let aborted = status == "killed" && message.contains("for want of memory");
    match program.attack.endurance {
        Some(Ending::AtDeadline) => status == "timeout" && !message.is_empty(),
        _ => ["error", "limit", "timeout"].contains(&status) && !message.is_empty() || aborted,
    }
}
