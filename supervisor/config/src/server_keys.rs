//! Declares the keys of `[servers.NAME]` in `config.toml`, each once. `dialects::own_format` reads these keys without
//! serde, since errors of serde would show lines that may hold secrets.

use lockhouse_upstream::{ConfinementProfile, HttpTransport, ProtocolMinimum, ServerLimits, TextDecoding};
use serde_json::{Map, Value, json};

use super::keys::{KeySpec, Range, TableSpec};

/// The declaration of a key of `[servers.NAME]`.
#[derive(Clone, Copy)]
pub(super) struct ServerKey {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) range: Option<Range>,
    default: Default,
    description: &'static str,
    /// An example value of the key as TOML.
    example: Option<&'static str>,
}

/// The default of a key of `[servers.NAME]`.
#[derive(Clone, Copy)]
enum Default {
    Nothing,
    Text(&'static str),
    Number(fn(&ServerLimits) -> u64),
}

/// The type of the value of a key.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    Texts,
    TextsByName,
    Flag,
    WholeNumber,
    Keys(&'static [ServerKey]),
}

const TEXT: ServerKey = ServerKey {
    name: "",
    kind: Kind::Text,
    range: None,
    default: Default::Nothing,
    description: "",
    example: None,
};
const TEXTS: ServerKey = ServerKey { kind: Kind::Texts, ..TEXT };
const FLAG: ServerKey = ServerKey { kind: Kind::Flag, ..TEXT };
const SECONDS: ServerKey =
    ServerKey { kind: Kind::WholeNumber, range: Some(Range::Numbers { least: 1.0, most: 86_400.0 }), ..TEXT };

pub(super) const START: ServerKey = ServerKey {
    name: "start",
    range: Some(Range::OneOf(&["eager", "lazy"])),
    default: Default::Text("`\"eager\"`"),
    description: "`\"eager\"`: with Lockhouse; `\"lazy\"`: when the server is first needed",
    ..TEXT
};
pub(super) const PROTOCOL: ServerKey = ServerKey {
    name: "protocol",
    range: Some(Range::OneOf(&["2025-11-25"])),
    default: Default::Text("the newest that both sides know"),
    description: "`\"2025-11-25\"`: speak this or an earlier version with the server, for a server that knows 2026-07-28 \
            but still sends requests to its client",
    ..TEXT
};
pub(super) const PROTOCOL_MINIMUM: ServerKey = ServerKey {
    name: "protocol_minimum",
    range: Some(Range::OneOf(&ProtocolMinimum::NAMES)),
    default: Default::Text("`\"2024-11-05\"`"),
    description: "oldest protocol version that the server may answer; with an older one, or one that Lockhouse does not know, the server is not used. `\"any\"` permits all",
    ..TEXT
};
pub(super) const IDLE_STOP: ServerKey = ServerKey {
    name: "idle_stop_seconds",
    default: Default::Text("never"),
    description: "time without a call after which the server is stopped; it is restarted when needed",
    ..SECONDS
};
pub(super) const START_TIMEOUT: ServerKey = ServerKey {
    name: "start_timeout_seconds",
    default: Default::Number(|limits| limits.start_timeout.as_secs()),
    description: "time limit from the start until the server has listed its tools; doubled after each start that took longer, up to 8 times",
    ..SECONDS
};
pub(super) const CALL_TIMEOUT: ServerKey = ServerKey {
    name: "call_timeout_seconds",
    default: Default::Number(|limits| limits.call_timeout.as_secs()),
    description: "time limit of a call; it restarts whenever the server reports progress",
    ..SECONDS
};
pub(super) const CALL_TIMEOUT_MAX: ServerKey = ServerKey {
    name: "call_timeout_max_seconds",
    default: Default::Number(|limits| limits.call_timeout_max.as_secs()),
    description: "largest time limit that code can set for one call, `call_tool(..., timeout=SECONDS)`",
    ..SECONDS
};
pub(super) const PARALLEL_CALLS: ServerKey = ServerKey {
    name: "parallel_calls",
    kind: Kind::WholeNumber,
    range: Some(Range::Numbers { least: 1.0, most: 1_024.0 }),
    default: Default::Number(|limits| limits.calls_max as u64),
    description: "concurrent calls; further ones wait",
    ..TEXT
};
pub(super) const QUEUE: ServerKey = ServerKey {
    name: "queue",
    kind: Kind::WholeNumber,
    range: Some(Range::Numbers { least: 0.0, most: 65_536.0 }),
    default: Default::Number(|limits| limits.queue_max as u64),
    description: "number of calls that may wait",
    ..TEXT
};
pub(super) const QUEUE_TIMEOUT: ServerKey = ServerKey {
    name: "queue_timeout_seconds",
    default: Default::Number(|limits| limits.queue_timeout.as_secs()),
    description: "how long a call may wait",
    ..SECONDS
};
pub(super) const DECODE: ServerKey = ServerKey {
    name: "decode",
    range: Some(Range::OneOf(&TextDecoding::NAMES)),
    default: Default::Text("`\"auto\"`"),
    description: "which text results that are, whole, a JSON object, array or null programs get as values: `\"auto\"`: of tools \
            that declare no output schema; `\"json\"`: of all tools; `\"list\"`: of all tools, and always as a list; \
            `\"text\"`: none",
    ..TEXT
};
pub(super) const EXPOSE: ServerKey = ServerKey {
    name: "expose",
    range: Some(Range::OneOf(&["code", "direct", "both"])),
    default: Default::Text("`\"code\"`"),
    description: "`\"code\"`: code can import the server; `\"direct\"`: [the AI client sees its tools, resources and prompts \
            directly](direct.md), and code cannot use them; `\"both\"`: both",
    ..TEXT
};
pub(super) const ON_CHANGE: ServerKey = ServerKey {
    name: "on_change",
    range: Some(Range::OneOf(&["warn", "ask", "block"])),
    default: Default::Text(
        "`\"warn\"`; `\"ask\"` for servers in AI clients' files and servers written by `lockhouse import`",
    ),
    description: "what happens to tools whose definition [nobody has accepted](servers.md#when-its-tools-change), unless the policy \
            says otherwise: `\"warn\"` calls them and logs a warning, `\"ask\"` waits for `lockhouse server accept`, \
            `\"block\"` denies them",
    ..TEXT
};
pub(super) const TRANSPORT: ServerKey = ServerKey {
    name: "transport",
    range: Some(Range::OneOf(&HttpTransport::NAMES)),
    default: Default::Text("`\"http\"`"),
    description: "\"http\": streamable HTTP; \"sse\": HTTP+SSE, which MCP has deprecated, for a server that has nothing else",
    example: Some("\"http\""),
    ..TEXT
};
pub(super) const GRANT: ServerKey = ServerKey {
    name: "grant",
    range: Some(Range::OneOf(&["authorization_code", "client_credentials"])),
    description: "\"client_credentials\" requires client_id, and client_secret or private_key",
    example: Some("\"authorization_code\""),
    ..TEXT
};
pub(super) const SIGNING_ALGORITHM: ServerKey = ServerKey {
    name: "signing_algorithm",
    range: Some(Range::OneOf(&["RS256", "RS384", "RS512", "ES256", "ES384"])),
    description: "signature algorithm for private_key",
    example: Some("\"ES256\""),
    ..TEXT
};
pub(super) const CALLBACK_PORT: ServerKey = ServerKey {
    name: "callback_port",
    kind: Kind::WholeNumber,
    range: Some(Range::Numbers { least: 1.0, most: 65_535.0 }),
    default: Default::Text("any free one"),
    example: Some("8917"),
    ..TEXT
};

pub(super) const SANDBOX_PROFILE: ServerKey = ServerKey {
    name: "profile",
    range: Some(Range::OneOf(&ConfinementProfile::NAMES)),
    default: Default::Text("none"),
    description: "permissions that Lockhouse derives from how the server is started; read and write add to them",
    ..TEXT
};
pub(super) const SANDBOX_KEYS: &[ServerKey] = &[
    SANDBOX_PROFILE,
    ServerKey { name: "read", ..TEXTS },
    ServerKey { name: "write", ..TEXTS },
    ServerKey { name: "network", ..FLAG },
    ServerKey {
        name: "user_namespaces",
        description: "whether it may create user namespaces, as browsers do for their own sandbox",
        ..FLAG
    },
];

pub(super) const OAUTH_KEYS: &[ServerKey] = &[
    GRANT,
    ServerKey { name: "client_id", example: Some("\"lockhouse\""), ..TEXT },
    ServerKey { name: "client_secret", example: Some("\"${cred:docs-secret}\""), ..TEXT },
    ServerKey {
        name: "private_key",
        description: "instead of client_secret",
        example: Some("\"${file:/etc/lockhouse/docs.pem}\""),
        ..TEXT
    },
    SIGNING_ALGORITHM,
    ServerKey { name: "scopes", example: Some("[\"read\"]"), ..TEXTS },
    CALLBACK_PORT,
];

pub(super) const RUN_AS: ServerKey = ServerKey {
    name: "run_as",
    range: Some(Range::OneOf(&["engine", "user"])),
    default: Default::Text("`\"engine\"`"),
    description: "`\"user\"`: on a [managed host](managed-host.md) in the session of the person, whose files the server needs. \
            Elsewhere, both are the account of Lockhouse",
    example: Some("\"user\""),
    ..TEXT
};

/// The keys of upstream servers that Lockhouse starts as processes. Only `command` is required.
pub(super) const CLUSTER: ServerKey = ServerKey {
    name: "cluster",
    range: Some(Range::OneOf(&["each", "one"])),
    default: Default::Text("`\"each\"`"),
    description: "`\"one\"`: all hosts of a [cluster](cluster.md#servers-that-remember-something) use one process of the server, \
            because it remembers something",
    example: Some("\"each\""),
    ..TEXT
};

pub(super) const COMMAND_KEYS: &[ServerKey] = &[
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
        kind: Kind::Keys(SANDBOX_KEYS),
        default: Default::Text("no sandbox"),
        description: "see below",
        example: Some(
            "{ profile = \"default\", read = [\"~/repos\"], write = [\"/srv/cache\"], network = true }",
        ),
        ..TEXT
    },
    RUN_AS,
    CLUSTER,
];

