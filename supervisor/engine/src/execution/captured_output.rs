//! Captures the standard output and standard error of submitted code.

use lockhouse_protocol::Stream;
use tokio::sync::mpsc;

/// A part of the output of a run, as its program has printed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPart {
    pub stream: Stream,
    pub text: String,
}

/// Receives each part of the output of a run while the run continues. The parts are exactly the output in the answer.
/// The channel closes when the run has ended.
pub type OutputFollower = mpsc::UnboundedSender<OutputPart>;

/// The captured stdout and stderr of a run. Their total size is limited when the worker's messages are checked.
#[derive(Debug, Default)]
pub(super) struct CapturedOutput {
    pub(super) stdout: String,
    pub(super) stderr: String,
    follower: Option<OutputFollower>,
}

impl CapturedOutput {
    /// Captures the output of a run, and sends it to `follower` as well.
    pub(super) fn with_follower(follower: Option<OutputFollower>) -> Self {
        Self { follower, ..Self::default() }
    }

    pub(super) fn append(&mut self, stream: Stream, text: String) {
        match stream {
            Stream::Stdout => self.stdout.push_str(&text),
            Stream::Stderr => self.stderr.push_str(&text),
        }
        if let Some(follower) = &self.follower {
            // A follower that no longer receives needs no more output.
            let _ = follower.send(OutputPart { stream, text });
        }
    }

    /// Returns at most the last `bytes_max` bytes of stdout, starting at a character boundary.
    pub(super) fn tail(&self, bytes_max: usize) -> &str {
        let from = self.stdout.len().saturating_sub(bytes_max);
        &self.stdout[self.stdout.ceil_char_boundary(from)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_contains_whole_characters() {
        let (follower, mut followed) = mpsc::unbounded_channel();
        let mut output = CapturedOutput::with_follower(Some(follower));
        for (stream, text) in [(Stream::Stdout, "aé"), (Stream::Stderr, "!"), (Stream::Stdout, "b")] {
            output.append(stream, text.to_owned());
            let part = OutputPart { stream, text: text.to_owned() };
            assert_eq!(followed.try_recv().ok(), Some(part));
        }
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("aéb", "!"));
        for (bytes_max, tail) in [(0, ""), (1, "b"), (2, "b"), (3, "éb"), (4, "aéb"), (100, "aéb")] {
            assert_eq!(output.tail(bytes_max), tail, "{bytes_max}");
        }
    }
}
