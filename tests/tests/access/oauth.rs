//! Tests of authentication by OAuth access tokens, which an external authorization server issues.

use lockhouse_tests::{HttpAnswer, Issuer, Lockhouse, Signer, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use crate::access::{error_description, list_tools, status_and_error, token};

const AUDIENCE: &str = "https://lockhouse.example.com/mcp";

/// Returns a daemon configuration that accepts access tokens of the authorization server `issuer` for the audience
/// `AUDIENCE`. `more` has additional keys of `[http.oauth]`.
fn config(issuer: &Issuer, more: &str) -> String {
    format!(
        "[http]\nauth = [\"oauth\", \"token\"]\n[http.oauth]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\nrefetch_seconds = 1\n{more}\n\
         [http.oauth.scopes]\n\"mcp:all\" = [\"*\"]\n\"mcp:files\" = [\"files\", \"web.get*\"]\n",
        issuer.name()
    )
}

/// Returns the JSON Web Token claims `claims` with those in `others` replaced. A `null` in `others` removes the claim.
fn with_claims(claims: &Value, others: Value) -> Value {
    let mut claims = claims.as_object().unwrap().clone();
    for (name, value) in others.as_object().unwrap().clone() {
        match value {
            Value::Null => drop(claims.remove(&name)),
            value => drop(claims.insert(name, value)),
        }
    }
    claims.into()
}

/// Returns the JSON Web Token `token` with its header replaced and its signature unchanged.
fn with_header(token: &str, header: &Value) -> String {
    let (_, rest) = token.split_once('.').unwrap();
    format!("{}.{rest}", base64(header.to_string().as_bytes()))
}

/// Encodes bytes as base64url without padding, as JSON Web Tokens do.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for digit in 0..=three.len() {
            text.push(char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize]));
        }
    }
    text
}