pub(super) const FILE_MIB: ServerKey = ServerKey {
    name: "file_mib",
    kind: Kind::WholeNumber,
    range: Some(Range::Numbers { least: 1.0, most: 4_096.0 }),
    default: Default::Text("64"),
    description: "size of a file that is read or written",
    example: Some("64"),
};

/// The keys of the built-in server `files`.
pub(super) const FILES_KEYS: &[ServerKey] = &[
    ServerKey {
        name: "read",
        default: Default::Text("none"),
        description: "paths that programs may read if the policy permits it: folders, files, or patterns in which * matches \
                any part of a name and ** any number of folders, but no name that begins with a dot",
        example: Some("[\"~/data/**/*.csv\"]"),
        ..TEXTS
    },
    ServerKey {
        name: "write",
        default: Default::Text("none"),
        description: "the same for paths that programs may write",
        example: Some("[\"~/reports\"]"),
        ..TEXTS
    },
    FILE_MIB,
];

/// The keys of upstream servers that are reached over HTTP. Only `url` is required.
pub(super) const URL_KEYS: &[ServerKey] = &[
    ServerKey {
        name: "url",
        description: "endpoint for streamable HTTP; `unix:/PATH` for a [server that another service \
                starts](managed-host.md#servers) for each connection to this socket",
        example: Some("\"https://mcp.example.com/mcp\""),
        ..TEXT
    },
    TRANSPORT,
    ServerKey { name: "headers", kind: Kind::TextsByName, example: Some("{ X-Team = \"core\" }"), ..TEXT },
    ServerKey {
        name: "bearer_token",
        description: "or oauth, or neither: `lockhouse server login` if the server requires a login",
        example: Some("\"${env:DOCS_TOKEN}\""),
        ..TEXT
    },
    ServerKey { name: "oauth", kind: Kind::Keys(OAUTH_KEYS), ..TEXT },
    ServerKey {
        name: "proxy",
        default: Default::Text("that of the environment; none if requirements fix or approve the server"),
        description: "HTTP proxy over which the server is reached",
        example: Some("\"http://proxy.example.com:3128\""),
        ..TEXT
    },
];

