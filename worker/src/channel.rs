//! The worker's end of its socket to the supervisor, shared by all threads of the worker.
//!
//! Any thread may send a request and wait. One of the waiting threads reads the socket for all of them, delivers the
//! replies of other threads and wakes them. No reader thread is needed, so a worker has a single thread until its
//! code starts more.

use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lockhouse_protocol::frame::{self, FrameDecoder};
use lockhouse_protocol::{
    CallId, CodeError, ConversationLimits, Failure, FailureCode, FromWorker, Job, Outcome, Reply, Stream,
    ToWorker, WorkerRequest,
};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::tool_host::{ToolHost, WaitOutcome};

/// Maximum number of bytes in the send buffer after printed output is added; a fuller buffer is sent at once. Any other
/// message that is sent takes the buffered output with it.
const FLUSH_BYTES: usize = 8 * 1024;
/// Size of the token bucket for sending printed output at once, which makes a line visible that is printed before a
/// long computation. Sending costs a system call, so it takes a token; the bucket gains one token per
/// [`IMMEDIATE_FLUSH_INTERVAL`]. Without a token, output stays in the send buffer.
const IMMEDIATE_FLUSHES_MAX: u32 = 16;
const IMMEDIATE_FLUSH_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of bytes in the send buffer after a request is started. A fuller buffer is sent at once, not only
/// when the program waits for a reply.
const OUT_BYTES_MAX: usize = 64 * 1024;
/// Maximum for the sum of two numbers: the requests in the backlog, and the replies that the language engine has not
/// read yet. At this maximum, [`ToolHost::has_room`] returns false. The backlog is the queue of requests that wait
/// because too many are in flight; [`BACKLOG_BYTES_MAX`] limits its size in bytes.
/// Bound: workers and programs.
const BACKLOG_MAX: usize = 10_000;
const BACKLOG_BYTES_MAX: usize = 16 * 1024 * 1024;
/// While one thread reads the socket, every other waiting thread checks for interrupts at this interval.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The worker's connection to the supervisor.
#[derive(Debug)]
pub struct Channel {
    socket: UnixStream,
    limits: ConversationLimits,
    readable: Epoll,
    reply_event: EventFd,
    /// Decodes received frames. The thread that reads the socket holds the lock, also while its read blocks.
    decoder: Mutex<FrameDecoder>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    job: Option<Job>,
    last_call: u32,
    in_flight: u32,
    /// Encoded requests that wait until the number of requests in flight is below the limit.
    backlog: VecDeque<(CallId, Vec<u8>)>,
    backlog_bytes: usize,
    out: Vec<u8>,
    /// Requests that [`Channel::ask`] waits for, with their reply once it has arrived.
    awaited_replies: HashMap<CallId, Option<Reply>>,
    /// Replies that the language engine has not read yet, to requests that it started without waiting for them.
    replies: VecDeque<(CallId, Reply)>,
    reader_active: bool,
    /// Token bucket for sending printed output at once: the tokens left, and the time at which they were counted.
    immediate_flushes: (u32, Instant),
}

enum ReadResult {
    Read,
    TimedOut,
    Interrupted,
}

