// attack: a result above what one message holds
// outcome: error|limit exceeds the limit
// control: none: a result is the library's own
// limits: memory_mib = 512, timeout_seconds = 30
'x'.repeat(2e7);
