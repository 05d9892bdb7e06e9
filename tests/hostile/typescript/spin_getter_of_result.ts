// attack: a result with a getter that never answers
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
({ get x() { for (;;); } });
