//! Finding tools: quality among the tools of real servers, and what a large server leaves for others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod detail;
mod limits;
mod quality;
mod shapes;
