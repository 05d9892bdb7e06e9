//! Seeds for the fuzz targets: definitions with schemas of each kind.

use std::collections::BTreeMap;

/// Returns the seeds of each target.
pub fn seeds() -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    let with_input = |schema: &str| {
        format!(r#"{{"name":"a-tool","description":"Deprecated: does it.","inputSchema":{schema}}}"#)
    };
    let with_parameter = |schema: &str| {
        with_input(&format!(r#"{{"type":"object","properties":{{"a":{schema},"b":{{}}}},"required":["a"]}}"#))
    };
    let definitions = [
        with_input("{}"),
        with_input(r#"{"type":"object","properties":{"a b":{"type":["string","null"],"default":"x"},"class":{"enum":[1,"2",null]}},"additionalProperties":false}"#),
        with_input(r##"{"$defs":{"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N"}}}},"properties":{"n":{"$ref":"#/$defs/N"},"m":{"$ref":"#/nowhere"}}}"##),
        with_input(r#"{"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"a":{"minimum":1}},"required":["a"]}]}"#),
        with_parameter(r#"{"type":"array","items":{"type":"number"}}"#),
        with_parameter(r#"{"type":"array","prefixItems":[{"type":"boolean"},{"type":"string"}],"items":false}"#),
        with_parameter(r#"{"oneOf":[{"type":"integer"},{"type":"object","additionalProperties":{"type":"string"}}]}"#),
        with_parameter(r#"{"const":"*/ \u0022\u0022\u0022","description":"*/ \"\"\" \\ \u202e"}"#),
        with_parameter("false"),
        r#"{"name":"list","annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"result":{"type":"array","items":{"type":"integer"}}},"required":["result"],"x-fastmcp-wrap-result":true}}"#.to_owned(),
        r#"{"name":"hidden","description":"a\u200bb\u2028c","annotations":{"destructiveHint":true},"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}"#.to_owned(),
        r#"{"name":"","inputSchema":[]}"#.to_owned(),
    ];
    BTreeMap::from([("tool_definition", definitions.map(String::into_bytes).to_vec())])
}
