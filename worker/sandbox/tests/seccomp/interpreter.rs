//! Interprets the compiled seccomp programs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use seccompiler::{TargetArch, compile_from_json};
use serde_json::json;

pub(crate) const ALLOW: u32 = 0x7fff_0000;
pub(crate) const KILL_PROCESS: u32 = 0x8000_0000;
/// The upper bound (exclusive) of the tested system call numbers. The numbers of existing system calls are far lower.
pub(crate) const NUMBERS: u32 = 2048;

/// The input of a seccomp filter, as in `struct seccomp_data`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) number: u32,
    pub(crate) architecture: u32,
    pub(crate) arguments: [u64; 6],
}

impl Call {
    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.architecture,
            16..64 => {
                let argument = self.arguments[(offset as usize - 16) / 8];
                if offset.is_multiple_of(8) { argument as u32 } else { (argument >> 32) as u32 }
            }
            _ => panic!("a load from {offset}"),
        }
    }
}

/// Runs a classic BPF program on a system call and returns its result. Only the instructions that the filters use are
/// supported. Jumps only go forward, so every program ends.
pub(crate) fn run(program: &[u8], call: &Call) -> u32 {
    let (mut accumulator, mut at) = (0_u32, 0);
    loop {
        let step = &program[at * 8..][..8];
        let code = u16::from_le_bytes([step[0], step[1]]);
        let k = u32::from_le_bytes([step[4], step[5], step[6], step[7]]);
        let branch = |taken: bool| usize::from(if taken { step[2] } else { step[3] });
        at += 1 + match code {
            0x20 => {
                accumulator = call.word(k);
                0
            }
            0x54 => {
                accumulator &= k;
                0
            }
            0x05 => k as usize,
            0x15 => branch(accumulator == k),
            0x25 => branch(accumulator > k),
            0x35 => branch(accumulator >= k),
            0x06 => return k,
            other => panic!("an instruction {other:#x} that this test does not know"),
        };
    }
}

/// Returns the number of the system call with this name on an architecture, as seccompiler knows it.
pub(crate) fn number_of(name: &str, architecture: &str) -> u32 {
    let filter = json!({"one": {"match_action": "allow", "mismatch_action": "kill_process", "filter": [{"syscall": name}]}});
    let target = TargetArch::try_from(architecture).unwrap();
    let program = compile_from_json(filter.to_string().as_bytes(), target).unwrap().remove("one").unwrap();
    // The comparisons are the architecture and the number.
    let compared: Vec<u32> = program.iter().filter(|step| step.code == 0x15).map(|step| step.k).collect();
    compared[1]
}
