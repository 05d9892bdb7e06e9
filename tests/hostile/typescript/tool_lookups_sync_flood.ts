// attack: names of tools that do not exist, for ever: each is a question that blocks
// outcome: limit questions about tools
// control: none: a way into this library only
// limits: memory_mib = 512, timeout_seconds = 30
for (let at = 0; ; at++) {
  try {
    fixture[`nothing_${at}`];
  } catch (error) {
    if (error.code !== 'unknown_tool') throw error;
  }
}
