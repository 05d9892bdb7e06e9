//! Native functions, written in Rust, that the engine's own JavaScript code calls.

use std::rc::Rc;

use lockhouse_protocol::{DecodedArgument, SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX, Stream, WorkerRequest};
use lockhouse_worker::signals;
use rquickjs::convert::List;
use rquickjs::function::Opt;
use rquickjs::{Array, Ctx, Exception, Function, Object, Result, TypedArray};

use super::evaluate::evaluate;
use super::latin1::latin1_to_bytes;
use super::shared_state::SharedState;
use super::skill_extraction::ExtractError;
use super::tool_requests::NativeRequest;
use super::typescript::{self, GENERATED_SKILL, Translation};
use super::{base64, digest, intl, json_values, skill_extraction, tool_requests, traceback, url};

/// Maximum number of bytes of one `crypto.getRandomValues` call, as in the Web Cryptography standard.
const RANDOM_BYTES_MAX: u32 = 65_536;

/// Creates the object with all native functions. User code cannot access it.
pub(super) fn create<'js>(ctx: &Ctx<'js>, state: &Rc<SharedState>) -> Result<Object<'js>> {
    let natives = Object::new(ctx.clone())?;
    add_requests(ctx, &natives, state)?;
    add_timers(ctx, &natives, state)?;
    add_randomness(ctx, &natives, state)?;
    add_encodings(ctx, &natives)?;
    add_skills(ctx, &natives, state)?;
    digest::add(ctx, &natives)?;
    intl::add(ctx, &natives)?;
    url::add(ctx, &natives)?;

    let shared = Rc::clone(state);
    let print = move |to_stderr: bool, text: String| {
        shared.print(if to_stderr { Stream::Stderr } else { Stream::Stdout }, &text);
    };
    natives.set("print", Function::new(ctx.clone(), print)?)?;

    let shared = Rc::clone(state);
    let frames =
        move |stack: String| traceback::user_frames(&stack, shared.source_map.borrow().as_ref()).join("\n");
    natives.set("frames", Function::new(ctx.clone(), frames)?)?;
    let shared = Rc::clone(state);
    let memory_bytes = move || shared.memory_bytes.get() as f64;
    natives.set("memoryBytes", Function::new(ctx.clone(), memory_bytes)?)?;
    natives.set("searchLimitDefault", SEARCH_LIMIT_DEFAULT)?;
    natives.set("searchLimitMax", SEARCH_LIMIT_MAX)?;
    Ok(natives)
}

