// attack: Error.captureStackTrace, limits that are no numbers and a prepareStackTrace that throws, recurses and replaces
// outcome: ok "still here"
// control: outside
for (const limit of [-1, 0, NaN, Infinity, 2 ** 53, '9', {}, null, undefined, 1e9, Symbol.iterator]) {
  try {
    Error.stackTraceLimit = limit;
    String(new Error('x').stack);
    Error.captureStackTrace({}, () => {});
  } catch {}
}
let depth = 0;
Error.prepareStackTrace = (error, sites) => (depth++ < 1000 ? new Error('again').stack : sites);
try { null.x; } catch (error) { void error.stack; }
Error.prepareStackTrace = () => { throw new Error('in it'); };
try { null.x; } catch (error) { try { void error.stack; } catch {} }
try { Error.captureStackTrace(Object.freeze({})); } catch {}
try { Error.captureStackTrace(new Proxy({}, { defineProperty() { throw 1; }, set() { throw 1; } })); } catch {}
Object.defineProperty(Error, 'stackTraceLimit', { get() { throw new Error('getter'); }, configurable: true });
try { new Error('x').stack; } catch {}
delete Error.stackTraceLimit;
Error.prepareStackTrace = undefined;
'still here';
