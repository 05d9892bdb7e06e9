// attack: the transformer's own names, written with escapes
// outcome: error are reserved for the sandbox
// control: none: a way into this library only
\u0024lockhouse_import('node:fs');