#[tokio::test]
async fn only_an_unexpired_token_of_the_issuer_for_this_audience_is_accepted() {
    let (own, rsa, stranger) = (Signer::es256("one"), Signer::rs256("two"), Signer::es256("one"));
    let unpublished = Signer::es256("three");
    let issuer = Issuer::start(&[&own, &rsa]);
    let lockhouse = Lockhouse::new().config(&config(&issuer, ""));
    let ours = token(&lockhouse, &["desk"]);
    let daemon = lockhouse.daemon().await;
    let good = issuer.claims("ada", AUDIENCE, "openid mcp:all");
    let now = good["iat"].as_u64().unwrap();
    let valid = own.sign(&good);
    let (head, rest) = valid.split_once('.').unwrap();
    let (body, signature) = rest.split_once('.').unwrap();
    let forged = base64(with_claims(&good, json!({"sub": "root"})).to_string().as_bytes());
    let none = base64(br#"{"alg":"none","typ":"JWT"}"#);
    let invalid = "401 invalid_token";
    let mut table = Table::new("tokens of an authorization server");
    let rows: Vec<(&str, String, &str, &str)> = vec![
        ("control: ES256", valid.clone(), "200", ""),
        ("control: RS256", rsa.sign(&good), "200", ""),
        (
            "control: one of several audiences",
            own.sign(&with_claims(&good, json!({"aud": ["x", AUDIENCE]}))),
            "200",
            "",
        ),
        (
            "control: scopes in scp",
            own.sign(&with_claims(&good, json!({"scope": null, "scp": ["mcp:all"]}))),
            "200",
            "",
        ),
        ("control: our own token", ours, "200", ""),
        (
            "a foreign audience",
            own.sign(&with_claims(&good, json!({"aud": "https://other.example.com/mcp"}))),
            invalid,
            "for another server",
        ),
        (
            "an audience with a common prefix",
            own.sign(&with_claims(&good, json!({"aud": format!("{AUDIENCE}/x")}))),
            invalid,
            "for another server",
        ),
        ("no audience", own.sign(&with_claims(&good, json!({"aud": null}))), invalid, "no audience"),
        (
            "another issuer",
            own.sign(&with_claims(&good, json!({"iss": "https://id.example.com"}))),
            invalid,
            "has another issuer",
        ),
        (
            "the issuer with a slash",
            own.sign(&with_claims(&good, json!({"iss": format!("{}/", issuer.name())}))),
            invalid,
            "has another issuer",
        ),
        (
            "a list of issuers",
            own.sign(&with_claims(&good, json!({"iss": [issuer.name(), "x"]}))),
            invalid,
            "",
        ),
        ("no issuer", own.sign(&with_claims(&good, json!({"iss": null}))), invalid, ""),
        ("expired", own.sign(&with_claims(&good, json!({"exp": now - 120}))), invalid, "has expired"),
        (
            "control: expired within the leeway",
            own.sign(&with_claims(&good, json!({"exp": now - 20}))),
            "200",
            "",
        ),
        ("no expiry", own.sign(&with_claims(&good, json!({"exp": null}))), invalid, ""),
        (
            "an expiry that is not a number",
            own.sign(&with_claims(&good, json!({"exp": "never"}))),
            invalid,
            "",
        ),
        (
            "not valid yet",
            own.sign(&with_claims(&good, json!({"nbf": now + 3_600}))),
            invalid,
            "not valid yet",
        ),
        (
            "issued in the future",
            own.sign(&with_claims(&good, json!({"iat": now + 3_600}))),
            invalid,
            "in the future",
        ),
        ("no subject", own.sign(&with_claims(&good, json!({"sub": null}))), invalid, ""),
        (
            "a subject with a zero-width space",
            own.sign(&with_claims(&good, json!({"sub": "ad\u{200b}a"}))),
            invalid,
            "subject",
        ),
        (
            "a subject with a soft hyphen",
            own.sign(&with_claims(&good, json!({"sub": "ad\u{ad}a"}))),
            invalid,
            "subject",
        ),
        (
            "a subject with a tag",
            own.sign(&with_claims(&good, json!({"sub": "ada\u{e0061}"}))),
            invalid,
            "subject",
        ),
        (
            "a subject with a right-to-left override",
            own.sign(&with_claims(&good, json!({"sub": "\u{202e}ada"}))),
            invalid,
            "subject",
        ),
        (
            "a subject with a confusable letter",
            own.sign(&with_claims(&good, json!({"sub": "\u{430}da"}))),
            invalid,
            "subject",
        ),
        (
            "a subject that is not normalized",
            own.sign(&with_claims(&good, json!({"sub": "e\u{301}"}))),
            invalid,
            "subject",
        ),
        (
            "control: a subject of ASCII",
            own.sign(&with_claims(&good, json!({"sub": "auth0|ada+1@example.com"}))),
            "200",
            "",
        ),
        ("typ of an access token", own.sign_as("at+jwt", &good), "200", ""),
        ("typ as a media type", own.sign_as("Application/AT+JWT", &good), "200", ""),
        ("typ that says nothing more", own.sign_as("jwt", &good), "200", ""),
        ("typ of a proof of DPoP", own.sign_as("dpop+jwt", &good), invalid, "not an access token"),
        ("typ of a logout", own.sign_as("logout+jwt", &good), invalid, "not an access token"),
        (
            "typ of an introspection",
            own.sign_as("token-introspection+jwt", &good),
            invalid,
            "not an access token",
        ),
        ("an empty typ", own.sign_as("", &good), invalid, "not an access token"),
        ("an empty subject", own.sign(&with_claims(&good, json!({"sub": ""}))), invalid, "subject"),
        ("a subject with a line", own.sign(&with_claims(&good, json!({"sub": "a\nb"}))), invalid, "subject"),
        (
            "a subject that is too long",
            own.sign(&with_claims(&good, json!({"sub": "a".repeat(70)}))),
            invalid,
            "subject",
        ),
        ("alg none", format!("{none}.{body}."), invalid, "not a signed JSON Web Token"),
        (
            "alg none with the signature",
            format!("{none}.{body}.{signature}"),
            invalid,
            "not a signed JSON Web Token",
        ),
        (
            "HS256 with the public key",
            own.sign_with_the_public_key(&good),
            invalid,
            "an algorithm that is not accepted",
        ),
        ("other claims under the signature", format!("{head}.{forged}.{signature}"), invalid, "signature"),
        ("no signature", format!("{head}.{body}."), invalid, ""),
        ("an unknown key with a published key id", stranger.sign(&good), invalid, "signature"),
        (
            "a key that is not published",
            unpublished.sign(&good),
            invalid,
            "not one of the authorization server's",
        ),
        (
            "a published key with another algorithm",
            with_header(&valid, &json!({"alg": "ES256", "kid": "two"})),
            invalid,
            "not one of the authorization server's",
        ),
        (
            "no key id; one published key per algorithm",
            with_header(&valid, &json!({"alg": "ES256"})),
            invalid,
            "signature",
        ),
        (
            "an unknown critical header",
            with_header(&valid, &json!({"alg": "ES256", "kid": "one", "crit": ["x"], "x": 1})),
            invalid,
            "",
        ),
        (
            "a key in the token itself",
            with_header(&stranger.sign(&good), &json!({"alg": "ES256", "jwk": stranger.public()})),
            invalid,
            "signature",
        ),
        ("no token", "a.b.c".into(), invalid, "not a signed JSON Web Token"),
        ("a very long token", format!("{valid}{}", "A".repeat(20_000)), invalid, "too long"),
        (
            "no scope of Lockhouse",
            own.sign(&with_claims(&good, json!({"scope": "openid email"}))),
            "403 insufficient_scope",
            "grants anything",
        ),
        (
            "no scope",
            own.sign(&with_claims(&good, json!({"scope": null}))),
            "403 insufficient_scope",
            "grants anything",
        ),
    ];
    for (name, token, expected, description) in &rows {
        let reply = list_tools(&daemon.http_client(Some(token))).await;
        let challenge = reply.header("www-authenticate");
        let challenged = *expected == "200"
            || (challenge.contains("resource_metadata=\"https://lockhouse.example.com/.well-known/oauth-protected-resource/mcp\"")
                && challenge.contains("scope=\"mcp:all mcp:files\""));
        let holds = status_and_error(&reply) == *expected
            && error_description(&reply).contains(description)
            && challenged;
        // A token that exceeds the header size limit is rejected before authentication.
        let is_cut = token.len() > 16_000 && reply.status == 431;
        table.row(*name, ensure(holds || is_cut, format!("{} {challenge} {}", reply.status, reply.body)));
    }
    table.finish();
    let ended = daemon.terminate().await;
    assert!(!ended.stderr.contains(signature) && !ended.stderr.contains(body), "{}", ended.stderr);
}

#[tokio::test]
async fn signing_keys_are_fetched_again_after_rotation_with_rate_and_size_limits() {
    let (first, second) = (Signer::es256("first"), Signer::es256("second"));
    let issuer = Issuer::start(&[&first]);
    let lockhouse = Lockhouse::new().config(&config(&issuer, ""));
    issuer.fail_with(Some(HttpAnswer::status(500)));
    let daemon = lockhouse.daemon().await;
    let claims = issuer.claims("ada", AUDIENCE, "mcp:all");
    let comes = async |signer: &Signer| {
        status_and_error(&list_tools(&daemon.http_client(Some(&signer.sign(&claims)))).await)
    };
    let mut table = Table::new("keys of an authorization server");
    let unavailable = "503 temporarily_unavailable".to_owned();
    table.row("the key server answers with an error", equal(comes(&first).await, unavailable.clone()));
    daemon.wait_for_log("cannot fetch the keys of the authorization server").await;
    let huge = json!({"keys": vec![first.public(); 50_000]});
    for (name, answer) in [
        ("a huge answer", HttpAnswer::json(200, &huge)),
        ("no JSON", HttpAnswer::Full(200, Vec::new(), "<html>".into())),
        ("no keys", HttpAnswer::json(200, &json!({"keys": []}))),
        (
            "a redirect",
            HttpAnswer::status(302)
                .with("Location", &format!("{}/.well-known/openid-configuration", issuer.name())),
        ),
    ] {
        issuer.fail_with(Some(answer));
        let before = issuer.key_requests();
        wait_until("keys are fetched again", async || {
            let is = comes(&first).await;
            assert_eq!(is, "503 temporarily_unavailable");
            (issuer.key_requests() > before).then_some(())
        })
        .await;
        table.row(name, Ok(()));
    }
    issuer.fail_with(None);
    wait_until("the token is accepted", async || (comes(&first).await == "200").then_some(())).await;
    let before = issuer.key_requests();
    for _ in 0..50 {
        assert_eq!(comes(&first).await, "200");
    }
    table.row("known keys are not fetched again", equal(issuer.key_requests(), before));
    let begun = std::time::Instant::now();
    for _ in 0..50 {
        assert_eq!(comes(&second).await, "401 invalid_token");
    }
    let (fetches, seconds) = (issuer.key_requests() - before, begun.elapsed().as_secs() as usize);
    table.row("unknown keys cause few fetches", ensure(fetches <= seconds + 2, (fetches, seconds)));
    issuer.publish(&[&second]);
    wait_until("the new key is accepted", async || (comes(&second).await == "200").then_some(())).await;
    table.row("a new key", equal(comes(&second).await, "200".into()));
    table.row("the previous key", equal(comes(&first).await, "401 invalid_token".into()));
    issuer.fail_with(Some(HttpAnswer::status(503)));
    table.row("key server unavailable: a known key", equal(comes(&second).await, "200".into()));
    table.row(
        "key server unavailable: an unknown key",
        equal(comes(&first).await, "401 invalid_token".into()),
    );
    table.finish();
}

#[tokio::test]
async fn scopes_grant_servers_and_tools_and_the_resource_metadata_is_public() {
    let own = Signer::es256("one");
    let issuer = Issuer::start(&[&own]);
    let policy = "version = 1\n[servers.files]\nallow = [\"*\"]\n[servers.web]\nallow = [\"*\"]\n";
    let lockhouse = Lockhouse::new().server("files", &[]).server("web", &[]).policy(policy);
    let lockhouse = lockhouse.config(&config(&issuer, ""));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("scopes");
    let code = "from mcp_tools import list_servers\nsorted(s['name'] for s in list_servers())";
    for (scope, expected) in [
        ("mcp:all", json!(["files", "web"])),
        ("mcp:files", json!(["files", "web"])),
        ("mcp:files mcp:all", json!(["files", "web"])),
    ] {
        let http_client = daemon.http_client(Some(&own.sign(&issuer.claims("ada", AUDIENCE, scope))));
        table.row(scope, equal(http_client.run_code("python", code).await["value"].clone(), expected));
    }
    let call = "from mcp_tools import call_tool, ToolError\ntry: r = call_tool('web.add', {'a': 1, 'b': 2})['sum']\n\
        except ToolError as e: r = e.code\nr";
    for (scope, expected) in [("mcp:all", json!(3)), ("mcp:files", json!("denied"))] {
        let http_client = daemon.http_client(Some(&own.sign(&issuer.claims("ada", AUDIENCE, scope))));
        table.row(
            format!("{scope}: web.add"),
            equal(http_client.run_code("python", call).await["value"].clone(), expected),
        );
    }
    let clients: Vec<Value> = lockhouse.records().iter().map(|record| record["client"].clone()).collect();
    table.row("in the log", ensure(clients.contains(&json!("oauth:ada")), &clients));
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let answer = lockhouse_tests::HttpServer::browse(&daemon.url(path));
        let metadata: Value = answer.message();
        let says = metadata["resource"] == AUDIENCE
            && metadata["authorization_servers"] == json!([issuer.name()])
            && metadata["scopes_supported"] == json!(["mcp:all", "mcp:files"]);
        table.row(path, ensure(says, &answer));
    }
    table.finish();
}
