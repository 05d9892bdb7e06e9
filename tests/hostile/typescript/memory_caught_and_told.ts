// attack: all memory, caught, and then a result for which none is left
// outcome: ok "caught"
// control: none: nothing would end it outside
// limits: memory_mib = 64, timeout_seconds = 60
let end = '';
let held = [];
try {
  for (;;) held.push(new Array(1000).fill({}));
} catch {
  held = undefined;
  end = 'caught';
}
end;
