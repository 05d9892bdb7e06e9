// attack: halves of surrogate pairs in values, keys and the console, where only whole characters can leave
// outcome: ok {"�":["�","😀","�\\ud800"]}
// control: none: a result is the library's own
console.log('\ud800', ['\udfff'], { '\udbff': 1 });
({ '\ud800': ['\udfff', '\ud83d\ude00', '\ud800\\ud800'] });
