// attack: one built-in function that walks 2^53 elements in C, where no interrupt is looked for
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);
