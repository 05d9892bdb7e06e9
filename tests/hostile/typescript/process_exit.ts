// attack: end the process that answers
// outcome: error process is not defined
// control: outside
process.exit(0);
