//! Packages that no program can use in the sandbox, with the reason.

use lockhouse_config::PackageSpec;

use super::PythonError;

const NETWORK: &str = "a sandboxed worker has no network; add an MCP server whose tools make the requests, with `lockhouse server add`";
const PROCESSES: &str = "a sandboxed worker starts no processes";
const MACHINE_CODE: &str = "a sandboxed worker cannot generate machine code, since no memory can become executable; numpy and polars work \
     without it";
const INSTALLERS: &str = "programs install nothing; `lockhouse python add` does";

/// Packages by reason. The names are normalised.
const UNUSABLE: [(&str, &[&str]); 4] = [
    (
        NETWORK,
        &[
            "requests",
            "httpx",
            "urllib3",
            "aiohttp",
            "boto3",
            "botocore",
            "selenium",
            "playwright",
            "paramiko",
            "websockets",
            "websocket-client",
            "pycurl",
            "redis",
            "pymongo",
            "psycopg",
            "psycopg2",
            "psycopg2-binary",
            "mysql-connector-python",
            "pymysql",
            "grpcio",
            "slack-sdk",
            "openai",
            "anthropic",
            "google-api-python-client",
            "scrapy",
            "fastapi",
            "flask",
            "django",
            "uvicorn",
            "mcp",
            "fastmcp",
        ],
    ),
    (PROCESSES, &["celery", "dask", "ray", "pexpect", "docker", "gitpython", "psutil"]),
    (MACHINE_CODE, &["numba", "llvmlite", "jax", "jaxlib", "cffi"]),
    (INSTALLERS, &["pip", "setuptools", "uv", "poetry", "virtualenv"]),
];

/// Rejects a package that no program can use. Such a package can still be installed because another one requires it.
pub(super) fn refuse_unusable(package: &PackageSpec) -> Result<(), PythonError> {
    let name = package.normalized_name();
    let reason = UNUSABLE.iter().find(|(_, names)| names.contains(&name.as_str()));
    reason.map_or(Ok(()), |(reason, _)| Err(PythonError::Unusable { name, reason }))
}
