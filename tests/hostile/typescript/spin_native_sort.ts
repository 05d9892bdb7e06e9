// attack: sorting with a comparator that lies, and one that never answers
// outcome: timeout did not end within
// control: none: nothing would end it outside
// limits: timeout_seconds = 1
// endurance: ends at its deadline
const numbers = Float64Array.from({ length: 1e5 }, (_, at) => at ^ 21845);
numbers.sort(() => Math.random() - 0.5);
[...numbers].sort(() => NaN);
[3, 1, 2].sort(() => { for (;;); });
