//! The worker's end of its socket: frames out, frames in, for one thread or many.
//!
//! Any thread may ask. One of those that wait reads the socket for all; what it reads for others it hands over and
//! wakes them. No thread of its own is needed, so a worker has one until the code starts more.

use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lockhouse_protocol::frame::{self, FrameDecoder};
use lockhouse_protocol::{
    CallId, CodeError, ConversationLimits, Failure, FailureCode, FromWorker, Job, Outcome, Reply, Request,
    Stream, ToWorker,
};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::tool_host::{ToolHost, Waited};

/// Output is sent when so much has gathered, and with whatever else is sent.
const FLUSH_BYTES: usize = 8 * 1024;
/// And at once, so that a line is seen which a program printed before it computes: so often in a row, and again as often as
/// this. A program that prints thousands of lines has not as many system calls.
const SENT_AT_ONCE_MAX: u32 = 16;
const SENT_AT_ONCE_EVERY: Duration = Duration::from_millis(50);
const READ_BYTES: usize = 64 * 1024;
/// What may be queued above what may be under way, in requests and in bytes.
const BACKLOG_MAX: usize = 10_000;
const BACKLOG_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How often a thread that waits for another one's reading looks whether it must stop.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// The socket to the supervisor.
#[derive(Debug)]
pub struct Channel {
    socket: UnixStream,
    limits: ConversationLimits,
    readable: Epoll,
    handed_over: EventFd,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    decoder: FrameDecoder,
    job: Option<Job>,
    last_call: u32,
    under_way: u32,
    /// Encoded, but above what may be under way.
    backlog: VecDeque<(CallId, Vec<u8>)>,
    backlog_bytes: usize,
    out: Vec<u8>,
    /// What [`Channel::ask`] waits for: nothing yet, or the reply.
    asked: HashMap<CallId, Option<Reply>>,
    /// Replies to what was only started.
    replies: VecDeque<(CallId, Reply)>,
    someone_reads: bool,
    /// How often output may be sent at once, as of then.
    sent_at_once: (u32, Instant),
}

enum ReadResult {
    Some,
    TimedOut,
    Interrupted,
}

