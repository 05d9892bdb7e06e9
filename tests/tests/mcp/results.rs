//! Tests of the results of upstream tools as values in programs.

use lockhouse_tests::Lockhouse;
use serde_json::{Value, json};

use crate::mcp::check;

#[tokio::test]
async fn results_have_the_types_of_their_content() {
    check(&Lockhouse::with_fixture(), "results in Python", &[
        ("python", "structured", "from mcp_tools.fixture import echo\nr = echo(value={'a': [1, None, 'ž']})\nr['value']['a']", json!([1, null, "ž"])),
        ("python", "whole numbers stay whole", "from mcp_tools.fixture import add\nrepr([add(a=1, b=2)['sum'], add(a=1.5, b=2)['sum']])", json!("[3, 3.5]")),
        ("python", "a large whole number", "from mcp_tools.fixture import echo\necho(value=2**60)['value'] == 2**60", json!(true)),
        ("python", "text", "from mcp_tools.fixture import text\nr = text(text='a b')\n[isinstance(r, str), r]", json!([true, "a b"])),
        ("python", "text that is JSON", "from mcp_tools.fixture import text\nr = text(text='{\"a\": 1}')\n[isinstance(r, str), str(r), r, r.json()]", json!([false, "{\"a\": 1}", {"a": 1}, {"a": 1}])),
        ("python", "text that is no JSON", "from mcp_tools.fixture import text\ntry: text(text='no').json()\nexcept ValueError as e: r = type(e).__name__\nr", json!("JSONDecodeError")),
        ("python", "empty text", "from mcp_tools.fixture import text\ntext(text='')", json!("")),
        ("python", "an image", "from mcp_tools.fixture import image\nr = image()\n[r.mime_type, r.data[:4].hex(), len(r) == len(bytes(r))]", json!(["image/png", "89504e47", true])),
        ("python", "several blocks", "from mcp_tools.fixture import mixed\nr = mixed()\n[len(r), r[0], r[1].mime_type, str(r[2]), r[3]['uri'], r[4]]",
         json!([5, "first", "image/png", "an embedded resource", "fixture://elsewhere", "last"])),
        ("python", "a failure", "from mcp_tools.fixture import fail\nfrom mcp_tools import ToolError\ntry: fail(message='the disk is full')\n\
            except ToolError as e: r = [e.code, str(e), e.server, e.tool, e.retryable]\nr", json!(["tool_failed", "the disk is full", "fixture", "fail", false])),
    ]).await;
    check(&Lockhouse::with_fixture(), "results in TypeScript", &[
        ("typescript", "structured", "(await fixture.echo({value: {a: [1, null, 'ž']}})).value.a", json!([1, null, "ž"])),
        ("typescript", "numbers", "[(await fixture.add({a: 1, b: 2})).sum, (await fixture.add({a: 1.5, b: 2})).sum]", json!([3, 3.5])),
        ("typescript", "text", "const r = await fixture.text({text: 'a b'}); [typeof r, r]", json!(["string", "a b"])),
        ("typescript", "text that is JSON", "const r = await fixture.text({text: '{\"a\": 1}'}); [typeof r, `${r}`, r, r.json()]", json!(["object", "{\"a\": 1}", {"a": 1}, {"a": 1}])),
        ("typescript", "text that is no JSON", "const r = await fixture.text({text: 'no'}); try { r.json() } catch (e) { return e.name }", json!("SyntaxError")),
        ("typescript", "json is no property that shows", "Object.keys('x').concat(Object.keys(String.prototype))", json!(["0"])),
        ("typescript", "empty text", "await fixture.text({text: ''})", json!("")),
        ("typescript", "an image", "const r = await fixture.image(); [r.mimeType, [...r.data.slice(0, 4)], r.data instanceof Uint8Array]", json!(["image/png", [137, 80, 78, 71], true])),
        ("typescript", "several blocks", "const r = await fixture.mixed(); [r.length, r[0], r[1].mimeType, r[2].text ?? r[2], r[3].uri, r[4]]",
         json!([5, "first", "image/png", "an embedded resource", "fixture://elsewhere", "last"])),
        ("typescript", "a failure", "try { await fixture.fail({message: 'the disk is full'}) }\ncatch (e) { return [e instanceof ToolError, e.name, e.code, e.message, e.server, e.tool, e.retryable] }",
         json!([true, "ToolError", "tool_failed", "the disk is full", "fixture", "fail", false])),
    ]).await;
}

#[tokio::test]
async fn an_image_as_the_value_of_a_program_is_base64() {
    check(
        &Lockhouse::with_fixture(),
        "images as values",
        &[
            (
                "python",
                "an image",
                "from mcp_tools.fixture import image\nv = image()\n{'mime': v.mime_type, 'v': v}['mime']",
                json!("image/png"),
            ),
            ("python", "bytes", "b'abc'", json!({"base64": "YWJj"})),
        ],
    )
    .await;
}

#[tokio::test]
async fn the_result_lists_calls_that_may_have_changed_something() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let code = "from mcp_tools.fixture import add, delete_everything, fail\nadd(a=1, b=2)\ndelete_everything()\nfail(message='x')";
    let answer = session.run_code("python", code).await;
    let calls: Vec<Value> = answer["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| json!([call["tool"], call["outcome"], call["changes"]]))
        .collect();
    assert_eq!(
        json!(calls),
        json!([["add", "ok", false], ["delete_everything", "ok", true], ["fail", "tool_failed", true]])
    );
}

#[tokio::test]
async fn the_result_counts_bytes_that_stayed_out_of_the_conversation() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let answer =
        session.run_code("python", "from mcp_tools.fixture import big\nlen(big(bytes=500000))").await;
    assert_eq!(answer["value"], 500_000, "{answer}");
    let kept = answer["stats"]["bytes_kept_out"].as_u64().unwrap();
    assert!((500_000..501_000).contains(&kept), "{answer}");
}
