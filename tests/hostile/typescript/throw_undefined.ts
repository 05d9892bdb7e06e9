// attack: throw undefined
// outcome: error the program threw undefined
// control: none: every throw fails
throw undefined;
