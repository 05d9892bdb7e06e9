//! Uses the files of the built-in server `files`: in this process, or by a helper in the session of a person.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_host_files::{
    Access, FileCall, HostFileSettings, HostFiles, PathRefusal, Resolution, StagedContent, UnusablePath,
    file_failure, perform, resolve_paths, write_staged,
};
use lockhouse_policies::ResolvedPaths;
use lockhouse_protocol::{Failure, FailureCode, Reply};
use lockhouse_stores::result_files::ResultFiles;
use lockhouse_upstream::Launchers;

use super::failures::file_system_too_slow;
use super::file_helper::FileHelper;
use super::schema::{BlockingSlot, run_blocking};

/// Maximum time for resolving the path of a call, since a file system may be remote or may hang.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for resolving the symbolic links of a call's paths.
/// Bound: calls and arguments.
const LINKS_TIMEOUT: Duration = Duration::from_secs(2);

/// The built-in server `files`, and who uses its files. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct FileAccess {
    files: HostFiles,
    /// `None` if this process uses the files.
    helper: Option<FileHelper>,
    result_bytes_max: usize,
}

/// The path of a call, and what is there.
pub(super) struct ResolvedFile {
    /// The path as written, with the home directory in place of `~`.
    pub(super) written: String,
    /// The path without symbolic links.
    pub(super) target: String,
    /// Describes the file that the call replaces, if it writes and there is one.
    pub(super) replaces: Option<String>,
}

/// Why the path of a call is not resolved.
pub(super) enum ResolveError {
    Unusable(UnusablePath),
    Failed(Failure),
}

impl From<PathRefusal> for ResolveError {
    fn from(refusal: PathRefusal) -> Self {
        Self::Unusable(refusal.into())
    }
}

impl FileAccess {
    /// `result_bytes_max` is the maximum size of the result of a call.
    pub(super) fn new(settings: HostFileSettings, launchers: &Launchers, result_bytes_max: usize) -> Self {
        let helper =
            settings.is_in_session.then(|| FileHelper::new(&settings, launchers.clone(), result_bytes_max));
        Self { files: HostFiles::new(settings), helper, result_bytes_max }
    }

    /// Returns the server with another configuration, as [`HostFiles::reconfigured`] does.
    pub(super) fn reconfigured(&self, settings: HostFileSettings) -> Self {
        let helper = self.helper.as_ref().map(|helper| helper.reconfigured(&settings));
        Self { files: self.files.reconfigured(settings), helper, ..self.clone() }
    }

    /// Makes this configuration the one that the administrator requires, as [`HostFiles::require`] does.
    pub(super) fn require(&self) {
        self.files.require();
    }

    pub(super) fn settings(&self) -> &HostFileSettings {
        self.files.settings()
    }

    pub(super) fn server(&self) -> &HostFiles {
        &self.files
    }

    /// Finds the target of the path of a call.
    pub(super) async fn resolve(
        &self,
        slot: &BlockingSlot,
        access: Access,
        path: String,
    ) -> Result<ResolvedFile, ResolveError> {
        let written = self.files.written(access, &path)?;
        let resolved = match &self.helper {
            Some(helper) => {
                helper.resolve(RESOLVE_TIMEOUT, access, path).await.map_err(ResolveError::Failed)?
            }
            None => {
                let files = self.files.clone();
                let resolved =
                    run_blocking(slot, RESOLVE_TIMEOUT, move || files.resolution(access, &path)).await;
                resolved.ok_or_else(|| ResolveError::Failed(file_system_too_slow()))?
            }
        };
        let Resolution { target, replaces } = resolved.map_err(ResolveError::Unusable)?;
        Ok(ResolvedFile { written, target, replaces })
    }

    /// Resolves the symbolic links of paths in the arguments of a call. The result omits paths that cannot be resolved.
    /// `is_of_person` says whether the paths are those of the person whom the engine of the system serves.
    pub(super) async fn resolve_links(
        &self,
        slot: &BlockingSlot,
        paths: Vec<String>,
        is_of_person: bool,
    ) -> ResolvedPaths {
        if paths.is_empty() {
            return ResolvedPaths::new();
        }
        match self.helper.as_ref().filter(|_| is_of_person) {
            Some(helper) => helper.resolve_links(LINKS_TIMEOUT, paths).await,
            None => run_blocking(slot, LINKS_TIMEOUT, move || resolve_paths(paths)).await.unwrap_or_default(),
        }
    }

    /// Opens the file at a path without symbolic links to read it, and returns it with its size. The helper sends its content
    /// into a file without a name of `store`.
    pub(super) async fn open(
        &self,
        slot: &BlockingSlot,
        patience: Duration,
        path: String,
        store: &ResultFiles,
    ) -> Result<(File, u64), Failure> {
        if let Some(helper) = &self.helper {
            let store = store.clone();
            let file = run_blocking(slot, patience, move || store.unnamed_file())
                .await
                .ok_or_else(file_system_too_slow)?;
            let file = file.map_err(|error| Failure::new(FailureCode::ToolFailed, error.to_string()))?;
            return helper.read(patience, path, file).await;
        }
        let files = self.files.clone();
        let open = move || files.open_file(Path::new(&path)).map_err(|error| file_failure(&path, &error));
        run_blocking(slot, patience, open).await.unwrap_or_else(|| Err(file_system_too_slow()))
    }

    /// Makes a call with a path without symbolic links, as [`perform`] does.
    pub(super) async fn perform(
        &self,
        slot: &BlockingSlot,
        patience: Duration,
        call: FileCall,
        path: String,
    ) -> Reply {
        if let Some(helper) = &self.helper {
            return helper.perform(patience, call, path).await;
        }
        let (files, bytes_max) = (self.files.clone(), self.result_bytes_max);
        let performed = run_blocking(slot, patience, move || perform(&files, call, &path, bytes_max)).await;
        performed.unwrap_or_else(|| Err(file_system_too_slow()))
    }

    /// Writes a file whose content has arrived, as [`write_staged`] does.
    pub(super) async fn write(
        &self,
        slot: &BlockingSlot,
        patience: Duration,
        path: String,
        content: Arc<StagedContent>,
        replaces: Option<String>,
    ) -> Reply {
        if let Some(helper) = &self.helper {
            return helper.write(patience, path, content, replaces).await;
        }
        let files = self.files.clone();
        let write = move || write_staged(&files, &content, &path, replaces.as_deref());
        run_blocking(slot, patience, write).await.unwrap_or_else(|| Err(file_system_too_slow()))
    }
}