impl Channel {
    /// Creates the channel from the inherited socket. The worker calls this function after it has entered its sandbox,
    /// so the function creates only descriptors that the sandbox permits.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn new(socket: OwnedFd, limits: ConversationLimits) -> std::io::Result<Self> {
        let socket = UnixStream::from(socket);
        let readable = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        readable.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        let reply_event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let state = State {
            job: None,
            last_call: 0,
            in_flight: 0,
            backlog: VecDeque::new(),
            backlog_bytes: 0,
            out: Vec::new(),
            awaited_replies: HashMap::new(),
            replies: VecDeque::new(),
            reader_active: false,
            immediate_flushes: (IMMEDIATE_FLUSHES_MAX, Instant::now()),
        };
        let decoder = Mutex::new(FrameDecoder::new(limits.frame_bytes));
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Ok(Self { socket, limits, readable, reply_event, decoder, state, changed })
    }

    /// Reports to the supervisor that this worker has entered its sandbox, and waits for a job.
    pub fn receive_job(&self) -> Job {
        self.send(&FromWorker::Ready);
        self.wait_for_job()
    }

    /// Sends the outcome of a run in a session, and waits for the session's next job.
    pub fn finish_run(&self, outcome: Outcome) -> Job {
        self.fail_backlog();
        self.send_outcome(outcome);
        self.wait_for_job()
    }

    /// Sends the outcome of the worker's only run, and waits until the supervisor kills the worker. The worker does not
    /// exit itself, so that the supervisor can answer the AI client first.
    pub fn finish(&self, outcome: Outcome) -> ! {
        self.send_outcome(outcome);
        loop {
            self.read(None);
        }
    }

    /// Fails requests that a run has queued but not sent, so that they do not leak into the next run of the session.
    fn fail_backlog(&self) {
        let mut state = self.lock();
        state.backlog_bytes = 0;
        while let Some((call, _)) = state.backlog.pop_front() {
            let message = "the session's run ended before this call was sent: it was not executed";
            state.deliver(call, Err(Failure::new(FailureCode::Timeout, message.into())));
        }
    }

    fn send_outcome(&self, outcome: Outcome) {
        let is_too_large =
            matches!(&outcome, Outcome::Value(Some(json)) if json.len() > self.limits.value_bytes() as usize);
        if is_too_large || !self.send(&FromWorker::Done(outcome)) {
            self.send(&FromWorker::Done(Outcome::Error(self.value_too_large())));
        }
    }

    /// Waits for the next job. Other threads of a session's code may use the socket meanwhile.
    fn wait_for_job(&self) -> Job {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.job.take() {
                return job;
            }
            (state, _) = self.wait(state, None);
            if !state.replies.is_empty() {
                // This thread read a reply for an event loop of another thread.
                let _ = self.reply_event.write(1);
            }
        }
    }

    fn value_too_large(&self) -> CodeError {
        CodeError {
            kind: "ResultTooLarge".into(),
            code: Some(FailureCode::ResultTooLarge.as_str().into()),
            message: format!("the result exceeds the limit of {} bytes", self.limits.value_bytes()),
            hint: Some("return a part or a summary of it".into()),
            ..CodeError::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another thread cannot leave an inconsistent state: every step leaves a valid one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message together with all queued messages. Returns false if the message is too large for a frame.
    fn send(&self, message: &FromWorker) -> bool {
        let Ok(frame) = frame::encode(message, self.limits.frame_bytes) else { return false };
        let mut state = self.lock();
        state.queue(frame);
        self.flush_locked(&mut state);
        true
    }

    fn flush_locked(&self, state: &mut State) {
        if !state.out.is_empty() && (&self.socket).write_all(&state.out).is_err() {
            exit_without_supervisor();
        }
        state.out.clear();
        state.out.shrink_to(OUT_BYTES_MAX);
    }

    fn start_locked(&self, state: &mut State, request: WorkerRequest, is_awaited: bool) -> CallId {
        state.last_call += 1;
        let call = CallId(state.last_call);
        if is_awaited {
            state.awaited_replies.insert(call, None);
        }
        match frame::encode(&FromWorker::Request { call, request }, self.limits.frame_bytes) {
            Ok(frame) if state.in_flight < self.limits.parallel_calls => {
                state.in_flight += 1;
                state.queue(frame);
            }
            Ok(frame) => {
                state.backlog_bytes += frame.len();
                state.backlog.push_back((call, frame));
            }
            Err(error) => state.deliver(call, Err(arguments_too_large(&error))),
        }
        call
    }

    /// Reads the socket once and processes all received messages. Waits for data at most for `timeout` or 60 s,
    /// whichever is shorter; without a limit if `timeout` is `None`. The caller must have set `reader_active`, or be
    /// the only thread.
    fn read(&self, timeout: Option<Duration>) -> ReadResult {
        if let Some(timeout) = timeout {
            // Rounded up, since the wait must not end before the timeout.
            let millis = timeout.as_micros().div_ceil(1000).min(60_000) as u16;
            match self.readable.wait(&mut [EpollEvent::empty()], EpollTimeout::from(millis)) {
                Ok(0) => return ReadResult::TimedOut,
                Ok(_) => {}
                Err(_) => return ReadResult::Interrupted,
            }
        }
        let mut decoder = self.decoder.lock().unwrap_or_else(PoisonError::into_inner);
        match (&self.socket).read(decoder.space()) {
            Ok(0) => exit_without_supervisor(),
            Ok(count) => decoder.received(count),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return ReadResult::Interrupted,
            Err(_) => exit_without_supervisor(),
        }
        let mut state = self.lock();
        let mut result = ReadResult::Read;
        loop {
            match decoder.next::<ToWorker>() {
                Ok(Some(ToWorker::Interrupt)) => result = ReadResult::Interrupted,
                Ok(Some(ToWorker::Run(job))) => state.job = Some(job),
                Ok(Some(ToWorker::Reply { call, reply })) => {
                    state.in_flight = state.in_flight.saturating_sub(1);
                    state.deliver(call, reply);
                }
                Ok(None) => break,
                Err(_) => exit_without_supervisor(),
            }
        }
        while state.in_flight < self.limits.parallel_calls {
            let Some((_, frame)) = state.backlog.pop_front() else { break };
            state.in_flight += 1;
            state.backlog_bytes -= frame.len();
            state.queue(frame);
        }
        self.flush_locked(&mut state);
        result
    }

    /// Sends all queued messages, and waits until the state may have changed: reads the socket, or waits for a short
    /// time for the thread that already reads it. In the second case, the result is [`ReadResult::Interrupted`].
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        timeout: Option<Duration>,
    ) -> (MutexGuard<'a, State>, ReadResult) {
        self.flush_locked(&mut state);
        if state.reader_active {
            let limit = timeout.unwrap_or(STOP_CHECK_INTERVAL).min(STOP_CHECK_INTERVAL);
            let (state, _) = self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner);
            return (state, ReadResult::Interrupted);
        }
        state.reader_active = true;
        drop(state);
        let result = self.read(timeout);
        let mut state = self.lock();
        state.reader_active = false;
        self.changed.notify_all();
        (state, result)
    }
}

