//! Tokens of an authorization server.

use lockhouse_tests::{HttpAnswer, Issuer, Lockhouse, Signer, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use crate::{asks, token, told, words};

const AUDIENCE: &str = "https://lockhouse.example.com/mcp";

/// Tokens of this server, for this audience.
fn config(issuer: &Issuer, more: &str) -> String {
    format!(
        "[http]\nauth = [\"oauth\", \"token\"]\n[http.oauth]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\nrefetch_seconds = 1\n{more}\n\
         [http.oauth.scopes]\n\"mcp:all\" = [\"*\"]\n\"mcp:files\" = [\"files\", \"web.get*\"]\n",
        issuer.name()
    )
}

/// The claims with others in their place; null takes one away.
fn but(claims: &Value, others: Value) -> Value {
    let mut claims = claims.as_object().unwrap().clone();
    for (name, value) in others.as_object().unwrap().clone() {
        match value {
            Value::Null => drop(claims.remove(&name)),
            value => drop(claims.insert(name, value)),
        }
    }
    claims.into()
}

/// With another header.
fn with_header(token: &str, header: &Value) -> String {
    let (_, rest) = token.split_once('.').unwrap();
    format!("{}.{rest}", base64(header.to_string().as_bytes()))
}

/// As JSON Web Tokens have it.
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
async fn only_a_token_of_that_server_for_this_one_and_for_now_counts() {
    let (own, rsa, stranger) = (Signer::es256("one"), Signer::rs256("two"), Signer::es256("one"));
    let unpublished = Signer::es256("three");
    let issuer = Issuer::start(&[&own, &rsa]);
    let lockhouse = Lockhouse::new().config(&config(&issuer, ""));
    let ours = token(&lockhouse, &["desk"]);
    let door = lockhouse.door().await;
    let good = issuer.claims("ada", AUDIENCE, "openid mcp:all");
    let now = good["iat"].as_u64().unwrap();
    let valid = own.sign(&good);
    let (head, rest) = valid.split_once('.').unwrap();
    let (body, signature) = rest.split_once('.').unwrap();
    let forged = base64(but(&good, json!({"sub": "root"})).to_string().as_bytes());
    let none = base64(br#"{"alg":"none","typ":"JWT"}"#);
    let invalid = "401 invalid_token";
    let mut table = Table::new("tokens of an authorization server");
    let rows: Vec<(&str, String, &str, &str)> = vec![
        ("control: ES256", valid.clone(), "200", ""),
        ("control: RS256", rsa.sign(&good), "200", ""),
        (
            "control: one of several audiences",
            own.sign(&but(&good, json!({"aud": ["x", AUDIENCE]}))),
            "200",
            "",
        ),
        (
            "control: scopes in scp",
            own.sign(&but(&good, json!({"scope": null, "scp": ["mcp:all"]}))),
            "200",
            "",
        ),
        ("control: our own token", ours, "200", ""),
        (
            "a foreign audience",
            own.sign(&but(&good, json!({"aud": "https://other.example.com/mcp"}))),
            invalid,
            "for another server",
        ),
        (
            "an audience that begins alike",
            own.sign(&but(&good, json!({"aud": format!("{AUDIENCE}/x")}))),
            invalid,
            "for another server",
        ),
        ("no audience", own.sign(&but(&good, json!({"aud": null}))), invalid, "no audience"),
        (
            "another issuer",
            own.sign(&but(&good, json!({"iss": "https://id.example.com"}))),
            invalid,
            "of another issuer",
        ),
        (
            "the issuer with a slash",
            own.sign(&but(&good, json!({"iss": format!("{}/", issuer.name())}))),
            invalid,
            "of another issuer",
        ),
        ("a list of issuers", own.sign(&but(&good, json!({"iss": [issuer.name(), "x"]}))), invalid, ""),
        ("no issuer", own.sign(&but(&good, json!({"iss": null}))), invalid, ""),
        ("expired", own.sign(&but(&good, json!({"exp": now - 120}))), invalid, "has expired"),
        ("control: expired within the leeway", own.sign(&but(&good, json!({"exp": now - 20}))), "200", ""),
        ("no expiry", own.sign(&but(&good, json!({"exp": null}))), invalid, ""),
        ("an expiry that is no number", own.sign(&but(&good, json!({"exp": "never"}))), invalid, ""),
        ("not valid yet", own.sign(&but(&good, json!({"nbf": now + 3_600}))), invalid, "not valid yet"),
        (
            "issued in the future",
            own.sign(&but(&good, json!({"iat": now + 3_600}))),
            invalid,
            "in the future",
        ),
        ("no subject", own.sign(&but(&good, json!({"sub": null}))), invalid, ""),
        (
            "a subject with a zero-width space",
            own.sign(&but(&good, json!({"sub": "ad\u{200b}a"}))),
            invalid,
            "subject",
        ),
        (
            "a subject with a soft hyphen",
            own.sign(&but(&good, json!({"sub": "ad\u{ad}a"}))),
            invalid,
            "subject",
        ),
        ("a subject with a tag", own.sign(&but(&good, json!({"sub": "ada\u{e0061}"}))), invalid, "subject"),
        (
            "a subject that turns the text",
            own.sign(&but(&good, json!({"sub": "\u{202e}ada"}))),
            invalid,
            "subject",
        ),
        (
            "a subject that looks like another",
            own.sign(&but(&good, json!({"sub": "\u{430}da"}))),
            invalid,
            "subject",
        ),
        (
            "a subject that is not normal",
            own.sign(&but(&good, json!({"sub": "e\u{301}"}))),
            invalid,
            "subject",
        ),
        (
            "control: a subject of ASCII",
            own.sign(&but(&good, json!({"sub": "auth0|ada+1@example.com"}))),
            "200",
            "",
        ),
        ("typ of an access token", own.sign_as("at+jwt", &good), "200", ""),
        ("typ as a media type", own.sign_as("Application/AT+JWT", &good), "200", ""),
        ("typ that says nothing more", own.sign_as("jwt", &good), "200", ""),
        ("typ of a proof of DPoP", own.sign_as("dpop+jwt", &good), invalid, "of another kind"),
        ("typ of a logout", own.sign_as("logout+jwt", &good), invalid, "of another kind"),
        (
            "typ of an introspection",
            own.sign_as("token-introspection+jwt", &good),
            invalid,
            "of another kind",
        ),
        ("an empty typ", own.sign_as("", &good), invalid, "of another kind"),
        ("an empty subject", own.sign(&but(&good, json!({"sub": ""}))), invalid, "subject"),
        ("a subject with a line", own.sign(&but(&good, json!({"sub": "a\nb"}))), invalid, "subject"),
        (
            "a subject that is too long",
            own.sign(&but(&good, json!({"sub": "a".repeat(70)}))),
            invalid,
            "subject",
        ),
        ("alg none", format!("{none}.{body}."), invalid, "no signed JSON Web Token"),
        (
            "alg none with the signature",
            format!("{none}.{body}.{signature}"),
            invalid,
            "no signed JSON Web Token",
        ),
        (
            "HS256 with the public key",
            own.sign_with_the_public_key(&good),
            invalid,
            "algorithm that is not accepted",
        ),
        ("other claims under the signature", format!("{head}.{forged}.{signature}"), invalid, "signature"),
        ("no signature", format!("{head}.{body}."), invalid, ""),
        ("a stranger's key of that name", stranger.sign(&good), invalid, "signature"),
        (
            "a key that is not published",
            unpublished.sign(&good),
            invalid,
            "not one of the authorization server's",
        ),
        (
            "the key of another algorithm",
            with_header(&valid, &json!({"alg": "ES256", "kid": "two"})),
            invalid,
            "not one of the authorization server's",
        ),
        (
            "no name of a key, but two keys that fit one each",
            with_header(&valid, &json!({"alg": "ES256"})),
            invalid,
            "signature",
        ),
        (
            "an extension that must be known",
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
        ("no token", "a.b.c".into(), invalid, "no signed JSON Web Token"),
        ("a very long one", format!("{valid}{}", "A".repeat(20_000)), invalid, "too long"),
        (
            "no scope of ours",
            own.sign(&but(&good, json!({"scope": "openid email"}))),
            "403 insufficient_scope",
            "grants anything",
        ),
        (
            "no scope",
            own.sign(&but(&good, json!({"scope": null}))),
            "403 insufficient_scope",
            "grants anything",
        ),
    ];
    for (name, token, expected, description) in &rows {
        let reply = asks(&door.visitor(Some(token))).await;
        let challenge = reply.header("www-authenticate");
        let challenged = *expected == "200"
            || (challenge.contains("resource_metadata=\"https://lockhouse.example.com/.well-known/oauth-protected-resource/mcp\"")
                && challenge.contains("scope=\"mcp:all mcp:files\""));
        let holds = told(&reply) == *expected && words(&reply).contains(description) && challenged;
        // What is longer than any header may be is not heard at all.
        let is_cut = token.len() > 16_000 && reply.status == 431;
        table.row(*name, ensure(holds || is_cut, format!("{} {challenge} {}", reply.status, reply.body)));
    }
    table.finish();
    let ended = door.terminate().await;
    assert!(!ended.stderr.contains(signature) && !ended.stderr.contains(body), "{}", ended.stderr);
}

#[tokio::test]
async fn keys_are_had_again_when_they_change_seldom_and_within_bounds() {
    let (first, second) = (Signer::es256("first"), Signer::es256("second"));
    let issuer = Issuer::start(&[&first]);
    let lockhouse = Lockhouse::new().config(&config(&issuer, ""));
    issuer.breaks(Some(HttpAnswer::status(500)));
    let door = lockhouse.door().await;
    let claims = issuer.claims("ada", AUDIENCE, "mcp:all");
    let comes = async |signer: &Signer| told(&asks(&door.visitor(Some(&signer.sign(&claims)))).await);
    let mut table = Table::new("keys of an authorization server");
    let unavailable = "503 temporarily_unavailable".to_owned();
    table.row("it answers with an error", equal(comes(&first).await, unavailable.clone()));
    door.says("the keys of the authorization server are not to be had").await;
    let huge = json!({"keys": vec![first.public(); 50_000]});
    for (name, answer) in [
        ("a huge answer", HttpAnswer::json(200, &huge)),
        ("no JSON", HttpAnswer::Whole(200, Vec::new(), "<html>".into())),
        ("no keys", HttpAnswer::json(200, &json!({"keys": []}))),
        (
            "a redirect",
            HttpAnswer::status(302)
                .with("Location", &format!("{}/.well-known/openid-configuration", issuer.name())),
        ),
    ] {
        issuer.breaks(Some(answer));
        let before = issuer.asked();
        wait_until("it asks again", async || {
            let is = comes(&first).await;
            assert_eq!(is, "503 temporarily_unavailable");
            (issuer.asked() > before).then_some(())
        })
        .await;
        table.row(name, Ok(()));
    }
    issuer.breaks(None);
    wait_until("it comes in", async || (comes(&first).await == "200").then_some(())).await;
    let before = issuer.asked();
    for _ in 0..50 {
        assert_eq!(comes(&first).await, "200");
    }
    table.row("known keys are not asked for again", equal(issuer.asked(), before));
    let begun = std::time::Instant::now();
    for _ in 0..50 {
        assert_eq!(comes(&second).await, "401 invalid_token");
    }
    let (asked, seconds) = (issuer.asked() - before, begun.elapsed().as_secs() as usize);
    table.row("strange keys make it ask seldom", ensure(asked <= seconds + 2, (asked, seconds)));
    issuer.publish(&[&second]);
    wait_until("the new key counts", async || (comes(&second).await == "200").then_some(())).await;
    table.row("a new key", equal(comes(&second).await, "200".into()));
    table.row("the one before", equal(comes(&first).await, "401 invalid_token".into()));
    issuer.breaks(Some(HttpAnswer::status(503)));
    table.row("while it is away: a key that is known", equal(comes(&second).await, "200".into()));
    table.row("while it is away: another", equal(comes(&first).await, "401 invalid_token".into()));
    table.finish();
}

#[tokio::test]
async fn scopes_grant_servers_and_tools_and_everybody_may_read_where_tokens_come_from() {
    let own = Signer::es256("one");
    let issuer = Issuer::start(&[&own]);
    let policy = "version = 1\n[servers.files]\nallow = [\"*\"]\n[servers.web]\nallow = [\"*\"]\n";
    let lockhouse = Lockhouse::new().server("files", &[]).server("web", &[]).policy(policy);
    let lockhouse = lockhouse.config(&config(&issuer, ""));
    let door = lockhouse.door().await;
    let mut table = Table::new("scopes");
    let code = "from mcp_tools import list_servers\nsorted(s['name'] for s in list_servers())";
    for (scope, expected) in [
        ("mcp:all", json!(["files", "web"])),
        ("mcp:files", json!(["files", "web"])),
        ("mcp:files mcp:all", json!(["files", "web"])),
    ] {
        let visitor = door.visitor(Some(&own.sign(&issuer.claims("ada", AUDIENCE, scope))));
        table.row(scope, equal(visitor.run_code("python", code).await["value"].clone(), expected));
    }
    let call = "from mcp_tools import call_tool, ToolError\ntry: r = call_tool('web.add', {'a': 1, 'b': 2})['sum']\n\
        except ToolError as e: r = e.code\nr";
    for (scope, expected) in [("mcp:all", json!(3)), ("mcp:files", json!("denied"))] {
        let visitor = door.visitor(Some(&own.sign(&issuer.claims("ada", AUDIENCE, scope))));
        table.row(
            format!("{scope}: web.add"),
            equal(visitor.run_code("python", call).await["value"].clone(), expected),
        );
    }
    let clients: Vec<Value> = lockhouse.records().iter().map(|record| record["client"].clone()).collect();
    table.row("in the log", ensure(clients.contains(&json!("oauth:ada")), &clients));
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let answer = lockhouse_tests::HttpServer::browse(&door.url(path));
        let told: Value = answer.message();
        let says = told["resource"] == AUDIENCE
            && told["authorization_servers"] == json!([issuer.name()])
            && told["scopes_supported"] == json!(["mcp:all", "mcp:files"]);
        table.row(path, ensure(says, &answer));
    }
    table.finish();
}

#[tokio::test]
async fn a_configuration_that_lets_in_nobody_or_anybody_is_refused() {
    let mut table = Table::new("configurations");
    let good = "issuer = \"https://id.example.com\"\naudience = \"https://a.example.com/mcp\"\n[http.oauth.scopes]\nx = [\"*\"]\n";
    for (name, text, words) in [
        ("no table", "[http]\nauth = \"oauth\"\n".to_owned(), "needs [http.oauth]"),
        (
            "plain http",
            format!("[http.oauth]\n{}", good.replace("https://id", "http://id")),
            "must begin with https://",
        ),
        (
            "no audience",
            format!("[http.oauth]\n{}", good.replace("https://a.example.com/mcp", "")),
            "audience",
        ),
        (
            "no resource",
            format!("[http.oauth]\n{}", good.replace("https://a.example.com/mcp", "api://x")),
            "resource",
        ),
        ("a shared secret", format!("[http.oauth]\nalgorithms = [\"HS256\"]\n{good}"), "needs a key pair"),
        ("alg none", format!("[http.oauth]\nalgorithms = [\"none\"]\n{good}"), "needs a key pair"),
        ("no scope", format!("[http.oauth]\n{}", good.replace("x = [\"*\"]", "")), "scopes"),
        (
            "a scope in quotes",
            format!("[http.oauth]\n{}", good.replace("x = ", "'a\"b' = ")),
            "name of a scope",
        ),
        (
            "a grant of nothing",
            format!("[http.oauth]\n{}", good.replace("\"*\"", "\"a b\"")),
            "no name of a server",
        ),
        (
            "keys over plain http",
            format!("[http.oauth]\njwks = \"http://a.example.com/jwks\"\n{good}"),
            "must begin with https://",
        ),
        (
            "an unknown user",
            "[http]\nauth = \"peer\"\nusers = [\"no such user\"]\n".to_owned(),
            "there is no user",
        ),
        ("none beside token", "[http]\nauth = [\"token\", \"none\"]\n".to_owned(), "stands alone"),
        (
            "a proxy and users of the machine",
            "[http]\nauth = \"peer\"\nbehind_proxy = true\n".to_owned(),
            "would be the proxy's user",
        ),
        ("no way", "[http]\nauth = []\n".to_owned(), "nobody could come in"),
        ("no rate", "[clients]\nruns = \"many\"\n".to_owned(), "runs is out of range"),
    ] {
        let lockhouse = Lockhouse::new().config(&text);
        let finished = lockhouse.run(&["serve", "--listen", "127.0.0.1:0"]);
        let told = finished.status == Some(2) && finished.stderr.contains(words);
        table.row(name, ensure(told, format!("{finished:?}")));
    }
    table.finish();
}
