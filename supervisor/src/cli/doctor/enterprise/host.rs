//! The checks of the host: its kernel, the administrator's requirements, and the audit log.

use std::os::unix::net::UnixStream;

use lockhouse_config::{ReadableSecret, RequiredParts, Settings};
use lockhouse_pool::protections::describe;
use lockhouse_protocol::{Finding, Verdict};
use lockhouse_upstream::KernelGap;

use super::presence;
use crate::cli::doctor::checklist::{Check, Outcome};
use crate::cli::doctor::report::Report;

pub(super) fn checks(report: &Report, settings: &Settings) -> Vec<Check> {
    let required = settings.required_parts();
    let secrets: Vec<String> = report.secrets.iter().map(ReadableSecret::to_string).collect();
    let check = |id, title, outcome| Check { id, title, outcome };
    vec![
        check("sandbox", "each protection of workers holds", sandbox(report)),
        check("server_sandbox", "the kernel enforces the whole sandbox of servers", server_sandbox(report)),
        check("requirements", "requirements apply to this host", requirements(&required)),
        check("required_sandbox", "a host without a protection is refused", required_sandbox(&required)),
        check("engine", "no process of a person has an engine", engine(&required)),
        check("presence", "no agent approves its own calls", presence::outcome(&required)),
        check("policy", "a policy of the administrator applies to everybody", policy(&required)),
        check("audit_sink", "an audit sink writes the log", sink(&required, settings)),
        check("forwarding", "records are forwarded", forwarding(settings)),
        check(
            "secrets",
            "no secret is readable by other accounts",
            Outcome::none_of(&secrets, "none is", "chmod 600 the files, and replace the secrets"),
        ),
    ]
}

fn sandbox(report: &Report) -> Outcome {
    let title = |finding: &Finding| describe(finding.protection).title.to_owned();
    let absent = report.findings.iter().filter(|finding| finding.verdict != Verdict::Holds).map(title);
    let broken = report.engines.iter().filter(|engine| !engine.works).map(|engine| {
        let language = engine.language.as_str();
        format!("{language} does not work")
    });
    let found: Vec<String> = absent.chain(broken).collect();
    Outcome::none_of(&found, "the level is full", "`lockhouse doctor` says how to have each")
}

fn server_sandbox(report: &Report) -> Outcome {
    let missing: Vec<String> = report.server_gaps.iter().map(KernelGap::to_string).collect();
    Outcome::none_of(&missing, "nothing is missing", "boot Linux 6.12 or later with landlock in lsm=")
}

fn requirements(required: &RequiredParts) -> Outcome {
    let file = RequiredParts::FILE;
    let missing = format!("there is no {file}");
    Outcome::require(required.has_file, file, &missing, "write it: docs/fleet.md has an example")
}

fn required_sandbox(required: &RequiredParts) -> Outcome {
    let fix = "add sandbox = \"required\" to the requirements";
    Outcome::require(required.requires_sandbox, "sandbox = \"required\"", "it runs with what it has", fix)
}

fn engine(required: &RequiredParts) -> Outcome {
    if required.is_service {
        return Outcome::Pass("this account is that of a service".to_owned());
    }
    let fix =
        "add engine = \"system\" to the requirements, and enable lockhouse-engine@UID.socket for each person";
    Outcome::require(required.has_system_engine, "engine = \"system\"", "each client has its own", fix)
}

fn policy(required: &RequiredParts) -> Outcome {
    let fix = "add policy = \"/etc/lockhouse/required-policy.toml\" to the requirements";
    Outcome::require(required.has_policy, "it does", "the requirements name none", fix)
}

fn sink(required: &RequiredParts, settings: &Settings) -> Outcome {
    let Some(sink) = settings.engine.audit.sink.as_ref().filter(|_| required.has_sink) else {
        return Outcome::Fail {
            found: "the requirements name none".to_owned(),
            fix: "add sink to [audit] of the requirements, and enable lockhouse-audit.service",
        };
    };
    match UnixStream::connect(sink.path()) {
        Ok(_) => Outcome::Pass(sink.to_string()),
        Err(error) => Outcome::Fail {
            found: format!("{sink} cannot be reached: {error}"),
            fix: "start lockhouse-audit.service; until then each call fails",
        },
    }
}

fn forwarding(settings: &Settings) -> Outcome {
    let destinations: Vec<String> =
        settings.audit_forward.destinations.iter().map(|named| named.destination.to_string()).collect();
    let fix = "add forward to [audit] of the requirements; `lockhouse audit forward` shows the delivery";
    let named = destinations.join(", ");
    Outcome::require(!destinations.is_empty(), &named, "[audit] forward names no destination", fix)
}
