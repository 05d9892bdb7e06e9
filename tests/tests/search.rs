//! Tests of tool search: how well it finds the tools of real servers, and how much of the results one large server may
//! fill.

mod detail;
mod limits;
mod quality;
mod result_shapes;
