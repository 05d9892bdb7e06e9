// attack: iterator helpers on top of each other, whose C code calls itself without a look at the stack
// outcome: killed the stack overflowed
// control: none: others have other stacks
let iterator: IteratorObject<number> = [1].values();
for (let depth = 0; depth < 100000; depth++) iterator = iterator.map((value) => value);
iterator.next();
