//! What the benchmarks of single crates share: they measure how long one call of a function takes. It is little more than a loop around a clock, so
//! that benchmarks need no library.

use std::time::{Duration, Instant};

const SAMPLES: usize = 200;
/// The time that one sample takes at least. The clock is a small part of it.
const SAMPLE: Duration = Duration::from_millis(2);

pub(crate) fn print_header() {
    println!("{:<60} {:>10} {:>10}", "microseconds for one call", "median", "p99");
}

/// Calls the function in samples of many calls, and prints the median and the 99th percentile of the time for one call.
pub(crate) fn measure<T>(name: &str, mut call: impl FnMut() -> T) {
    let mut time = |calls: u32| {
        let started = Instant::now();
        (0..calls).for_each(|_| drop(std::hint::black_box(call())));
        started.elapsed()
    };
    let mut calls = 1;
    while time(calls) < SAMPLE {
        calls *= 2;
    }
    let mut samples: Vec<_> =
        (0..SAMPLES).map(|_| time(calls).as_secs_f64() * 1e6 / f64::from(calls)).collect();
    samples.sort_by(f64::total_cmp);
    println!("{name:<60} {:>10.3} {:>10.3}", samples[SAMPLES / 2], samples[SAMPLES * 99 / 100]);
}
