// attack: small lines on both streams for ever, whatever is thrown
// outcome: limit output
// control: none: nothing would end it outside
// limits: memory_mib = 512, timeout_seconds = 30
for (;;) {
  try {
    console.log('x'.repeat(100));
    console.error('%s', 'x');
  } catch {}
}
