// attack: a result that is a proxy whose every trap throws another proxy
// outcome: error threw
// control: none: a result is the library's own
const trap: ProxyHandler<object> = new Proxy({}, { get: () => () => { throw new Proxy({}, trap); } });
new Proxy({}, trap);
