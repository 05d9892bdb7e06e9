//! Long runs against one server: hostile programs at their deadlines, very many short ones, and deaths at random.
//!
//! `make endurance` runs them in full, and the black-box tests in small. Both are sure of counts and of what is left
//! behind; a full run also judges times.

mod deadlines;
mod hostile;
mod kills;
mod load;
mod progress;
mod remains;
mod report;
mod server;
mod short;

pub(crate) use deadlines::deadlines;
pub(crate) use kills::kills;
pub(crate) use report::Report;
pub(crate) use short::short;
