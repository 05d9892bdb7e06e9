//! One worker, from its birth in the zygote to the state in which code may be sent to it.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use lockhouse_protocol::{Action, Conversation, ConversationLimits, Exit, FrameDecoder, FromWorker};
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;

use super::cgroup::WorkerGroup;
use super::launch::Launch;
use super::process::WorkerProcess;
use super::{PoolError, bounded, seal};

const SEAL_TIMEOUT: Duration = Duration::from_secs(20);
const READ_BYTES: usize = 64 * 1024;

/// How a worker ended, and what it had used by then.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    pub exit: Exit,
    pub cpu: Duration,
    pub peak_memory_bytes: u64,
}

/// What the zygote hands over.
pub(super) struct Newborn {
    pub(super) process: WorkerProcess,
    pub(super) socket: OwnedFd,
    pub(super) exit: oneshot::Receiver<Death>,
}

/// A worker whose seal the kernel has confirmed. Only [`Worker::admit`] makes one.
#[derive(Debug)]
pub struct Worker {
    pub process: WorkerProcess,
    /// Its channel. Reading and writing go on independently.
    pub stream: Stream,
    pub decoder: FrameDecoder,
    pub conversation: Conversation,
    pub exit: oneshot::Receiver<Death>,
    /// What it held when it was sealed, bytes.
    pub resident_bytes: u64,
    /// Removed after the process is killed.
    group: Option<WorkerGroup>,
}

impl Worker {
    /// Waits until a newborn says that it is sealed, checks that it is, and bounds it from outside.
    pub(super) async fn admit(newborn: Newborn, launch: &Launch) -> Result<Self, PoolError> {
        let sealed =
            tokio::time::timeout(SEAL_TIMEOUT, Self::sealed(newborn, launch.command.profile.limits)).await;
        let mut worker =
            sealed.unwrap_or_else(|_| Err(PoolError::Worker("it did not seal itself in time".into())))?;
        if let Ok(groups) = &launch.control_groups {
            let group = groups.admit(worker.process.pid(), launch.command.profile.memory_bytes);
            worker.group =
                Some(group.map_err(|reason| PoolError::Worker(format!("its control group: {reason}")))?);
        }
        Ok(worker)
    }

    /// The descriptor of its channel.
    pub fn descriptor(&self) -> RawFd {
        let Stream::UdSocket(stream) = &self.stream;
        stream.as_fd().as_raw_fd()
    }

    /// Whether the kernel ended it at its control group's bound.
    pub fn was_out_of_memory(&self) -> bool {
        self.group.as_ref().is_some_and(WorkerGroup::was_out_of_memory)
    }

    async fn sealed(newborn: Newborn, limits: ConversationLimits) -> Result<Self, PoolError> {
        let Newborn { process, socket, exit } = newborn;
        let channel = |error: std::io::Error| PoolError::Worker(format!("its channel: {error}"));
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true).map_err(channel)?;
        let stream = interprocess::os::unix::uds_local_socket::tokio::Stream::try_from(OwnedFd::from(socket));
        let stream = Stream::from(stream.map_err(channel)?);
        let decoder = FrameDecoder::new(limits.frame_bytes);
        let conversation = Conversation::new(limits);
        let mut worker =
            Self { process, stream, decoder, conversation, exit, resident_bytes: 0, group: None };
        match worker.first_message().await? {
            Action::Verify => {}
            Action::GiveUp(reason) => return Err(PoolError::Worker(bounded(&reason))),
            _ => return Err(PoolError::Worker("it broke the protocol".into())),
        }
        seal::verify(&worker.process)?;
        worker.resident_bytes = worker.process.peak_memory_bytes().unwrap_or_default();
        Ok(worker)
    }

    async fn first_message(&mut self) -> Result<Action, PoolError> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            if let Some(message) = self.decoder.next::<FromWorker>().map_err(violation)? {
                return self.conversation.receive(message).map_err(violation);
            }
            match (&self.stream).read(&mut buffer).await {
                Ok(count @ 1..) => self.decoder.push(&buffer[..count]),
                _ => return Err(PoolError::Worker(self.last_words().await)),
            }
        }
    }

    async fn last_words(&mut self) -> String {
        match (&mut self.exit).await {
            Ok(Death { exit: Exit::Signal(signal), .. }) => {
                format!("it was ended by signal {signal} while it sealed itself")
            }
            Ok(Death { exit: Exit::Status(status), .. }) => {
                format!("it ended with status {status} while it sealed itself")
            }
            Err(_) => "it ended together with its zygote".into(),
        }
    }
}

fn violation(error: impl std::fmt::Display) -> PoolError {
    PoolError::Worker(format!("it broke the protocol: {error}"))
}
