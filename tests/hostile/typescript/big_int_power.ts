// attack: a power that no memory holds
// outcome: error BigInt is too large
// control: none: others have other words
7n ** (7n ** 77n);
