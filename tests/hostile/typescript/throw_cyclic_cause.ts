// attack: throw an error that is its own cause, among its own errors, and its own prototype's parent
// outcome: error all promises were rejected
// control: none: every throw fails
const errors = [];
const error = new AggregateError(errors, '');
Object.assign(error, { cause: error, self: error });
errors.push(error, errors);
error.errors.push(error, error.errors);
console.error(error);
throw error;
