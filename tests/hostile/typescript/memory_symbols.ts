// attack: names that are never forgotten: registered symbols, keys, regular expressions and functions that are made
// outcome: limit|killed memory
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 60
const held = {};
for (let at = 0; ; at++) {
  Symbol.for(`a symbol with a long name ${at}`);
  held[`a key with a long name ${at}`] = new Function(`name${at}`, `return name${at}`);
}