impl State {
    /// Adds a frame to the send buffer. A large frame is not copied if the buffer is empty.
    fn queue(&mut self, frame: Vec<u8>) {
        match self.out.is_empty() && frame.len() > FLUSH_BYTES {
            true => self.out = frame,
            false => self.out.extend_from_slice(&frame),
        }
    }

    /// Takes a token for sending printed output at once. Returns false if none is left.
    fn take_immediate_flush(&mut self) -> bool {
        let (left, as_of) = self.immediate_flushes;
        let gained = as_of.elapsed().as_millis() / IMMEDIATE_FLUSH_INTERVAL.as_millis();
        let left = IMMEDIATE_FLUSHES_MAX.min(left.saturating_add(u32::try_from(gained).unwrap_or(u32::MAX)));
        if gained > 0 {
            self.immediate_flushes.1 = Instant::now();
        }
        self.immediate_flushes.0 = left.saturating_sub(1);
        left > 0
    }

    fn deliver(&mut self, call: CallId, reply: Reply) {
        match self.awaited_replies.get_mut(&call) {
            Some(waiting) => *waiting = Some(reply),
            None => self.replies.push_back((call, reply)),
        }
    }
}

impl ToolHost for Channel {
    fn start(&self, request: WorkerRequest) -> CallId {
        let mut state = self.lock();
        let call = self.start_locked(&mut state, request, false);
        if state.out.len() > OUT_BYTES_MAX {
            self.flush_locked(&mut state);
        }
        call
    }

    fn has_room(&self) -> bool {
        let state = self.lock();
        // Requests that could not be sent have an immediate error reply, which counts as well.
        state.backlog.len() + state.replies.len() < BACKLOG_MAX && state.backlog_bytes < BACKLOG_BYTES_MAX
    }

