//! The findings of an endurance suite: figures, and promises that were kept or broken.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

/// Whether a promise that an endurance suite checks is about a count or about a measure. A count is the same
/// in every correct run. A measure (time, size, files in a shared directory) depends on the machine and its
/// load.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Count,
    Measure,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Measure => "measure",
        }
    }
}

#[derive(Debug)]
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    /// A remark that the printed report shows beside the figure; empty if there is none.
    remark: String,
}

#[derive(Debug)]
struct Promise {
    name: String,
    kind: Kind,
    outcome: Result<(), String>,
}

/// The findings of one endurance suite.
#[derive(Debug)]
pub(crate) struct Report {
    title: String,
    figures: Vec<Figure>,
    promises: Vec<Promise>,
}

impl Report {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), figures: Vec::new(), promises: Vec::new() }
    }

    pub(crate) fn figure(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        self.remarked(name, value, unit, String::new());
    }

    pub(crate) fn remarked(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        remark: String,
    ) {
        self.figures.push(Figure { name: name.into(), value, unit, remark });
    }

    /// Adds the median, the 99th percentile and the maximum of these times, in ms, to the report as figures of `name`,
    /// and returns them in that order.
    pub(crate) fn times(&mut self, name: &str, mut times: Vec<f64>) -> [f64; 3] {
        times.sort_by(f64::total_cmp);
        // The nearest rank: with fewer than a hundred values the p99 is the largest.
        let rank = |percent: usize| (times.len() * percent).div_ceil(100).saturating_sub(1);
        let at = |percent: usize| times.get(rank(percent)).copied().unwrap_or_default();
        let found = [at(50), at(99), at(100)];
        for (which, value) in ["p50", "p99", "max"].into_iter().zip(found) {
            self.remarked(format!("{name}: {which}"), value, "ms", format!("of {}", times.len()));
        }
        found
    }

    pub(crate) fn promise(&mut self, kind: Kind, name: impl Into<String>, outcome: Result<(), String>) {
        self.promises.push(Promise { name: name.into(), kind, outcome });
    }

    /// Returns the figures and promises as JSON. Each promise has its kind, `count` or `measure`, whether it was kept,
    /// and the error if it was broken.
    pub(crate) fn to_json(&self) -> Value {
        let figures = self.figures.iter().map(|figure| {
            json!({"name": figure.name, "value": figure.value, "unit": figure.unit, "remark": figure.remark})
        });
        let promises = self.promises.iter().map(|promise| {
            let found = promise.outcome.as_ref().err();
            let kind = promise.kind.as_str();
            json!({"name": promise.name, "kind": kind, "kept": promise.outcome.is_ok(), "found": found})
        });
        json!({
            "suite": self.title,
            "figures": figures.collect::<Value>(),
            "promises": promises.collect::<Value>(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.figures.iter().map(|figure| figure.name.chars().count());
        let width = names.max().unwrap_or(0);
        writeln!(out, "{}", self.title)?;
        for Figure { name, value, unit, remark } in &self.figures {
            let line = format!("  {name:width$}  {value:>10.1} {unit:5}  {remark}");
            writeln!(out, "{}", line.trim_end())?;
        }
        for Promise { name, outcome, .. } in &self.promises {
            match outcome {
                Ok(()) => writeln!(out, "  kept    {name}")?,
                Err(found) => writeln!(out, "  BROKEN  {name}: {found}")?,
            }
        }
        Ok(())
    }
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
