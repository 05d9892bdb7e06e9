// attack: a generator whose return catches the interrupt and yields for ever
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
function* endless() {
  for (;;) {
    try {
      for (;;) yield 1;
    } finally {
      for (;;) yield 2;
    }
  }
}
for (const each of endless()) for (;;) each;
