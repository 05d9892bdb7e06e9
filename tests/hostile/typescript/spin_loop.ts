// attack: an endless loop
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
// endurance: ends at its deadline
for (;;);