pub(super) const AUTH: ServerKey = ServerKey {
    name: "auth",
    range: Some(Range::OneOf(&["service", "per_user"])),
    default: Default::Text("`\"service\"`"),
    description: "whose credentials calls use: `\"service\"`: those of this entry, or of `lockhouse server login`, for all; `\"per_user\"`: \
            [each user's own](users.md), with a connection or process for each",
    ..TEXT
};

pub(super) const EXCHANGE: ServerKey = ServerKey {
    name: "exchange",
    range: Some(Range::OneOf(&["token", "assertion"])),
    default: Default::Text("none: users log in"),
    description: "with `auth = \"per_user\"`: how the [OAuth token of a user](users.md#one-login-for-all-servers) becomes a token for this \
            server: `\"token\"` (RFC 8693) or `\"assertion\"` (MCP's enterprise-managed authorization)",
    ..TEXT
};

pub(super) const TOKEN: ServerKey = ServerKey {
    name: "token",
    range: Some(Range::OneOf(&["per_user", "per_run"])),
    default: Default::Text("`\"per_user\"`"),
    description: "with `exchange`: how long an exchanged token is used: `\"per_user\"`: by all runs of the user, `\"per_run\"`: by \
            [one run](users.md#a-token-for-each-run) and for calls with the same scopes",
    ..TEXT
};

