//! A worker process, from the fork until it is sandboxed and code may be sent to it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use lockhouse_protocol::{Action, Conversation, Exit, FrameDecoder, FromWorker, SandboxProfile};
use tokio::sync::oneshot;

use super::cgroup::WorkerGroup;
use super::launch_config::LaunchConfig;
use super::socket::Socket;
use super::worker_process::WorkerProcess;
use super::{PoolError, bounded, seal_verification};

/// Maximum time from the fork of a worker until it reports that it is sandboxed and the supervisor has verified this.
/// Bound: workers and programs.
const SEAL_TIMEOUT: Duration = Duration::from_secs(20);

/// How a worker process ended, and the resources that it used, as reported by its zygote.
#[derive(Clone, Copy, Debug)]
pub struct WorkerExitReport {
    pub exit: Exit,
    pub cpu: Duration,
    pub peak_memory_bytes: u64,
}

/// A forked worker process. The supervisor has not yet verified that the process is in its sandbox.
pub(super) struct UnverifiedWorker {
    pub(super) process: WorkerProcess,
    pub(super) socket: OwnedFd,
    /// Receives the exit report of the worker process from its zygote's task.
    pub(super) exit: oneshot::Receiver<WorkerExitReport>,
}

/// A worker process that is in its sandbox, as verified in `/proc`. Only [`Worker::admit`] creates one.
#[derive(Debug)]
pub struct Worker {
    pub process: WorkerProcess,
    /// The socket over which the supervisor and the worker exchange messages.
    pub socket: Socket,
    /// Splits the bytes from the worker into messages.
    pub decoder: FrameDecoder,
    /// Checks that the protocol permits each message of the worker.
    pub conversation: Conversation,
    /// Receives the exit report of the worker process from its zygote's task.
    pub exit: oneshot::Receiver<WorkerExitReport>,
    /// The memory limit of the worker, in bytes, in addition to the memory that its zygote has mapped.
    pub memory_bytes: u64,
    /// Peak resident memory of the worker, in bytes, at the time when its sandbox was verified. 0 if it could not be
    /// read.
    pub resident_bytes: u64,
    /// The worker's control group, which is removed after the process was killed. `None` if Lockhouse cannot create
    /// control groups on this host.
    group: Option<WorkerGroup>,
}

impl Worker {
    /// Waits until a forked worker reports that it is in its sandbox, verifies this in `/proc`, and moves the worker
    /// into a control group.
    pub(super) async fn admit(
        unverified: UnverifiedWorker,
        launch: &LaunchConfig,
    ) -> Result<Self, PoolError> {
        let sealed =
            tokio::time::timeout(SEAL_TIMEOUT, Self::wait_until_sealed(unverified, &launch.command.profile))
                .await;
        let mut worker =
            sealed.unwrap_or_else(|_| Err(PoolError::Worker("it did not seal itself in time".into())))?;
        if let Ok(groups) = &launch.control_groups {
            let group = groups.admit(worker.process.pid(), launch.command.profile.memory_bytes);
            worker.group =
                Some(group.map_err(|reason| PoolError::Worker(format!("its control group: {reason}")))?);
        }
        Ok(worker)
    }

    /// Whether the kernel killed the worker because its control group exceeded the group's memory limit. `false` for a
    /// worker without a control group.
    pub fn was_out_of_memory(&self) -> bool {
        self.group.as_ref().is_some_and(WorkerGroup::was_out_of_memory)
    }

    async fn wait_until_sealed(
        unverified: UnverifiedWorker,
        profile: &SandboxProfile,
    ) -> Result<Self, PoolError> {
        let UnverifiedWorker { process, socket, exit } = unverified;
        let socket =
            Socket::new(socket).map_err(|error| PoolError::Worker(format!("its channel: {error}")))?;
        let decoder = FrameDecoder::new(profile.limits.frame_bytes);
        let conversation = Conversation::new(profile.limits);
        let memory_bytes = profile.memory_bytes;
        let mut worker = Self {
            process,
            socket,
            decoder,
            conversation,
            exit,
            memory_bytes,
            resident_bytes: 0,
            group: None,
        };
        match worker.first_message().await? {
            Action::Verify => {}
            Action::SealFailed(reason) => return Err(PoolError::Worker(bounded(&reason))),
            _ => return Err(PoolError::Worker("it broke the protocol".into())),
        }
        worker.resident_bytes = seal_verification::verify(&worker.process)?;
        Ok(worker)
    }

    async fn first_message(&mut self) -> Result<Action, PoolError> {
        loop {
            if let Some(message) = self.decoder.next::<FromWorker>().map_err(violation)? {
                return self.conversation.receive(message).map_err(violation);
            }
            match self.socket.read(self.decoder.space()).await {
                Ok(count @ 1..) => self.decoder.received(count),
                _ => return Err(PoolError::Worker(self.exit_reason().await)),
            }
        }
    }

    async fn exit_reason(&mut self) -> String {
        match (&mut self.exit).await {
            Ok(WorkerExitReport { exit: Exit::Signal(signal), .. }) => {
                format!("it was ended by signal {signal} while it sealed itself")
            }
            Ok(WorkerExitReport { exit: Exit::Status(status), .. }) => {
                format!("it ended with status {status} while it sealed itself")
            }
            Err(_) => "it ended with its zygote".into(),
        }
    }
}

fn violation(error: impl std::fmt::Display) -> PoolError {
    PoolError::Worker(format!("it broke the protocol: {error}"))
}
