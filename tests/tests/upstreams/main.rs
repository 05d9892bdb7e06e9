//! Upstream servers over time: started, lost, changed, flooded and stopped, and what the code that uses them sees.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod catalogue;
mod faults;
mod floods;
mod hidden;
mod pins;
mod reconnects;
mod reload;
mod scripted;
mod starts;
mod turns;
mod unsent;
