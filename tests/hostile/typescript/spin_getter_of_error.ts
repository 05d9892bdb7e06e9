// attack: an error whose every property never answers
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
throw new Proxy(new Error('x'), { get() { for (;;); }, has() { for (;;); }, getPrototypeOf() { for (;;); } });