#[expect(clippy::too_many_lines, reason = "a list of functions, each of which is short")]
fn add_requests<'js>(ctx: &Ctx<'js>, natives: &Object<'js>, state: &Rc<SharedState>) -> Result<()> {
    // `start` queues a request. Returns the number of its reply, or the failure.
    let shared = Rc::clone(state);
    let start = move |ctx: Ctx<'js>,
                      kind: String,
                      List((first, second, third)): List<(String, String, String)>,
                      timeout_ms: u32,
                      stack: String,
                      decoded: Vec<List<(String, Option<String>)>>|
          -> Result<Array<'js>> {
        if shared.host.get().is_some_and(|host| !host.has_room()) {
            let words = "too many calls wait for their turn: await some before you start more";
            return Err(Exception::throw_range(&ctx, words));
        }
        let too_deep = |_| Exception::throw_range(&ctx, "the arguments are nested too deeply for JSON");
        let third = json_values::to_portable_json(third).map_err(too_deep)?;
        let answer = Array::new(ctx.clone())?;
        let line = traceback::line(&stack, shared.source_map.borrow().as_ref());
        let decoded =
            decoded.into_iter().map(|List((pointer, text))| DecodedArgument { pointer, text }).collect();
        let texts = (first, second, third);
        match tool_requests::parse(NativeRequest { kind, texts, decoded, timeout_ms, line }) {
            Ok(request) => {
                let call = shared.host.get().map(|host| host.start(request));
                shared.in_flight.set(shared.in_flight.get() + u32::from(call.is_some()));
                answer.set(0, call.map(|call| call.0))?;
            }
            Err(failure) => answer.set(1, tool_requests::failure_object(&ctx, failure)?)?,
        }
        Ok(answer)
    };
    natives.set("start", Function::new(ctx.clone(), start)?)?;

    // `ask` sends a request and waits. Returns whether it succeeded, the JSON value or the failure, and whether the value is
    // JSON text.
    let shared = Rc::clone(state);
    let ask = move |ctx: Ctx<'js>,
                    kind: String,
                    first: String,
                    second: String,
                    third: Opt<String>|
          -> Result<Array<'js>> {
        let texts = (first, second, third.0.unwrap_or_default());
        let reply = match tool_requests::parse(NativeRequest {
            kind,
            texts,
            decoded: Vec::new(),
            timeout_ms: 0,
            line: None,
        }) {
            Ok(request) => shared
                .host
                .get()
                .and_then(|host| host.ask(request, &mut || signals::pending().is_some()))
                // The interrupt handler stops the program at its next check.
                .ok_or_else(|| Exception::throw_message(&ctx, "stopped"))?,
            Err(failure) => Err(failure),
        };
        let reply = tool_requests::to_realm(&ctx, reply)?;
        let answer = Array::new(ctx)?;
        answer.set(0, reply.succeeded)?;
        answer.set(1, reply.value)?;
        answer.set(2, reply.is_text)?;
        Ok(answer)
    };
    natives.set("ask", Function::new(ctx.clone(), ask)?)?;

    // `readPiece` requests the next piece of an open file. Returns whether it succeeded, and the bytes or the failure.
    let shared = Rc::clone(state);
    let read_piece = move |ctx: Ctx<'js>, file: u32| -> Result<Array<'js>> {
        let reply = shared
            .host
            .get()
            .and_then(|host| {
                host.ask(WorkerRequest::ReadPiece { file }, &mut || signals::pending().is_some())
            })
            .ok_or_else(|| Exception::throw_message(&ctx, "stopped"))?;
        let answer = Array::new(ctx.clone())?;
        match reply {
            Ok(piece) => {
                answer.set(0, true)?;
                answer.set(1, TypedArray::new(ctx, piece)?)?;
            }
            Err(failure) => {
                answer.set(0, false)?;
                answer.set(1, tool_requests::failure_object(&ctx, failure)?)?;
            }
        }
        Ok(answer)
    };
    natives.set("readPiece", Function::new(ctx.clone(), read_piece)?)
}

fn add_skills<'js>(ctx: &Ctx<'js>, natives: &Object<'js>, state: &Rc<SharedState>) -> Result<()> {
    // `skill` compiles the code of a skill into a function, which receives the import functions and returns the
    // exports.
    let shared = Rc::clone(state);
    let skill = move |ctx: Ctx<'js>, name: String, code: String| -> Result<Function<'js>> {
        let Translation { javascript, source_map, .. } =
            typescript::translate_skill(&code).map_err(|error| syntax_exception(&ctx, &name, error))?;
        if let Some(program) = shared.source_map.borrow_mut().as_mut() {
            program.add_skill(name.clone(), source_map);
        }
        evaluate(&ctx, &format!("{GENERATED_SKILL}{name}"), &javascript)
    };
    natives.set("skill", Function::new(ctx.clone(), skill)?)?;

    let check = |ctx: Ctx<'js>, code: String| -> Result<()> {
        typescript::translate_skill(&code)
            .map(drop)
            .map_err(|error| syntax_exception(&ctx, "the code", error))
    };
    natives.set("checkSkill", Function::new(ctx.clone(), check)?)?;

    // `cutSkill` extracts the source of a function of the program, and its unresolved global names.
    let shared = Rc::clone(state);
    let cut = move |ctx: Ctx<'js>, name: String| -> Result<Array<'js>> {
        let cut = match shared.source_map.borrow().as_ref() {
            Some(program) => skill_extraction::extract(program.source(), &name),
            None => Err(ExtractError::NoProgram),
        };
        let cut = cut.map_err(|error| Exception::throw_type(&ctx, &error.to_string()))?;
        let answer = Array::new(ctx)?;
        answer.set(0, cut.code)?;
        answer.set(1, cut.free.into_iter().collect::<Vec<_>>())?;
        Ok(answer)
    };
    natives.set("cutSkill", Function::new(ctx.clone(), cut)?)
}

