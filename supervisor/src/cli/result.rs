//! `lockhouse result`

use std::process::ExitCode;

use lockhouse_base::json;
use lockhouse_base::principal::Owner;
use lockhouse_gate::results::{Bounds, Results, part};
use lockhouse_protocol::ResultHandle;

use super::terminal::for_stdout;
use super::{USAGE, complain, complain_config};
use crate::config::{self, Files};

/// What to print.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// As `truncated` names it in an answer of `lockhouse run --json`
    handle: String,
    /// Only a part, from this item of a list or character of a text
    #[arg(long, value_name = "N")]
    offset: Option<usize>,
    /// Print a part as get_result gives it, with what comes next
    #[arg(long)]
    json: bool,
}

/// Prints a result that is kept.
pub(super) fn result(files: &Files, arguments: &Arguments) -> ExitCode {
    let (bounds, limit) = match config::load_result_bounds(files) {
        Ok(loaded) => loaded,
        Err(error) => return complain_config(&error),
    };
    let handle = match ResultHandle::new(arguments.handle.as_str()) {
        Ok(handle) => handle,
        Err(invalid) => return complain(&invalid, USAGE),
    };
    let json = match kept(bounds).get(Owner::LOCAL, &handle) {
        Ok(json) => json,
        Err(not_kept) => return complain(&not_kept, USAGE),
    };
    if arguments.offset.is_none() && !arguments.json {
        let text = json::text_of(&json);
        println!("{}", for_stdout(text.as_deref().unwrap_or(&json)));
        return ExitCode::SUCCESS;
    }
    match part(&json, arguments.offset.unwrap_or(0), limit) {
        Ok(part) if arguments.json => println!("{part:#}"),
        Ok(part) => {
            let text = part["value"].as_str().map_or_else(|| part["value"].to_string(), str::to_owned);
            println!("{}", for_stdout(&text));
        }
        Err(beyond) => return complain(&beyond, USAGE),
    }
    ExitCode::SUCCESS
}

/// The results of `lockhouse run`, without those whose time is over.
pub(super) fn kept(bounds: Bounds) -> Results {
    match lockhouse_base::directories::state() {
        Some(state) => {
            let results = Results::in_directory(state.join("results"), bounds);
            results.tidy();
            results
        }
        None => Results::in_memory(bounds),
    }
}
