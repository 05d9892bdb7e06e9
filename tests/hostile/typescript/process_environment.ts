// attack: read the environment
// outcome: error process is not defined
// control: outside
Object.keys(process.env).length > 0 ? process.env.PATH.length : Promise.reject(new Error('no environment'));
