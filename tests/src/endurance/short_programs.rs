//! Endurance suite: runs a large number of short programs, and checks the resources left behind and the growth of
//! memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lockhouse_tests::{ensure, equal};
use serde_json::{Value, json};

use super::leftover_resources::{self, Remains};
use super::load_client::{Program, ProgramAnswer};
use super::progress::Progress;
use super::report::{Kind, Report, millis};
use super::server::Server;
use super::zygotes::Zygotes;

const IN_FLIGHT: usize = 8;
/// The number of programs that run before memory is first measured, because initial allocations make memory grow.
const WARM_UP: usize = 2_000;
/// The promise: the supervisor's resident memory after the last program exceeds its resident memory after the warm-up
/// by less than this percentage.
const GROWTH_PERCENT_MAX: f64 = 5.0;
/// The maximum number of wrong answers that the report shows.
const REPORTED_MAX: usize = 3;

/// Short Python programs with their expected results. Seven of the programs succeed without a tool call, two call a
/// tool, and one fails. The TypeScript programs are of the same kinds.
const PYTHON: [(&str, Expected); 10] = [
    ("1 + 1", Expected::Value(2)),
    ("sum(range(100))", Expected::Value(4950)),
    ("from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']", Expected::Value(3)),
    ("print('hello')\n1", Expected::Value(1)),
    ("import json\nlen(json.dumps(list(range(10))))", Expected::Value(30)),
    ("1 / 0", Expected::Error),
    ("import re\nlen(re.findall('a', 'banana'))", Expected::Value(3)),
    ("from mcp_tools.aio.fixture import add\n(await add(a=2, b=2))['sum']", Expected::Value(4)),
    ("len({i: str(i) for i in range(1000)})", Expected::Value(1000)),
    ("def f(n):\n return n and 1 + f(n - 1)\nf(50)", Expected::Value(50)),
];
const TYPESCRIPT: [(&str, Expected); 10] = [
    ("1 + 1", Expected::Value(2)),
    ("[...Array(100).keys()].reduce((a, b) => a + b)", Expected::Value(4950)),
    ("(await fixture.add({a: 1, b: 2})).sum", Expected::Value(3)),
    ("console.log('hello'); 1", Expected::Value(1)),
    ("JSON.stringify([0, 1, 2]).length", Expected::Value(7)),
    ("null.x", Expected::Error),
    ("'banana'.match(/a/g).length", Expected::Value(3)),
    ("(await Promise.all([fixture.add({a: 2, b: 2})]))[0].sum", Expected::Value(4)),
    ("interface A { n: number }\nconst a: A = {n: 1000}; a.n", Expected::Value(1000)),
    ("const f = (n: number): number => n && 1 + f(n - 1); f(50)", Expected::Value(50)),
];

#[derive(Clone, Copy)]
enum Expected {
    Value(u64),
    Error,
}

fn program(number: usize) -> (&'static str, &'static str, Expected) {
    let which = number / 2 % 10;
    match number % 2 {
        0 => ("python", PYTHON[which].0, PYTHON[which].1),
        _ => ("typescript", TYPESCRIPT[which].0, TYPESCRIPT[which].1),
    }
}

/// Runs `count` short programs after a warm-up of 2,000 programs, or of `count` if that is less, and reports the
/// findings.
pub(crate) async fn short(count: usize) -> Report {
    let mut report = Report::new(format!("short executions, {IN_FLIGHT} at a time"));
    let server = Server::start().await;
    let mut progress = Progress::new("short", count + count.min(WARM_UP));
    let mut seen = Answers::default();
    seen.run(&server, count.min(WARM_UP), &mut progress).await;
    let before = server.settled().await;
    let before_kib = leftover_resources::resident_kib(server.pid);

    let mut zygotes = Zygotes::default();
    let counted = seen.run(&server, count, &mut progress);
    zygotes.watch(server.pid, counted).await;
    let after = server.settled().await;
    let after_kib = leftover_resources::resident_kib(server.pid);

    report.figure("executions", count as f64, "");
    report.figure("took", progress.seconds(), "s");
    seen.judge(&mut report, count + count.min(WARM_UP), &zygotes);
    zygotes.add_to(&mut report);
    if let (Some(before), Some(after)) = (before_kib, after_kib) {
        let growth = (after as f64 / before as f64 - 1.0) * 100.0;
        report.figure("supervisor's memory after the warm-up", before as f64 / 1024.0, "MiB");
        report.figure("supervisor's memory at the end", after as f64 / 1024.0, "MiB");
        let name = format!("the supervisor grows by less than {GROWTH_PERCENT_MAX} %");
        report.promise(Kind::Measure, name, ensure(growth < GROWTH_PERCENT_MAX, growth));
    }
    compare(&mut report, before, after);
    server.close(&mut report).await;
    report
}

