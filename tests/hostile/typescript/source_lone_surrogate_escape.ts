// attack: names and texts with halves of surrogate pairs, through the transformer and back
// outcome: ok ["\ufffd",1,"\ufffd"]
// control: none: a result is the library's own
const lone = '\ud83d';
const object = { '\udc00': 1 };
['\ud800', lone.length, Object.keys(object)[0]];
