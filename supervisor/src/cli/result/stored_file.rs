//! Stored files for `lockhouse result`: those of `lockhouse run` from their directory, and those of running services
//! through their control sockets.

mod file_parts;

use std::io::Read;
use std::process::ExitCode;

use lockhouse_base::json::group_thousands;
use lockhouse_messages::Owner;
use lockhouse_protocol::ResultHandle;
use lockhouse_stores::result_files::{ResultFiles, StoredFile};

use super::super::id_prefix::{Match, find_by_prefix, list_candidates};
use super::super::output_folder::OutputFolder;
use super::super::terminal::for_stderr;
use super::super::{USAGE, print_error};
use file_parts::FileParts;
use lockhouse_config::ResultBounds;

/// A stored file, with its content.
struct Found {
    name: String,
    content: Box<dyn Read + Send>,
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
    // The content of a file of a service comes over a connection that this thread serves.
    let writing = tokio::task::spawn_blocking(move || folder.write(&name, &mut content));
    match writing.await {
        Ok(Ok(path)) => {
            println!("{}", path.display());
            ExitCode::SUCCESS
        }
        Ok(Err(error)) => {
            eprintln!("lockhouse: {}", for_stderr(&error.to_string()));
            ExitCode::FAILURE
        }
        Err(error) => print_error(&error, 1),
    }
}

async fn find(bounds: ResultBounds, handle: &ResultHandle) -> Result<Option<Found>, ExitCode> {
    let store = open_store(bounds);
    let candidates = store.with_prefix(handle.as_str());
    match find_by_prefix(&candidates, handle.as_str(), |file| file.handle.to_string()) {
        Match::One(file) => {
            let opened = store.open(Owner::LOCAL, &file.handle);
            Ok(opened.map(|(file, content)| Found { name: file.name, content: Box::new(content) }))
        }
        Match::Ambiguous(several) => {
            let several: Vec<String> = several.iter().map(|file| file.handle.to_string()).collect();
            let candidates = list_candidates(&several);
            eprintln!(
                "lockhouse: several files match; give more characters of the handle of one: {candidates}"
            );
            Err(ExitCode::from(USAGE))
        }
        Match::None => {
            let found = FileParts::find(handle).await;
            Ok(found.map(|(name, content)| Found { name, content: Box::new(content) }))
        }
    }
}

fn open_store(bounds: ResultBounds) -> ResultFiles {
    ResultFiles::of_commands(lockhouse_base::directories::state(), bounds.files)
}
