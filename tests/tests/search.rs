//! Tool search: its quality with the tools of real servers, and the share of one large server in the results.

mod detail;
mod limits;
mod quality;
mod result_shapes;
