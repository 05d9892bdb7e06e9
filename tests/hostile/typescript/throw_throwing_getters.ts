// attack: throw an error whose every property throws the error
// outcome: error threw
// control: none: every throw fails
const error = new Error('x');
const thrower = () => { throw error; };
for (const key of ['name', 'message', 'stack', 'cause', 'code', 'toString', 'errors']) Object.defineProperty(error, key, { get: thrower });
throw new Proxy(error, { get: thrower, has: thrower, ownKeys: thrower, getPrototypeOf: thrower, getOwnPropertyDescriptor: thrower });
