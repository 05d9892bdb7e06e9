//! The endurance suites, long runs against one server: hostile programs at their deadlines, many short
//! programs, and random kills.
//!
//! `make endurance` runs the suites in full, and the black-box tests run them with small counts. Full and
//! short runs check counts and the resources left behind; only a full run checks times and sizes as well.

mod answer_count;
mod deadlines;
mod hostile_programs;
mod leftover_resources;
mod load_client;
mod progress;
mod random_kills;
mod report;
mod server;
mod short_programs;
mod zygotes;

pub(crate) use deadlines::deadlines;
pub(crate) use random_kills::kills;
pub(crate) use report::Report;
pub(crate) use short_programs::short;