pub(super) const COMMON_KEYS: &[ServerKey] = &[
    ServerKey {
        name: "enabled",
        default: Default::Text("`true`"),
        description: "whether the server is used",
        ..FLAG
    },
    START,
    IDLE_STOP,
    PROTOCOL,
    PROTOCOL_MINIMUM,
    START_TIMEOUT,
    CALL_TIMEOUT,
    CALL_TIMEOUT_MAX,
    PARALLEL_CALLS,
    QUEUE,
    QUEUE_TIMEOUT,
    ServerKey {
        name: "enabled_tools",
        default: Default::Text("every tool"),
        description: "exact names of the tools that can be used",
        ..TEXTS
    },
    ServerKey {
        name: "disabled_tools",
        default: Default::Text("none"),
        description: "exact names of tools that cannot be used; both lists only restrict, and the policy alone permits",
        ..TEXTS
    },
    DECODE,
    EXPOSE,
    ServerKey {
        name: "prefix",
        default: Default::Text("the server's name"),
        description: "with `expose = \"direct\"` or `\"both\"`: prefix of the names of its tools and prompts, at most 32 characters \
                of `A-Z a-z 0-9 _ -`; `\"\"` for no prefix",
        ..TEXT
    },
    ON_CHANGE,
    ServerKey {
        name: "share",
        default: Default::Text("`true`"),
        description: "whether AI clients may share one process of the server; if not, each client of a service has a process of its own, at most 65, which is stopped after `idle_stop_seconds` (600) without a call: see `[sharing]`",
        ..FLAG
    },
    AUTH,
    ServerKey {
        name: "user_secret",
        default: Default::Text("none: users log in with OAuth"),
        description: "with `auth = \"per_user\"`: name of the header, or of the environment variable of a program, that carries the \
                user's own secret",
        ..TEXT
    },
    EXCHANGE,
    ServerKey {
        name: "exchange_audience",
        default: Default::Text("none: its URL alone"),
        description: "with `exchange = \"token\"`: what the identity provider calls the server",
        ..TEXT
    },
    TOKEN,
    ServerKey {
        name: "tool_scopes",
        default: Default::Text("none: `scopes` of `oauth`"),
        description: "with `token = \"per_run\"`: further scopes of the token for calls of a tool, by its name, or the beginning of \
                names and `*`; several are separated by spaces",
        example: Some("{ \"list_*\" = \"read\", refund = \"read write\" }"),
        kind: Kind::TextsByName,
        ..TEXT
    },
    ServerKey { name: "description", description: "a note for people", ..TEXT },
];

/// Returns all keys of `[servers.NAME]`.
pub(super) fn all() -> impl Iterator<Item = &'static ServerKey> {
    COMMAND_KEYS.iter().chain(URL_KEYS).chain(COMMON_KEYS)
}

impl ServerKey {
    fn schema(&self) -> Value {
        match self.kind {
            Kind::Text => json!({"type": "string"}),
            Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Kind::TextsByName => json!({"type": "object", "additionalProperties": {"type": "string"}}),
            Kind::Flag => json!({"type": "boolean"}),
            Kind::WholeNumber => json!({"type": "integer"}),
            Kind::Keys(keys) => {
                let properties: Map<String, Value> =
                    keys.iter().map(|key| (key.name.to_owned(), key.spec().to_schema())).collect();
                json!({"type": "object", "additionalProperties": false, "properties": properties})
            }
        }
    }

    pub(super) fn spec(&self) -> KeySpec {
        let (default, default_text) = match self.default {
            Default::Nothing => (None, None),
            Default::Text(words) => (None, Some(words.to_owned())),
            Default::Number(number) => (Some(number(&ServerLimits::default()).to_string()), None),
        };
        KeySpec {
            name: self.name,
            description: self.description.to_owned(),
            schema: self.schema(),
            default,
            default_text,
            example: self.example,
            range: self.range,
            is_required: false,
        }
    }
}

fn table(path: &'static str, description: &'static str, keys: &[ServerKey]) -> TableSpec {
    let is_plain = |key: &&ServerKey| key.name != "oauth";
    TableSpec {
        path,
        description,
        keys: keys.iter().filter(is_plain).map(ServerKey::spec).collect(),
        tables: Vec::new(),
    }
}

/// Returns example tables for the reference: a server that is a process, a server over HTTP, an OAuth client, and the
/// built-in server `files`.
pub(super) fn examples() -> [TableSpec; 4] {
    [
        table(
            "servers.github",
            "an upstream server that runs as a process (command), or is reached over HTTP (url)",
            COMMAND_KEYS,
        ),
        table("servers.docs", "", URL_KEYS),
        table(
            "servers.docs.oauth",
            "an OAuth client that is registered for Lockhouse; not together with bearer_token",
            OAUTH_KEYS,
        ),
        table(
            "servers.files",
            "the built-in server that reads and writes files of this machine: see files.md",
            FILES_KEYS,
        ),
    ]
}

/// Returns the declaration of the keys that all upstream servers have in common.
pub(super) fn common_keys() -> TableSpec {
    table("servers.NAME", "any server", COMMON_KEYS)
}
