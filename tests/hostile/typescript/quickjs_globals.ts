// attack: what the QuickJS shell puts into its global scope
// outcome: ok []
// control: none: only a bare QuickJS has them
const names = 'std os bjson Worker scriptArgs print loadScript loadFile evalScript gc navigator __loadScript __date_clock';
names.split(' ').filter((name) => name in globalThis);
