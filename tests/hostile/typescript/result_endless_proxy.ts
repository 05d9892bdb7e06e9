// attack: a result whose properties have properties without an end
// outcome: error nested too deeply
// control: none: a result is the library's own
const make = () => new Proxy({}, { get: (_, key) => (key === 'toJSON' ? undefined : make()), ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }) });
make();
