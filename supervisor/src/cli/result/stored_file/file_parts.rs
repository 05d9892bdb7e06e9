//! The content of a file that a running Lockhouse process has stored. Another account may own that file, as with the engine of
//! the system, so the process sends the content over its control socket, a part at a time.

use std::io::{Error, Read, Result};

use lockhouse_messages::{OperatorRequest, OperatorResponse};
use lockhouse_protocol::ResultHandle;
use tokio::runtime::Handle;

use super::super::super::control_client::{request_all, request_one};

/// A file of a process. Reading it blocks until the process has answered, so it needs a thread of its own.
pub(super) struct FileParts {
    /// The id of the process.
    process: u32,
    handle: ResultHandle,
    /// The part that is being read.
    part: Vec<u8>,
    /// The bytes of `part` that were read.
    read_bytes: usize,
    /// Where the next part begins. `None` after the last part.
    next: Option<u64>,
    runtime: Handle,
}

impl FileParts {
    /// Asks every Lockhouse process that this user may ask for a file, and returns the first one with its name. The handle must
    /// be complete.
    pub(super) async fn find(handle: &ResultHandle) -> Option<(String, Self)> {
        let request = OperatorRequest::ReadFile { handle: handle.clone(), offset: 0 };
        for (process, answer) in request_all(&request).await {
            let OperatorResponse::FilePart { name, content, is_last } = answer else { continue };
            let (handle, runtime) = (handle.clone(), Handle::current());
            let next = (!is_last).then_some(content.len() as u64);
            return Some((name, Self { process, handle, part: content, read_bytes: 0, next, runtime }));
        }
        None
    }

    /// Requests the part that begins at this byte.
    fn request(&mut self, offset: u64) -> Result<()> {
        let request = OperatorRequest::ReadFile { handle: self.handle.clone(), offset };
        let (content, is_last) = match self.runtime.block_on(request_one(self.process, &request)) {
            Ok(OperatorResponse::FilePart { content, is_last, .. }) if is_last || !content.is_empty() => {
                (content, is_last)
            }
            Ok(OperatorResponse::Refused { reason }) => return Err(Error::other(reason)),
            _ => return Err(Error::other("the Lockhouse process did not return the rest of the file")),
        };
        self.next = (!is_last).then_some(offset.saturating_add(content.len() as u64));
        (self.part, self.read_bytes) = (content, 0);
        Ok(())
    }
}

impl Read for FileParts {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.read_bytes == self.part.len()
            && let Some(offset) = self.next
        {
            self.request(offset)?;
        }
        let count = (&self.part[self.read_bytes..]).read(buffer)?;
        self.read_bytes += count;
        Ok(count)
    }
}