fn compare(report: &mut Report, before: Result<Remains, String>, after: Result<Remains, String>) {
    let (before, after) = match (before, after) {
        (Ok(before), Ok(after)) => (before, after),
        (before, after) => {
            let found = [before, after].map(|remains| remains.err().unwrap_or_default());
            report.promise(
                Kind::Count,
                "nothing is left but idle workers, and no zombie",
                equal(found, <_>::default()),
            );
            return;
        }
    };
    report.promise(Kind::Count, "nothing is left but idle workers, and no zombie", Ok(()));
    match (&before.descriptors, &after.descriptors) {
        (Some(before), Some(after)) => {
            report.figure("descriptors of the supervisor", after.len() as f64, "");
            // One of those before may be that of a record that was being written.
            let more = leftover_resources::more_than(after, before);
            report.promise(
                Kind::Count,
                "no descriptor more than after the warm-up",
                ensure(more.is_empty(), more),
            );
        }
        _ => report.remarked("descriptors of the supervisor", f64::NAN, "", "only root can see them".into()),
    }
    let left: Vec<_> = after.files.difference(&before.files).collect();
    report.promise(
        Kind::Count,
        "no temporary file more in its own directories",
        ensure(left.is_empty(), left),
    );
    // Another process may have created these files, so this promise is a measure.
    let left: Vec<_> = after.shared_files.difference(&before.shared_files).collect();
    report.promise(
        Kind::Measure,
        "no temporary file more in /tmp and /dev/shm",
        ensure(left.is_empty(), left),
    );
}

#[derive(Default)]
struct Answers {
    right: usize,
    wrong: Vec<String>,
    latest: Option<Instant>,
    longest_pause: Duration,
    paused_at: Option<Instant>,
    took: BTreeMap<&'static str, Vec<f64>>,
}

impl Answers {
    async fn run(&mut self, server: &Server, count: usize, progress: &mut Progress) {
        let mut numbers = 0..count;
        let programs = || {
            let number = numbers.next()?;
            let (language, code, _) = program(number);
            Some(Program { number, language, code: code.to_owned(), timeout: None })
        };
        self.latest = None;
        server
            .client
            .load(IN_FLIGHT, programs, |answered| {
                progress.step();
                self.add(&answered);
            })
            .await;
    }

    fn add(&mut self, answered: &ProgramAnswer) {
        let now = Instant::now();
        let pause = self.latest.replace(now).map_or(Duration::ZERO, |latest| now - latest);
        if pause > self.longest_pause {
            (self.longest_pause, self.paused_at) = (pause, Some(now));
        }
        self.took.entry(answered.program.language).or_default().push(millis(answered.took));
        let value = answered.answer.as_ref().ok().map(|answer| &answer["value"]);
        let is_right = match program(answered.program.number).2 {
            Expected::Value(expected) => answered.is_ok() && value == Some(&json!(expected)),
            Expected::Error => answered.text("/status") == "error" && value == Some(&Value::Null),
        };
        match is_right {
            true => self.right += 1,
            false => self.wrong.push(answered.to_text()),
        }
    }

    fn judge(&mut self, report: &mut Report, count: usize, zygotes: &Zygotes) {
        for (language, took) in std::mem::take(&mut self.took) {
            report.times(&format!("{language}: at the client"), took);
        }
        let remark = self.paused_at.and_then(|at| zygotes.nearest(at)).unwrap_or_default();
        report.remarked("longest pause between two answers", millis(self.longest_pause), "ms", remark);
        let reported: Vec<&String> = self.wrong.iter().take(REPORTED_MAX).collect();
        let name = "each program has its answer, and the right one";
        report.promise(Kind::Count, name, ensure(self.right == count, (self.right, reported)));
    }
}
