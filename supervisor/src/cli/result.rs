//! `lockhouse result`: prints a stored result of `lockhouse run`, or writes a returned file into a folder.

mod stored_file;

use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_base::json;
use lockhouse_messages::Owner;
use lockhouse_protocol::ResultHandle;
use lockhouse_protocol::json_text::quote_large_integers;
use lockhouse_stores::results::{ResultLimits, Results, page};

use super::id_prefix::{Match, find_by_prefix, list_candidates};
use super::output_folder::OutputFolder;
use super::terminal::for_stdout;
use super::{USAGE, print_config_error, print_error};
use lockhouse_config::{self as config, Files};

/// Options of `lockhouse result`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The handle in the `truncated` or `files` field of an answer, or a prefix of it
    handle: String,
    /// Print only a part, starting at this list item or text character
    #[arg(long, value_name = "N")]
    offset: Option<usize>,
    /// Print a part as JSON, as the get_result tool does, with the offset of the next part
    #[arg(long)]
    json: bool,
    /// Write the file with this handle into this folder; it may be a file of a running service
    #[arg(long, value_name = "DIR", conflicts_with_all = ["offset", "json"])]
    out: Option<PathBuf>,
    /// Replace a file in the folder without a question
    #[arg(long, requires = "out")]
    yes: bool,
}

/// Runs `lockhouse result`: prints a stored result or a part of it, or writes a file.
pub(super) async fn result(files: &Files, arguments: &Arguments) -> ExitCode {
    let bounds = match config::load_result_bounds(files) {
        Ok(loaded) => loaded,
        Err(error) => return print_config_error(&error),
    };
    let handle = match ResultHandle::new(arguments.handle.as_str()) {
        Ok(handle) => handle,
        Err(invalid) => return print_error(&invalid, USAGE),
    };
    if let Some(folder) = &arguments.out {
        let folder = OutputFolder::new(folder.clone(), arguments.yes);
        return stored_file::write(bounds, &handle, folder).await;
    }
    let results = open_results(bounds.results);
    let handle = match complete(&results, handle) {
        Ok(handle) => handle,
        Err(status) => return status,
    };
    let json = match results.get(Owner::LOCAL, &handle) {
        Ok(json) => json,
        Err(not_kept) => {
            if let Some(line) = stored_file::describe(bounds, &handle) {
                println!("{}", for_stdout(&line));
                return ExitCode::SUCCESS;
            }
            return print_error(&not_kept, USAGE);
        }
    };
    let json = quote_large_integers(&json);
    if arguments.offset.is_none() && !arguments.json {
        let text = json::decode_string(&json);
        println!("{}", for_stdout(text.as_deref().unwrap_or(&json)));
        return ExitCode::SUCCESS;
    }
    match page(&json, arguments.offset.unwrap_or(0), bounds.part_bytes) {
        Ok(part) if arguments.json => println!("{part:#}"),
        Ok(part) => {
            let text = part["value"].as_str().map_or_else(|| part["value"].to_string(), str::to_owned);
            println!("{}", for_stdout(&text));
        }
        Err(beyond) => return print_error(&beyond, USAGE),
    }
    ExitCode::SUCCESS
}

/// Returns the handle of the only stored result whose handle starts with `typed`. If no handle does, returns `typed`.
fn complete(results: &Results, typed: ResultHandle) -> Result<ResultHandle, ExitCode> {
    match find_by_prefix(&results.handles_in_files(typed.as_str()), typed.as_str(), ToString::to_string) {
        Match::One(handle) => Ok(handle),
        Match::None => Ok(typed),
        Match::Ambiguous(several) => {
            let several: Vec<String> = several.iter().map(ToString::to_string).collect();
            eprintln!(
                "lockhouse: several results match; give more characters of the handle of one: {}",
                list_candidates(&several)
            );
            Err(ExitCode::from(USAGE))
        }
    }
}

/// Opens the stored results of `lockhouse run` and deletes the expired ones. If the state directory is not known,
/// returns an empty store in memory.
pub(super) fn open_results(bounds: ResultLimits) -> Results {
    match lockhouse_base::directories::state() {
        Some(state) => {
            let results = Results::in_directory(state.join("results"), bounds);
            results.remove_expired();
            results
        }
        None => Results::in_memory(bounds),
    }
}
