//! Stored files for `lockhouse result`: those of `lockhouse run` from their directory, and those of running services
//! through their control sockets.

use std::fs::File;
use std::process::ExitCode;

use lockhouse_base::files;
use lockhouse_base::json::group_thousands;
use lockhouse_messages::{FileLocation, OperatorRequest, OperatorResponse, Owner};
use lockhouse_protocol::ResultHandle;
use lockhouse_stores::result_files::{ResultFiles, StoredFile};

use super::super::control_client;
use super::super::id_prefix::{Match, find_by_prefix, list_candidates};
use super::super::output_folder::OutputFolder;
use super::super::terminal::for_stderr;
use super::super::{USAGE, print_error};
use lockhouse_config::ResultBounds;

/// A stored file, with its content.
struct Found {
    name: String,
    content: File,
}

/// Returns a sentence about the stored file of `lockhouse run` whose handle is, or starts with, `handle`.
pub(super) fn describe(bounds: ResultBounds, handle: &ResultHandle) -> Option<String> {
    let found = open_store(bounds).with_prefix(handle.as_str());
    let [StoredFile { handle, name, media_type, bytes }] = found.as_slice() else { return None };
    let size = group_thousands(usize::try_from(*bytes).unwrap_or(usize::MAX));
    Some(format!(
        "{handle} is the file {name} ({media_type}, {size} bytes): `lockhouse result {handle} --out DIR` writes it"
    ))
}

/// Writes the file whose handle is, or starts with, `handle` into the folder.
pub(super) async fn write(bounds: ResultBounds, handle: &ResultHandle, mut folder: OutputFolder) -> ExitCode {
    let found = match find(bounds, handle).await {
        Ok(Some(found)) => found,
        Ok(None) => {
            eprintln!(
                "lockhouse: there is no file {handle}, neither of `lockhouse run` nor of a running service; files are kept \
                 for {} s or until newer ones need their space",
                bounds.files.lifetime.as_secs()
            );
            return ExitCode::from(USAGE);
        }
        Err(status) => return status,
    };
    let Found { name, mut content } = found;
    match folder.write(&name, &mut content) {
        Ok(path) => {
            println!("{}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("lockhouse: {}", for_stderr(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

async fn find(bounds: ResultBounds, handle: &ResultHandle) -> Result<Option<Found>, ExitCode> {
    let store = open_store(bounds);
    let candidates = store.with_prefix(handle.as_str());
    match find_by_prefix(&candidates, handle.as_str(), |file| file.handle.to_string()) {
        Match::One(file) => {
            let opened = store.open(Owner::LOCAL, &file.handle);
            Ok(opened.map(|(file, content)| Found { name: file.name, content }))
        }
        Match::Ambiguous(several) => {
            let several: Vec<String> = several.iter().map(|file| file.handle.to_string()).collect();
            let candidates = list_candidates(&several);
            eprintln!(
                "lockhouse: several files match; give more characters of the handle of one: {candidates}"
            );
            Err(ExitCode::from(USAGE))
        }
        Match::None => find_in_services(handle).await,
    }
}

/// Asks every running Lockhouse process of this user for the file. The handle must be complete.
async fn find_in_services(handle: &ResultHandle) -> Result<Option<Found>, ExitCode> {
    for (_, answer) in control_client::request_all(&OperatorRequest::FindFile(handle.clone())).await {
        let OperatorResponse::File(FileLocation { name, path }) = answer else { continue };
        let content = files::open_to_read(&path).map_err(|error| print_error(&error, USAGE))?;
        return Ok(Some(Found { name, content }));
    }
    Ok(None)
}

fn open_store(bounds: ResultBounds) -> ResultFiles {
    ResultFiles::of_commands(lockhouse_base::directories::state(), bounds.files)
}
