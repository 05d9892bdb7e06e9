// attack: the program answers its own denied call: it fools itself alone, for the server is never called
// outcome: ok ["deleted"]
// control: none: a way into this library only
const { set } = Map.prototype;
Map.prototype.set = function (key, value) {
  if (value?.resolve) value.resolve('deleted');
  return set.call(this, key, value);
};
[await callTool('fixture', 'delete_everything', {})];
