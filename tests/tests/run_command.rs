//! Tests of `lockhouse run`, the command that runs one program from a terminal or a script.

mod broken_host;
mod configuration;
mod errors;
mod former_answers;
mod invalid_input;
mod limits;
mod live_output;
mod results;
mod unavailable_features;
