// attack: throw null
// outcome: error the program threw null
// control: none: every throw fails
throw null;
