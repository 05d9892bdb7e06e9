// attack: eval names what the transformer has put around the program and refuses in its text
// outcome: error not available in the Lockhouse sandbox
// control: none: a way into this library only
const lookup = eval('$lockhouse_' + 'module');
if (typeof lookup !== 'function') throw new Error('the control found nothing');
lookup('node:net');
