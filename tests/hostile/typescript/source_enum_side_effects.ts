// attack: enums and namespaces whose members run code, merge, and replace each other
// outcome: ok [["a","b"],1,"B",3]
// control: none: it is no plain JavaScript
const order: string[] = [];
enum Merged { A = (order.push('a'), 1) }
enum Merged { B = (order.push('b'), Merged.A + 1), __proto__ = 7 }
namespace Outer.Inner { export let count = 3; }
namespace Outer { export const seen = () => Outer.Inner.count; }
[order, Merged.A, Merged[2], Outer.seen()];
