// attack: throw what looks like the engine's own words for the end of its memory, and of its time
// outcome: error the program was stopped at its deadline
// control: none: every throw fails
class InternalError extends Error {
  name = 'Timeout';
}
throw new InternalError('the program was stopped at its deadline');
