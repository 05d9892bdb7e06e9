//! Seeds for the fuzz targets: JSON of each kind, within its bounds and beyond them.

use std::collections::BTreeMap;

/// Returns the seeds of each target.
pub fn seeds() -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    let long = "é".repeat(300);
    let texts = [
        r#"{"id":1,"result":{"items":[1,-2.5e3,true,null,"a\n\u00e9"],"more":{}}}"#.to_owned(),
        format!(r#"{{"a":"{long}","b":["{long}",{{"c":"{long}"}}],"id":2}}"#),
        format!("[{}1]", r#"{"name":"n","value":123},"#.repeat(12)),
        format!("{}{}", "[".repeat(110), "]".repeat(110)),
        format!("[{}0]", "0,".repeat(200)),
        r#"{"$serde_json::private::RawValue":"[1]"}"#.to_owned(),
        r#"{"a":1,"a":{"id":3},"\"id\"":4}"#.to_owned(),
        format!(" \"{long}\" "),
        "1".repeat(300),
        r#"{"a":[1,"#.to_owned(),
    ];
    let inputs = texts.iter().flat_map(|text| [0, 40, 255].map(|limit| [&[limit], text.as_bytes()].concat()));
    BTreeMap::from([("json_text", inputs.collect())])
}
