//! Long runs against one server: hostile programs at their deadlines, very many short ones, and deaths at random.
//!
//! `make endurance` runs them in full, and the black-box tests in small. Both judge counts and what is left behind; a
//! full run judges times and sizes as well.

mod deadlines;
mod hostile;
mod kills;
mod load;
mod progress;
mod remains;
mod report;
mod server;
mod short;
mod wire;
mod zygotes;

pub(crate) use deadlines::deadlines;
pub(crate) use kills::kills;
pub(crate) use report::Report;
pub(crate) use short::short;
