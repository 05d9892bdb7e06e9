// attack: a result that is a revoked proxy
// outcome: ok ["[TypeError when it was read: revoked proxy]"]
// control: none: a result is the library's own
const { proxy, revoke } = Proxy.revocable([], {});
revoke();
[proxy];
