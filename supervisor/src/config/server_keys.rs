//! The keys of `[servers.NAME]`, each declared once. `dialects::own` reads them; a table of serde's would show lines that may
//! hold a secret.

use lockhouse_upstream::ServerLimits;
use serde_json::{Map, Value, json};

use super::keys::{KeySpec, Range, TableSpec};

/// A key of a server.
#[derive(Clone, Copy)]
pub(super) struct ServerKey {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) range: Option<Range>,
    default: Default,
    about: &'static str,
    /// As TOML.
    example: Option<&'static str>,
}

/// What a key has if it is not written.
#[derive(Clone, Copy)]
enum Default {
    Nothing,
    Words(&'static str),
    Number(fn(&ServerLimits) -> u64),
}

/// The type of a key.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    Texts,
    TextsByName,
    Flag,
    Whole,
    Keys(&'static [ServerKey]),
}

const TEXT: ServerKey = ServerKey {
    name: "",
    kind: Kind::Text,
    range: None,
    default: Default::Nothing,
    about: "",
    example: None,
};
const TEXTS: ServerKey = ServerKey { kind: Kind::Texts, ..TEXT };
const FLAG: ServerKey = ServerKey { kind: Kind::Flag, ..TEXT };
const SECONDS: ServerKey =
    ServerKey { kind: Kind::Whole, range: Some(Range::Numbers { least: 1.0, most: 86_400.0 }), ..TEXT };

pub(super) const START: ServerKey = ServerKey {
    name: "start",
    range: Some(Range::OneOf(&["eager", "lazy"])),
    default: Default::Words("`\"eager\"`"),
    about: "`\"lazy\"`: when it is first needed",
    ..TEXT
};
pub(super) const IDLE_STOP: ServerKey = ServerKey {
    name: "idle_stop_seconds",
    default: Default::Words("never"),
    about: "without a call; it is started again when it is needed",
    ..SECONDS
};
pub(super) const START_TIMEOUT: ServerKey = ServerKey {
    name: "start_timeout_seconds",
    default: Default::Number(|limits| limits.start_timeout.as_secs()),
    about: "from the start to its list of tools",
    ..SECONDS
};
pub(super) const CALL_TIMEOUT: ServerKey = ServerKey {
    name: "call_timeout_seconds",
    default: Default::Number(|limits| limits.call_timeout.as_secs()),
    about: "from when a call is sent; it starts again whenever the server tells of progress",
    ..SECONDS
};
pub(super) const CALL_TIMEOUT_MAX: ServerKey = ServerKey {
    name: "call_timeout_max_seconds",
    default: Default::Number(|limits| limits.call_timeout_max.as_secs()),
    about: "what code can give one call of its own, `call_tool(..., timeout=SECONDS)`",
    ..SECONDS
};
pub(super) const PARALLEL_CALLS: ServerKey = ServerKey {
    name: "parallel_calls",
    kind: Kind::Whole,
    range: Some(Range::Numbers { least: 1.0, most: 1_024.0 }),
    default: Default::Number(|limits| limits.calls_max as u64),
    about: "further ones wait",
    ..TEXT
};
pub(super) const QUEUE: ServerKey = ServerKey {
    name: "queue",
    kind: Kind::Whole,
    range: Some(Range::Numbers { least: 0.0, most: 65_536.0 }),
    default: Default::Number(|limits| limits.queue_max as u64),
    about: "calls that may wait",
    ..TEXT
};
pub(super) const QUEUE_TIMEOUT: ServerKey = ServerKey {
    name: "queue_timeout_seconds",
    default: Default::Number(|limits| limits.queue_timeout.as_secs()),
    about: "that a call may wait",
    ..SECONDS
};
pub(super) const DECODE: ServerKey = ServerKey {
    name: "decode",
    range: Some(Range::OneOf(&["text", "json"])),
    default: Default::Words("`\"text\"`"),
    about: "`\"json\"`: an object or array that the server answers as text is given to code as that value, several such texts as \
            a list; other text stays text",
    ..TEXT
};
pub(super) const EXPOSE: ServerKey = ServerKey {
    name: "expose",
    range: Some(Range::OneOf(&["code", "direct", "both"])),
    default: Default::Words("`\"code\"`"),
    about: "`\"code\"`: code imports it; `\"direct\"`: [the AI client has it](direct.md) among its own tools, resources and \
            prompts, and code does not; `\"both\"`",
    ..TEXT
};
pub(super) const ON_CHANGE: ServerKey = ServerKey {
    name: "on_change",
    range: Some(Range::OneOf(&["warn", "ask", "block"])),
    default: Default::Words(
        "`\"warn\"`; `\"ask\"` for servers of AI clients' files and for those that `lockhouse import` wrote",
    ),
    about: "what becomes of a tool that [no person has accepted as it is](servers.md#when-its-tools-change), where the policy \
            does not say: `\"warn\"` calls it and warns in the log, `\"ask\"` waits for `lockhouse server accept`, `\"block\"` \
            denies",
    ..TEXT
};
pub(super) const GRANT: ServerKey = ServerKey {
    name: "grant",
    range: Some(Range::OneOf(&["authorization_code", "client_credentials"])),
    about: "with the second client_id, and client_secret or private_key",
    example: Some("\"authorization_code\""),
    ..TEXT
};
pub(super) const SIGNING_ALGORITHM: ServerKey = ServerKey {
    name: "signing_algorithm",
    range: Some(Range::OneOf(&["RS256", "RS384", "RS512", "ES256", "ES384"])),
    about: "of private_key",
    example: Some("\"ES256\""),
    ..TEXT
};
pub(super) const CALLBACK_PORT: ServerKey = ServerKey {
    name: "callback_port",
    kind: Kind::Whole,
    range: Some(Range::Numbers { least: 1.0, most: 65_535.0 }),
    default: Default::Words("any free one"),
    example: Some("8917"),
    ..TEXT
};

pub(super) const OF_SANDBOXES: &[ServerKey] = &[
    ServerKey { name: "read", ..TEXTS },
    ServerKey { name: "write", ..TEXTS },
    ServerKey { name: "network", ..FLAG },
];

pub(super) const OF_OAUTH: &[ServerKey] = &[
    GRANT,
    ServerKey { name: "client_id", example: Some("\"lockhouse\""), ..TEXT },
    ServerKey { name: "client_secret", example: Some("\"${cred:docs-secret}\""), ..TEXT },
    ServerKey {
        name: "private_key",
        about: "instead of client_secret",
        example: Some("\"${file:/etc/lockhouse/docs.pem}\""),
        ..TEXT
    },
    SIGNING_ALGORITHM,
    ServerKey { name: "scopes", example: Some("[\"read\"]"), ..TEXTS },
    CALLBACK_PORT,
];

/// Of a server that is a process; only the first makes it one.
pub(super) const OF_COMMANDS: &[ServerKey] = &[
    ServerKey { name: "command", example: Some("\"github-mcp-server\""), ..TEXT },
    ServerKey { name: "args", example: Some("[\"stdio\"]"), ..TEXTS },
    ServerKey {
        name: "env",
        kind: Kind::TextsByName,
        example: Some(
            "{ GITHUB_TOKEN = \"${file:/home/ada/.config/lockhouse/secrets/github.GITHUB_TOKEN}\" }",
        ),
        ..TEXT
    },
    ServerKey { name: "cwd", example: Some("\"/srv\""), ..TEXT },
    ServerKey {
        name: "sandbox",
        kind: Kind::Keys(OF_SANDBOXES),
        default: Default::Words("what this user may do"),
        about: "see below",
        example: Some("{ read = [\"~/repos\"], write = [\"/srv/cache\"], network = true }"),
        ..TEXT
    },
];

/// Of a server that is reached over HTTP; only the first makes it one.
pub(super) const OF_URLS: &[ServerKey] = &[
    ServerKey {
        name: "url",
        about: "streamable HTTP",
        example: Some("\"https://mcp.example.com/mcp\""),
        ..TEXT
    },
    ServerKey { name: "headers", kind: Kind::TextsByName, example: Some("{ X-Team = \"core\" }"), ..TEXT },
    ServerKey {
        name: "bearer_token",
        about: "or oauth, or neither: `lockhouse server login` when the server asks",
        example: Some("\"${env:DOCS_TOKEN}\""),
        ..TEXT
    },
    ServerKey { name: "oauth", kind: Kind::Keys(OF_OAUTH), ..TEXT },
];

pub(super) const OF_ANY: &[ServerKey] = &[
    ServerKey {
        name: "enabled",
        default: Default::Words("`true`"),
        about: "whether it is used at all",
        ..FLAG
    },
    START,
    IDLE_STOP,
    START_TIMEOUT,
    CALL_TIMEOUT,
    CALL_TIMEOUT_MAX,
    PARALLEL_CALLS,
    QUEUE,
    QUEUE_TIMEOUT,
    ServerKey { name: "enabled_tools", default: Default::Words("every tool"), about: "exact names", ..TEXTS },
    ServerKey {
        name: "disabled_tools",
        default: Default::Words("none"),
        about: "exact names; both take away, and never permit: that is the policy's business",
        ..TEXTS
    },
    DECODE,
    EXPOSE,
    ServerKey {
        name: "prefix",
        default: Default::Words("the server's name"),
        about: "with `expose = \"direct\"` or `\"both\"`: what stands before the names of its tools and prompts, at most 32 \
                characters of `A-Z a-z 0-9 _ -`; `\"\"` for nothing",
        ..TEXT
    },
    ON_CHANGE,
    ServerKey { name: "description", about: "for people", ..TEXT },
];

/// Every key of a server.
pub(super) fn all() -> impl Iterator<Item = &'static ServerKey> {
    OF_COMMANDS.iter().chain(OF_URLS).chain(OF_ANY)
}

