//! The gateway's zygotes and workers of both languages.

use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use lockhouse_protocol::{
    CallId, ExecutionId, FrameDecoder, FromWorker, FromZygote, Job, ServerName, ToWorker, frame,
};
use lockhouse_tests::{BareZygote, LANGUAGES};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Fallible, SERVER, TOOLS};

/// The number of idle workers of each language when nothing happens.
const IDLE: usize = 1;
/// The programs that warm up idle workers, with a call that the gateway answers itself.
const WARM_UP: [&str; LANGUAGES.len()] =
    ["from mcp_tools.echo3 import add\nadd(a=1, b=2)['sum']", "(await echo3.add({a: 1, b: 2})).sum"];

/// The zygote of a language, the process ids of idle workers, the number of workers that are not ready yet, and the requests
/// that wait for a worker: the JSON id and the code of each.
pub(crate) struct Pool {
    pub(crate) zygote: BareZygote,
    idle: Vec<i32>,
    forking: usize,
    waiting: VecDeque<(String, String)>,
}

/// A worker process, which is killed when the value is dropped.
pub(crate) struct Worker {
    pid: i32,
    language: usize,
    channel: UnixStream,
    decoder: FrameDecoder,
    /// Replies that are not sent yet.
    out: Vec<u8>,
    /// The JSON id of the request whose program the worker runs; empty before.
    pub(crate) request: String,
}

pub(crate) struct Workers {
    pub(crate) pools: [Pool; LANGUAGES.len()],
    pub(crate) by_pid: HashMap<i32, Worker>,
}

impl Workers {
    /// Starts the zygotes with the language engines in this directory.
    pub(crate) fn start(engines: &str) -> Self {
        let pool = |language| {
            let zygote = BareZygote::of_language(language, Path::new(engines));
            Pool { zygote, idle: Vec::new(), forking: 0, waiting: VecDeque::new() }
        };
        Self { pools: LANGUAGES.map(pool), by_pid: HashMap::new() }
    }

    /// Whether fewer workers than [`IDLE`] are ready or being forked.
    pub(crate) fn lacks_idle(&self) -> bool {
        self.pools.iter().any(Pool::lacks_idle)
    }

    /// Requests the workers that [`lacks_idle`](Self::lacks_idle) finds missing.
    pub(crate) fn fork_idle(&mut self) {
        self.pools.iter_mut().filter(|pool| pool.lacks_idle()).for_each(|pool| pool.fork(true));
    }

    /// Runs the code of a request in an idle worker, or in a worker that is forked for it. `id` is the request's JSON id.
    pub(crate) fn submit(&mut self, language: usize, id: &str, code: String) -> Fallible<()> {
        self.pools[language].waiting.push_back((id.to_owned(), code));
        self.assign(language)
    }

    fn assign(&mut self, language: usize) -> Fallible<()> {
        let pool = &mut self.pools[language];
        while let Some(pid) = pool.idle.pop_if(|_| !pool.waiting.is_empty())
            && let Some(worker) = self.by_pid.get_mut(&pid)
            && let Some((id, code)) = pool.waiting.pop_front()
        {
            worker.run(id, code, false)?;
        }
        while pool.forking < pool.waiting.len() {
            pool.fork(false);
        }
        Ok(())
    }

    /// Receives a message of a zygote. Returns the process id and the channel if it has forked a worker.
    pub(crate) fn receive_fork(&mut self, language: usize) -> Option<(i32, &UnixStream)> {
        match self.pools[language].zygote.receive() {
            (FromZygote::Forked { pid }, mut descriptors) => {
                let (channel, decoder) = (descriptors.remove(0).into(), FrameDecoder::new(u32::MAX));
                let (out, request) = (Vec::new(), String::new());
                let worker = Worker { pid, language, channel, decoder, out, request };
                Some((pid, &self.by_pid.entry(pid).insert_entry(worker).into_mut().channel))
            }
            (FromZygote::Exited { .. }, _) => None,
            (other, _) => panic!("{other:?}"),
        }
    }

    /// Reads a worker's messages that have arrived.
    pub(crate) fn receive(&mut self, pid: i32) -> Fallible<Vec<FromWorker>> {
        let worker = self.worker(pid)?;
        let count = worker.channel.read(worker.decoder.space())?;
        worker.decoder.received(count);
        let messages = std::iter::from_fn(|| worker.decoder.next().transpose()).collect::<Result<_, _>>()?;
        if count == 0 { Err(format!("worker {pid} has ended").into()) } else { Ok(messages) }
    }

    /// Gives a new worker the program of a request if one waits, else the program that warms it up unless it `is_warm`.
    pub(crate) fn make_ready(&mut self, pid: i32, is_warm: bool) -> Fallible<()> {
        let language = self.worker(pid)?.language;
        if !is_warm && self.pools[language].waiting.is_empty() {
            return self.worker(pid)?.run(String::new(), WARM_UP[language].to_owned(), true);
        }
        self.pools[language].forking -= 1;
        self.pools[language].idle.push(pid);
        self.assign(language)
    }

    /// Adds the reply to a call of a worker to those that [`flush`](Self::flush) sends. `parts` make up its JSON text.
    pub(crate) fn reply(&mut self, pid: i32, call: CallId, parts: &[&str]) -> Fallible<()> {
        let worker = self.worker(pid)?;
        let reply = ToWorker::Reply { call, reply: Ok(Vec::new()) };
        let bytes = parts.iter().map(|part| part.len()).sum();
        worker.out.extend(frame::encode_without_tail(&reply, bytes, u32::MAX)?);
        parts.iter().for_each(|part| worker.out.extend_from_slice(part.as_bytes()));
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Fallible<()> {
        for worker in self.by_pid.values_mut().filter(|worker| !worker.out.is_empty()) {
            worker.channel.write_all(&worker.out)?;
            worker.out.clear();
        }
        Ok(())
    }

    fn worker(&mut self, pid: i32) -> Fallible<&mut Worker> {
        self.by_pid.get_mut(&pid).ok_or_else(|| format!("there is no worker {pid}").into())
    }
}

impl Pool {
    fn lacks_idle(&self) -> bool {
        self.idle.len() + self.forking < IDLE
    }

    fn fork(&mut self, warm: bool) {
        self.zygote.request_fork(warm);
        self.forking += 1;
    }
}

impl Worker {
    fn run(&mut self, id: String, code: String, session: bool) -> Fallible<()> {
        self.request = id;
        let job = Job {
            execution: ExecutionId(1),
            tools: if code.contains(SERVER) { TOOLS.into() } else { Vec::new() },
            code,
            servers: vec![ServerName::new(SERVER)?],
            session,
            check_only: false,
            files: Vec::new(),
            left_out: Vec::new(),
        };
        Ok(self.channel.write_all(&frame::encode(&ToWorker::Run(job), u32::MAX)?)?)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
    }
}
