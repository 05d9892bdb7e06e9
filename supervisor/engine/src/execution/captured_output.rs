//! Captures the standard output and standard error of submitted code.

use lockhouse_protocol::Stream;

/// The captured stdout and stderr of a run. Their total size is limited when the worker's messages are checked.
#[derive(Debug, Default)]
pub(super) struct CapturedOutput {
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl CapturedOutput {
    pub(super) fn append(&mut self, stream: Stream, text: &str) {
        match stream {
            Stream::Stdout => self.stdout.push_str(text),
            Stream::Stderr => self.stderr.push_str(text),
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
        let mut output = CapturedOutput::default();
        for (stream, text) in [(Stream::Stdout, "aé"), (Stream::Stderr, "!"), (Stream::Stdout, "b")] {
            output.append(stream, text);
        }
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("aéb", "!"));
        for (bytes_max, tail) in [(0, ""), (1, "b"), (2, "b"), (3, "éb"), (4, "aéb"), (100, "aéb")] {
            assert_eq!(output.tail(bytes_max), tail, "{bytes_max}");
        }
    }
}