impl ServerKey {
    fn schema(&self) -> Value {
        match self.kind {
            Kind::Text => json!({"type": "string"}),
            Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Kind::TextsByName => json!({"type": "object", "additionalProperties": {"type": "string"}}),
            Kind::Flag => json!({"type": "boolean"}),
            Kind::Whole => json!({"type": "integer"}),
            Kind::Keys(keys) => {
                let properties: Map<String, Value> =
                    keys.iter().map(|key| (key.name.to_owned(), key.spec().to_schema())).collect();
                json!({"type": "object", "additionalProperties": false, "properties": properties})
            }
        }
    }

    pub(super) fn spec(&self) -> KeySpec {
        let (default, default_words) = match self.default {
            Default::Nothing => (None, None),
            Default::Words(words) => (None, Some(words.to_owned())),
            Default::Number(number) => (Some(number(&ServerLimits::default()).to_string()), None),
        };
        KeySpec {
            name: self.name,
            about: self.about.to_owned(),
            schema: self.schema(),
            default,
            default_words,
            example: self.example,
            range: self.range,
            is_required: false,
        }
    }
}

fn table(path: &'static str, about: &'static str, keys: &[ServerKey]) -> TableSpec {
    let is_plain = |key: &&ServerKey| key.name != "oauth";
    TableSpec {
        path,
        about,
        keys: keys.iter().filter(is_plain).map(ServerKey::spec).collect(),
        tables: Vec::new(),
    }
}

/// A server of each kind, for examples.
pub(super) fn examples() -> [TableSpec; 3] {
    [
        table(
            "servers.github",
            "an upstream server that is a process: command, or one that is reached over HTTP: url",
            OF_COMMANDS,
        ),
        table("servers.docs", "", OF_URLS),
        table("servers.docs.oauth", "a client of one's own; not together with bearer_token", OF_OAUTH),
    ]
}

/// The keys that a server of any kind can have.
pub(super) fn of_any() -> TableSpec {
    table("servers.NAME", "any server", OF_ANY)
}
