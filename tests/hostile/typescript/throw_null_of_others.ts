// attack: throw a null that nobody wrote, which is also how the engine says that its memory is full
// outcome: error the program threw null
// control: none: every throw fails
throw 'abc'.match(/x/);
