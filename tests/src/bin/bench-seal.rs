//! `make bench-seal`: measures the time that each sandbox layer adds to the life of a worker: fork, sandboxing, one
//! system call, exit.
//!
//! The native worker is used, which has no interpreter, so that sandboxing is most of the measured time. The
//! configurations alternate, so that other load on the machine affects all of them alike.
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::time::{Duration, Instant};

use lockhouse_sandbox::{Layer, Layers};
use lockhouse_tests::{BareZygote, native_worker};

const ROUNDS: usize = 40;
const RUNS_PER_ROUND: usize = 50;
/// The code that each worker runs: a call of the cheapest system call, `getpid`.
const CODE: &str = if cfg!(target_arch = "x86_64") { "call 39" } else { "call 172" };

fn main() {
    let alone = Layer::ALL.map(|layer| (format!("{} alone", layer.name()), Layers::NONE.with(layer)));
    let ends = [
        ("no layer".to_owned(), Layers::NONE),
        ("all without namespaces".to_owned(), Layers::ALL.without(Layer::Namespaces)),
        ("all".to_owned(), Layers::ALL),
    ];
    let mut cases: Vec<(String, BareZygote, Vec<Duration>)> = ends
        .into_iter()
        .chain(alone)
        .map(|(name, layers)| (name, start(layers), Vec::with_capacity(ROUNDS * RUNS_PER_ROUND)))
        .collect();
    for _ in 0..ROUNDS {
        for (_, zygote, times) in &mut cases {
            for _ in 0..RUNS_PER_ROUND {
                let started = Instant::now();
                let _ = zygote.run(CODE);
                times.push(started.elapsed());
            }
        }
    }
    let medians: Vec<(f64, f64)> = cases.iter_mut().map(|(.., times)| percentiles(times)).collect();
    let (bare, _) = medians[0];
    println!("life of a worker, microseconds; {} runs each\n", ROUNDS * RUNS_PER_ROUND);
    println!("{:24}  {:>7}  {:>7}  {:>9}", "", "p50", "p95", "adds, p50");
    for ((name, ..), (p50, p95)) in cases.iter().zip(&medians) {
        println!("{name:24}  {p50:>7.0}  {p95:>7.0}  {:>9.0}", p50 - bare);
    }
}

fn start(layers: Layers) -> BareZygote {
    let on: Vec<&str> = Layer::ALL.into_iter().filter(|layer| layers.has(*layer)).map(Layer::name).collect();
    BareZygote::start(&native_worker(), &["--layers", &on.join(",")], None)
}

/// Sorts the times and returns their median and 95th percentile, in microseconds.
fn percentiles(times: &mut [Duration]) -> (f64, f64) {
    times.sort();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e6;
    (at(50), at(95))
}
