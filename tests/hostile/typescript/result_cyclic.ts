// attack: a result that holds itself
// outcome: ok {"a":[{"result":"[Circular]"}]}
// control: none: a result is the library's own
const result = { a: [] };
result.a.push({ result });
result;
