// attack: names in the global scope that neither the language nor the documentation has
// outcome: ok []
// control: none: its own, in the program: the language's names must be there
const expected = new Set(
  ('Object Function Error EvalError RangeError ReferenceError SyntaxError TypeError URIError InternalError AggregateError ' +
    'SuppressedError DisposableStack AsyncDisposableStack Iterator Array parseInt parseFloat isNaN isFinite decodeURI ' +
    'decodeURIComponent encodeURI encodeURIComponent escape unescape Infinity NaN undefined eval globalThis Number Boolean ' +
    'String Math Reflect Symbol BigInt Date RegExp JSON Proxy Map Set WeakMap WeakSet WeakRef FinalizationRegistry ' +
    'ArrayBuffer SharedArrayBuffer Uint8ClampedArray Int8Array Uint8Array Int16Array Uint16Array Int32Array Uint32Array ' +
    'BigInt64Array BigUint64Array Float16Array Float32Array Float64Array DataView Atomics Promise Temporal ' +
    'console fetch XMLHttpRequest WebSocket EventSource require setTimeout setInterval setImmediate clearTimeout ' +
    'clearInterval clearImmediate queueMicrotask performance crypto TextEncoder TextDecoder btoa atob structuredClone ' +
    'Intl URL URLSearchParams Buffer DOMException ToolError callTool describe searchTools listServers call_tool search_tools list_servers ' +
    'callMCPTool call_mcp_tool discoverMCPTools discover_mcp_tools getToolSchema get_tool_schema ' +
    'loadResult load_result fullResult full_result rawText raw_text tools servers codemode ALL_TOOLS listResources readResource listPrompts getPrompt list_resources read_resource list_prompts get_prompt mcp mcp_tools skills files fixture').split(' '),
);
const names = Reflect.ownKeys(globalThis);
if (!names.includes('Array') || !names.includes('callTool')) throw new Error('the control found nothing');
names.filter((name) => !expected.has(name) && name !== Symbol.toStringTag).map(String);
