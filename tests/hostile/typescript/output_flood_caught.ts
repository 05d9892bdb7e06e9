// attack: small lines on both streams for ever, whatever is thrown
// outcome: limit output
// control: none: nothing would end it outside
// limits: timeout_seconds = 20
for (;;) {
  try {
    console.log('x'.repeat(100));
    console.error('%s', 'x');
  } catch {}
}