    fn next_reply(&self, timeout: Option<Duration>) -> WaitOutcome {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut state = self.lock();
        loop {
            if let Some((call, reply)) = state.replies.pop_front() {
                return WaitOutcome::Reply(call, reply);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let (guard, result) = self.wait(state, left);
            state = guard;
            match result {
                ReadResult::Read => {}
                ReadResult::TimedOut => return WaitOutcome::TimedOut,
                ReadResult::Interrupted => return WaitOutcome::Interrupted,
            }
        }
    }

    fn ask(&self, request: WorkerRequest, stop: &mut dyn FnMut() -> bool) -> Option<Reply> {
        let mut state = self.lock();
        let call = self.start_locked(&mut state, request, true);
        loop {
            if let Some(reply) = state.awaited_replies.get_mut(&call).and_then(Option::take) {
                state.awaited_replies.remove(&call);
                return Some(reply);
            }
            let (guard, result) = self.wait(state, None);
            state = guard;
            if !state.replies.is_empty() {
                // This thread read a reply for an event loop of another thread.
                let _ = self.reply_event.write(1);
            }
            if matches!(result, ReadResult::Interrupted) {
                drop(state);
                if stop() {
                    return None;
                }
                state = self.lock();
            }
        }
    }

    fn print(&self, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        let message = FromWorker::Output { stream, text: text.to_owned() };
        let Ok(frame) = frame::encode(&message, self.limits.frame_bytes) else { return };
        let mut state = self.lock();
        state.out.extend_from_slice(&frame);
        if state.out.len() > FLUSH_BYTES || state.take_immediate_flush() {
            self.flush_locked(&mut state);
        }
    }

    fn flush(&self) {
        self.flush_locked(&mut self.lock());
    }

    fn drain(&self) -> Vec<(CallId, Reply)> {
        self.flush();
        // If another thread is reading, it will signal the event again when it has delivered replies.
        let _ = self.reply_event.read();
        let free = !std::mem::replace(&mut self.lock().reader_active, true);
        if free {
            self.read(Some(Duration::ZERO));
            self.lock().reader_active = false;
            self.changed.notify_all();
        }
        self.lock().replies.drain(..).collect()
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn reply_event(&self) -> BorrowedFd<'_> {
        self.reply_event.as_fd()
    }
}

fn arguments_too_large(error: &frame::FrameError) -> Failure {
    Failure::new(FailureCode::InvalidArguments, format!("the arguments are too large: {error}"))
}

/// Exits the worker after the supervisor has closed the socket or has sent an invalid message, or after an error of the
/// socket.
fn exit_without_supervisor() -> ! {
    std::process::exit(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ConversationLimits =
        ConversationLimits { calls: 10, parallel_calls: 10, output_bytes: 1024, frame_bytes: 1024 };

    /// Returns the channel of a worker, and the socket of its supervisor, which has already sent `messages`.
    fn connect(messages: &[ToWorker]) -> (Channel, UnixStream) {
        let (worker, mut supervisor) = UnixStream::pair().expect("a pair of sockets");
        for message in messages {
            let frame = frame::encode(message, LIMITS.frame_bytes).expect("a frame");
            std::io::Write::write_all(&mut supervisor, &frame).expect("a message");
        }
        (Channel::new(worker.into(), LIMITS).expect("a channel"), supervisor)
    }

    /// The signal that interrupts the program has arrived before each wait: only the message can end the wait.
    #[test]
    fn an_interrupt_that_arrives_before_a_wait_ends_the_wait() {
        let (channel, _supervisor) = connect(&[ToWorker::Interrupt]);
        assert_eq!(channel.ask(WorkerRequest::ListServers, &mut || true), None);

        let (channel, _supervisor) = connect(&[ToWorker::Interrupt]);
        channel.start(WorkerRequest::ListServers);
        assert!(matches!(channel.next_reply(None), WaitOutcome::Interrupted));
    }

    /// A message that the last run of a session has not read.
    #[test]
    fn an_interrupt_without_a_signal_has_no_effect() {
        let reply = ToWorker::Reply { call: CallId(1), reply: Ok(b"1".to_vec()) };
        let (channel, _supervisor) = connect(&[ToWorker::Interrupt, reply]);
        assert_eq!(channel.ask(WorkerRequest::ListServers, &mut || false), Some(Ok(b"1".to_vec())));
    }
}
