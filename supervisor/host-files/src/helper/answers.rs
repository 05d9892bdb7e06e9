//! The helper's side: answers requests one after the other, until the engine closes the connection.

use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use lockhouse_base::own_places::OwnPlaces;
use lockhouse_protocol::frame::{self, FrameDecoder};
use lockhouse_protocol::{Failure, FailureCode};

use super::messages::{FileAnswer, FileRequest};
use crate::HostFiles;
use crate::file_calls::{file_failure, perform, write_pieces};
use crate::file_error::FileError;
use crate::staged_file::PIECE_BYTES_MAX;
use crate::symlinks::resolve_paths;

/// Answers the requests of the engine that arrive at `input`, with the rights of this process. `own` are places that no
/// request reaches. Returns when the engine closes the connection. Blocks.
///
/// # Errors
/// The engine has ended, or does not keep to the protocol.
pub fn answer_requests(input: impl Read, output: impl Write, own: OwnPlaces) -> io::Result<()> {
    let mut connection = Connection { input, output, decoder: FrameDecoder::new(u32::MAX) };
    let Some(request) = connection.receive()? else { return Ok(()) };
    let FileRequest::Begin(settings) = request else { return Err(ErrorKind::InvalidData.into()) };
    let files = HostFiles::new(settings.into_settings(own).map_err(io::Error::other)?);
    connection.send(&FileAnswer::Begun)?;
    while let Some(request) = connection.receive()? {
        connection.answer(&files, request)?;
    }
    Ok(())
}

struct Connection<I, O> {
    input: I,
    output: O,
    decoder: FrameDecoder,
}

impl<I: Read, O: Write> Connection<I, O> {
    /// Receives the next request. `None` if the engine has closed the connection.
    fn receive(&mut self) -> io::Result<Option<FileRequest>> {
        loop {
            if let Some(request) = self.decoder.next().map_err(io::Error::other)? {
                return Ok(Some(request));
            }
            match self.input.read(self.decoder.space()) {
                Ok(0) => return Ok(None),
                Ok(count) => self.decoder.received(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn send(&mut self, answer: &FileAnswer) -> io::Result<()> {
        self.output.write_all(&frame::encode(answer, u32::MAX).map_err(io::Error::other)?)?;
        self.output.flush()
    }

    fn answer(&mut self, files: &HostFiles, request: FileRequest) -> io::Result<()> {
        let performed = match request {
            FileRequest::Resolve { access, path } => {
                return self.send(&FileAnswer::Resolved(files.resolution(access, &path)));
            }
            FileRequest::ResolveLinks(paths) => return self.send(&FileAnswer::Links(resolve_paths(paths))),
            FileRequest::Read { path } => return self.send_content(files, &path),
            FileRequest::Perform { call, path, bytes_max } => perform(files, call, &path, bytes_max as usize),
            FileRequest::Write { path, replaces, bytes } => {
                self.receive_content(files, &path, replaces.as_deref(), bytes)?
            }
            FileRequest::Begin(_) | FileRequest::Piece(_) => return Err(ErrorKind::InvalidData.into()),
        };
        self.send(&performed.map_or_else(FileAnswer::Failed, FileAnswer::Performed))
    }

    fn send_content(&mut self, files: &HostFiles, path: &str) -> io::Result<()> {
        let opened = files.open_file(Path::new(path));
        let (file, bytes) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.send(&FileAnswer::Failed(file_failure(path, &error))),
        };
        self.send(&FileAnswer::Content { bytes })?;
        let mut left = bytes;
        while left > 0 {
            let mut piece = Vec::new();
            let most = left.min(PIECE_BYTES_MAX as u64);
            if let Err(error) = (&file).take(most).read_to_end(&mut piece) {
                return self.send(&FileAnswer::Failed(file_failure(path, &error.into())));
            }
            if piece.is_empty() {
                let message = format!("{path}: the file became shorter while it was read");
                return self.send(&FileAnswer::Failed(Failure::new(FailureCode::ToolFailed, message)));
            }
            left -= piece.len() as u64;
            self.send(&FileAnswer::Piece(piece))?;
        }
        Ok(())
    }

    /// Writes a file from the pieces that arrive. After an error of the file, receives the rest and ignores it.
    fn receive_content(
        &mut self,
        files: &HostFiles,
        path: &str,
        replaces: Option<&str>,
        bytes: u64,
    ) -> io::Result<Result<Vec<u8>, Failure>> {
        let (mut left, mut lost) = (bytes, None);
        let mut next = || {
            if left == 0 || lost.is_some() {
                return None;
            }
            match self.receive() {
                Ok(Some(FileRequest::Piece(piece))) if !piece.is_empty() && piece.len() as u64 <= left => {
                    left -= piece.len() as u64;
                    Some(Ok(piece))
                }
                Ok(_) => {
                    lost = Some(ErrorKind::InvalidData.into());
                    Some(Err(FileError::Other(ErrorKind::InvalidData.into())))
                }
                Err(error) => {
                    lost = Some(error);
                    Some(Err(FileError::Other(ErrorKind::BrokenPipe.into())))
                }
            }
        };
        let written = write_pieces(files, std::iter::from_fn(&mut next), path, replaces);
        while next().is_some() {}
        lost.map_or(Ok(written), Err)
    }
}
