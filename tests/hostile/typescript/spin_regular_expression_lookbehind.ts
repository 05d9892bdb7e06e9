// attack: backtracking in lookbehind, with back references and a replacer
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
('x'.repeat(200) + 'y').replace(/(?<=^(x+x+)+)(\1+)z|(?:(x*)*)*y$/gv, (all) => all);
/^(?:(x+)+\1+)+$/.test('x'.repeat(60) + 'y');