impl Channel {
    /// Takes over the inherited socket. Called after the seal: it makes only what the sealed worker may make.
    ///
    /// # Errors
    /// The system's answer.
    pub fn new(socket: OwnedFd, limits: ConversationLimits) -> std::io::Result<Self> {
        let socket = UnixStream::from(socket);
        let readable = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        readable.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        let handed_over = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let state = State {
            decoder: FrameDecoder::new(limits.frame_bytes),
            job: None,
            last_call: 0,
            under_way: 0,
            backlog: VecDeque::new(),
            backlog_bytes: 0,
            out: Vec::new(),
            asked: HashMap::new(),
            replies: VecDeque::new(),
            someone_reads: false,
            sent_at_once: (SENT_AT_ONCE_MAX, Instant::now()),
        };
        Ok(Self { socket, limits, readable, handed_over, state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Says that the worker is sealed, and waits for its job.
    pub fn receive_job(&self) -> Job {
        self.send(&FromWorker::Ready);
        self.wait_for_job()
    }

    /// Sends the outcome of a session's run, and waits for its next one.
    pub fn next_job(&self, outcome: Outcome) -> Job {
        self.give_up_backlog();
        self.tell(outcome);
        self.wait_for_job()
    }

    /// Sends the outcome and waits for the end: the supervisor answers its client first and kills this process then.
    pub fn finish(&self, outcome: Outcome) -> ! {
        self.tell(outcome);
        loop {
            self.read(None);
        }
    }

    /// What a run has queued and not sent is no matter of the next one.
    fn give_up_backlog(&self) {
        let mut state = self.lock();
        state.backlog_bytes = 0;
        while let Some((call, _)) = state.backlog.pop_front() {
            let failure = Failure {
                code: FailureCode::Timeout,
                message: "the run of the session ended before this was sent: nothing was done".into(),
                server: None,
                tool: None,
                retryable: false,
            };
            state.settle(call, Err(failure));
        }
    }

    fn tell(&self, outcome: Outcome) {
        if !self.send(&FromWorker::Done(outcome)) {
            self.send(&FromWorker::Done(Outcome::Error(self.value_too_large())));
        }
    }

    /// Threads of a session's code may be at the socket too.
    fn wait_for_job(&self) -> Job {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.job.take() {
                return job;
            }
            (state, _) = self.wait(state, None);
            if !state.replies.is_empty() {
                // Read here, meant for an event loop elsewhere.
                let _ = self.handed_over.write(1);
            }
        }
    }

    fn value_too_large(&self) -> CodeError {
        CodeError {
            kind: "ResultTooLarge".into(),
            code: Some(FailureCode::ResultTooLarge.as_str().into()),
            message: format!("the result exceeds the limit of {} bytes", self.limits.frame_bytes),
            hint: Some("return a part or a summary of it".into()),
            ..CodeError::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves nothing half done that matters: each step leaves a state that the next one can take.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message with whatever is queued; false when it does not fit into a frame.
    fn send(&self, message: &FromWorker) -> bool {
        let Ok(frame) = frame::encode(message, self.limits.frame_bytes) else { return false };
        let mut state = self.lock();
        state.out.extend_from_slice(&frame);
        self.flush_locked(&mut state);
        true
    }

    fn flush_locked(&self, state: &mut State) {
        if !state.out.is_empty() && (&self.socket).write_all(&state.out).is_err() {
            supervisor_is_gone();
        }
        state.out.clear();
    }

    fn start_locked(&self, state: &mut State, request: Request, asked: bool) -> CallId {
        state.last_call += 1;
        let call = CallId(state.last_call);
        if asked {
            state.asked.insert(call, None);
        }
        match frame::encode(&FromWorker::Request { call, request }, self.limits.frame_bytes) {
            Ok(frame) if state.under_way < self.limits.parallel_calls => {
                state.under_way += 1;
                state.out.extend_from_slice(&frame);
            }
            Ok(frame) => {
                state.backlog_bytes += frame.len();
                state.backlog.push_back((call, frame));
            }
            Err(error) => state.settle(call, Err(arguments_too_large(&error))),
        }
        call
    }

    /// One read and what came of it. The caller has set `someone_reads`, or is the only thread.
    fn read(&self, timeout: Option<Duration>) -> ReadResult {
        if let Some(timeout) = timeout {
            // Rounded up: a timer must not fire early.
            let millis = timeout.as_micros().div_ceil(1000).min(60_000) as u16;
            match self.readable.wait(&mut [EpollEvent::empty()], EpollTimeout::from(millis)) {
                Ok(0) => return ReadResult::TimedOut,
                Ok(_) => {}
                Err(_) => return ReadResult::Interrupted,
            }
        }
        let mut buffer = [0; READ_BYTES];
        let count = match (&self.socket).read(&mut buffer) {
            Ok(0) => supervisor_is_gone(),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return ReadResult::Interrupted,
            Err(_) => supervisor_is_gone(),
        };
        let mut state = self.lock();
        state.decoder.push(&buffer[..count]);
        loop {
            match state.decoder.next::<ToWorker>() {
                Ok(Some(ToWorker::Run(job))) => state.job = Some(job),
                Ok(Some(ToWorker::Reply { call, reply })) => {
                    state.under_way = state.under_way.saturating_sub(1);
                    state.settle(call, reply);
                }
                Ok(None) => break,
                Err(_) => supervisor_is_gone(),
            }
        }
        while state.under_way < self.limits.parallel_calls {
            let Some((_, frame)) = state.backlog.pop_front() else { break };
            state.under_way += 1;
            state.backlog_bytes -= frame.len();
            state.out.extend_from_slice(&frame);
        }
        self.flush_locked(&mut state);
        ReadResult::Some
    }

    /// Waits until something changed: reads, or lets the thread read that does already.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        timeout: Option<Duration>,
    ) -> (MutexGuard<'a, State>, ReadResult) {
        self.flush_locked(&mut state);
        if state.someone_reads {
            let limit = timeout.unwrap_or(STOP_CHECK).min(STOP_CHECK);
            let (state, _) = self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner);
            return (state, ReadResult::Interrupted);
        }
        state.someone_reads = true;
        drop(state);
        let result = self.read(timeout);
        let mut state = self.lock();
        state.someone_reads = false;
        self.changed.notify_all();
        (state, result)
    }
}

impl State {
    /// Whether output is sent at once, which is counted.
    fn sends_at_once(&mut self) -> bool {
        let (left, as_of) = self.sent_at_once;
        let gained = as_of.elapsed().as_millis() / SENT_AT_ONCE_EVERY.as_millis();
        let left = SENT_AT_ONCE_MAX.min(left.saturating_add(u32::try_from(gained).unwrap_or(u32::MAX)));
        if gained > 0 {
            self.sent_at_once.1 = Instant::now();
        }
        self.sent_at_once.0 = left.saturating_sub(1);
        left > 0
    }

    fn settle(&mut self, call: CallId, reply: Reply) {
        match self.asked.get_mut(&call) {
            Some(waiting) => *waiting = Some(reply),
            None => self.replies.push_back((call, reply)),
        }
    }
}

impl ToolHost for Channel {
    fn start(&self, request: Request) -> CallId {
        let mut state = self.lock();
        let call = self.start_locked(&mut state, request, false);
        if state.out.len() > READ_BYTES {
            self.flush_locked(&mut state);
        }
        call
    }

    fn has_room(&self) -> bool {
        let state = self.lock();
        // What could not be sent has its reply at once.
        state.backlog.len() + state.replies.len() < BACKLOG_MAX && state.backlog_bytes < BACKLOG_BYTES_MAX
    }

    fn next_reply(&self, timeout: Option<Duration>) -> Waited {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut state = self.lock();
        loop {
            if let Some((call, reply)) = state.replies.pop_front() {
                return Waited::Reply(call, reply);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let (guard, result) = self.wait(state, left);
            state = guard;
            match result {
                ReadResult::Some => {}
                ReadResult::TimedOut => return Waited::TimedOut,
                ReadResult::Interrupted => return Waited::Interrupted,
            }
        }
    }

    fn ask(&self, request: Request, stop: &mut dyn FnMut() -> bool) -> Option<Reply> {
        let mut state = self.lock();
        let call = self.start_locked(&mut state, request, true);
        loop {
            if let Some(reply) = state.asked.get_mut(&call).and_then(Option::take) {
                state.asked.remove(&call);
                return Some(reply);
            }
            let (guard, result) = self.wait(state, None);
            state = guard;
            if !state.replies.is_empty() {
                // Read here, meant for an event loop elsewhere.
                let _ = self.handed_over.write(1);
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
        if state.out.len() > FLUSH_BYTES || state.sends_at_once() {
            self.flush_locked(&mut state);
        }
    }

    fn flush(&self) {
        self.flush_locked(&mut self.lock());
    }

    fn drain(&self) -> Vec<(CallId, Reply)> {
        self.flush();
        // Whoever reads at the moment hands over and wakes us again.
        let _ = self.handed_over.read();
        let free = !std::mem::replace(&mut self.lock().someone_reads, true);
        if free {
            self.read(Some(Duration::ZERO));
            self.lock().someone_reads = false;
            self.changed.notify_all();
        }
        self.lock().replies.drain(..).collect()
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn handed_over(&self) -> BorrowedFd<'_> {
        self.handed_over.as_fd()
    }
}

fn arguments_too_large(error: &frame::FrameError) -> Failure {
    Failure {
        code: FailureCode::InvalidArguments,
        message: format!("the arguments are too large: {error}"),
        server: None,
        tool: None,
        retryable: false,
    }
}

/// Nobody is left to work for.
fn supervisor_is_gone() -> ! {
    std::process::exit(0)
}
