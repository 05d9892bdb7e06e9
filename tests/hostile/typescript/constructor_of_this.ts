// attack: this of a function in sloppy mode, and its constructors
// outcome: error process is not defined
// control: outside
const reached = new Function('return this')();
reached.constructor.constructor('return process')().pid;
