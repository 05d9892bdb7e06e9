// attack: values that JSON does not know, all in one result
// outcome: ok ["NaN","-Infinity",0,"1e400n","Symbol(x)","[Function: f]",null,"/x/g","[Promise: use await]","Invalid Date",{"base64":"AAE="},[1,2],[[{},1]],["a"],"[MCP server: fixture]"]
// control: none: what they become is the library's own
[NaN, -Infinity, -0, '1e400n', Symbol('x'), function f() {}, undefined, /x/g, Promise.resolve(1), new Date(NaN), new Uint8Array([0, 1]), new Float32Array([1, 2]), new Map([[{}, 1]]), new Set(['a']), fixture];
