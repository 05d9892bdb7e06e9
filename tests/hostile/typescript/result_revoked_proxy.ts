// attack: a result that is a revoked proxy
// outcome: error revoked
// control: none: a result is the library's own
const { proxy, revoke } = Proxy.revocable([], {});
revoke();
[proxy];
