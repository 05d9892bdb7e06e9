// attack: a regular expression that backtracks for ever
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
// endurance: ends at its deadline
/^(a+)+$/.test('a'.repeat(60) + 'b');
