// attack: an interrupt while what was used is disposed of, and disposing never ends
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
const endless = { [Symbol.dispose ?? 'dispose']() { for (;;); } };
{
  using held = endless;
  for (;;) void held;
}
