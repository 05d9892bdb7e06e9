// attack: indirect eval leaves the function that the program is in
// outcome: error process is not defined
// control: outside
(0, eval)('var leaked = 1; process.pid');
