// attack: an endless loop that catches the interrupt and goes on, in catch, finally and a promise's handlers
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
// endurance: ends at its deadline
const spin = () => { for (;;); };
const again = async () => {
  for (;;) {
    try {
      await (async () => spin())();
    } catch {
      spin();
    } finally {
      spin();
    }
  }
};
await again().catch(spin).finally(spin);