fn syntax_exception(ctx: &Ctx<'_>, what: &str, error: typescript::SyntaxError) -> rquickjs::Error {
    let position = error.position.map_or_else(String::new, |position| format!(", line {}", position.line));
    Exception::throw_syntax(ctx, &format!("{what}{position}: {}", error.message))
}

fn add_timers<'js>(ctx: &Ctx<'js>, natives: &Object<'js>, state: &Rc<SharedState>) -> Result<()> {
    let shared = Rc::clone(state);
    let start = move |delay_ms: f64| shared.timers.borrow_mut().start(delay_ms);
    natives.set("startTimer", Function::new(ctx.clone(), start)?)?;

    let shared = Rc::clone(state);
    let stop = move |id: u32| shared.timers.borrow_mut().stop(id);
    natives.set("stopTimer", Function::new(ctx.clone(), stop)?)?;

    let shared = Rc::clone(state);
    let now = move || shared.started.get().elapsed().as_secs_f64() * 1000.0;
    natives.set("now", Function::new(ctx.clone(), now)?)
}

fn add_randomness<'js>(ctx: &Ctx<'js>, natives: &Object<'js>, state: &Rc<SharedState>) -> Result<()> {
    // QuickJS seeds its own generator in the zygote, so all workers would share its sequence.
    let shared = Rc::clone(state);
    natives.set("random", Function::new(ctx.clone(), move || shared.random())?)?;

    let bytes = |ctx: Ctx<'js>, count: u32| -> Result<TypedArray<'js, u8>> {
        let mut bytes = vec![0; count.min(RANDOM_BYTES_MAX) as usize];
        getrandom::fill(&mut bytes).map_err(|error| Exception::throw_message(&ctx, &error.to_string()))?;
        TypedArray::new(ctx, bytes)
    };
    natives.set("randomBytes", Function::new(ctx.clone(), bytes)?)
}

/// Adds the functions that encode and decode text. JavaScript passes bytes to these functions as strings of the
/// characters U+0000 to U+00FF, because Rust can read a typed array only with unsafe code.
fn add_encodings<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    let to_utf8 = |ctx: Ctx<'js>, text: String| TypedArray::<u8>::new(ctx, text.into_bytes());
    natives.set("toUtf8", Function::new(ctx.clone(), to_utf8)?)?;

    let from_utf8 = |ctx: Ctx<'js>, latin1: String, fatal: bool| -> Result<String> {
        let bytes = latin1_to_bytes(&ctx, &latin1)?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(_) if fatal => Err(Exception::throw_type(&ctx, "the bytes are not valid UTF-8")),
            Err(error) => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        }
    };
    natives.set("fromUtf8", Function::new(ctx.clone(), from_utf8)?)?;

    let encode =
        |ctx: Ctx<'js>, latin1: String| latin1_to_bytes(&ctx, &latin1).map(|bytes| base64::encode(&bytes));
    natives.set("toBase64", Function::new(ctx.clone(), encode)?)?;

    let decode = |ctx: Ctx<'js>, text: String| -> Result<TypedArray<'js, u8>> {
        let bytes = base64::decode(&text)
            .ok_or_else(|| Exception::throw_type(&ctx, "the text is not valid base64"))?;
        TypedArray::new(ctx, bytes)
    };
    natives.set("fromBase64", Function::new(ctx.clone(), decode)?)
}
