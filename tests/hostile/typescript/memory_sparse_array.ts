// attack: arrays whose length is a lie
// outcome: ok [4294967295,"RangeError"]
// control: outside
const sparse = [];
sparse[2 ** 32 - 2] = 1;
let name = '';
try {
  sparse.push(1);
} catch (error) {
  name = error.name;
}
[sparse.length, name];
