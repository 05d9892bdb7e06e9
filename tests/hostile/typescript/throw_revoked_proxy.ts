// attack: throw a proxy that is revoked
// outcome: error the program threw
// control: none: every throw fails
const { proxy, revoke } = Proxy.revocable(new Error('x'), {});
revoke();
throw proxy;
