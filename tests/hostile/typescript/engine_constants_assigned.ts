// attack: assigning the constants of the global scope, and this of a class before super
// outcome: ok ["number","undefined","number",true]
// control: none: modules outside are strict
const assign = new Function('value', 'Infinity = value; NaN = value; undefined = value; return new (class { constructor() { (0, eval)("Infinity = this; undefined = this"); } })()');
for (let round = 0; round < 100; round++) assign({ round });
const early = new Function(`return class extends Object { constructor() { try { this.x; } catch {} const late = () => super(); late(); try { late(); } catch {} } }`)();
for (let round = 0; round < 100; round++) new early();
[typeof Infinity, typeof undefined, typeof NaN, Number.isNaN(NaN)];
